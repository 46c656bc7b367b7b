//! The program `conclave`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    conclave::main_from(std::env::args_os())
}
