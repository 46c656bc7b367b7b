//! The whole command line, daemons included, as a binary of this package: tests need one whose path Cargo tells them.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    conclave::main_from(std::env::args_os())
}
