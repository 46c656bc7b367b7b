//! The coordinator's daemon.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    conclave_coordinator::cli_main(std::env::args_os())
}
