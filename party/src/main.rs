//! `conclave-party`, the data owner's daemon and commands; all code is in the library.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    conclave_party::cli_main(std::env::args_os().skip(1))
}
