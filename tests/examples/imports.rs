//! Prints violations of the import order in a source tree: `cargo run -p conclave-tests --example imports [TREE]`.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use conclave_tests::imports::{WORKSPACE, check};

fn main() -> ExitCode {
    let here = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let tree = std::env::args_os().nth(1).map_or_else(here, PathBuf::from);
    match check(&tree, &WORKSPACE) {
        Ok(findings) => {
            findings.iter().for_each(|finding| println!("{finding}\n"));
            println!("{} findings", findings.len());
            if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::from(2)
        }
    }
}
