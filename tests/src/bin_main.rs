//! The whole command line, daemons included, as a binary of this package: Cargo gives tests the paths of their own package's
//! binaries only.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    conclave::main_from(std::env::args_os())
}
