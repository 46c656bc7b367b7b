//! The analyst's command line: run the demo, submit and follow jobs, read results, account for privacy, and manage the
//! consortium's certificates.
//!
//! The same program contains both daemons behind hidden subcommands, so that the demo needs one binary only.
#![forbid(unsafe_code)]

mod account;
pub mod api;
mod budget;
mod ca;
mod check;
mod cli;
mod client;
mod demo;
mod describe;
mod draws;
mod ended;
mod errors;
mod extend;
mod faults;
mod files;
mod follow;
mod inadequate;
mod interval;
mod job;
mod job_status;
mod jobs;
mod output;
mod plan;
mod predict;
mod progress;
mod raw_table;
mod records;
mod refit;
mod rehearse;
mod report;
mod result;
mod short_id;
mod signed_job;
mod submit;
mod temporary;
mod verify_ledger;

use std::ffi::OsString;
use std::process::ExitCode;

use conclave_proto::error::Fault;

use crate::faults::{as_json, wants_json};
use crate::output::note;
use crate::progress::print as print_event;

/// Runs the command line in `args`, the program's name first, and returns the exit code: 0 success, 2 invalid input, 3
/// refused by policy or budget, 4 a party or the coordinator is unreachable, 1 anything else.
///
/// The demo starts its daemons as children of the running executable; [`main_as`] names another program.
pub fn main_from<I>(args: I) -> ExitCode
where
    I: IntoIterator<Item = OsString>,
{
    let args: Vec<OsString> = args.into_iter().collect();
    let rest = || args.iter().skip(2).cloned();
    match args.get(1).and_then(|word| word.to_str()) {
        Some("__coordinator") => {
            let name = OsString::from("conclave-coordinator");
            conclave_coordinator::cli_main(std::iter::once(name).chain(rest()))
        }
        Some("__party") => conclave_party::cli_main(rest()),
        _ => {
            let json = wants_json(&args);
            match cli::run(args, json) {
                Ok(code) => code,
                Err(fault) => print_fault(&fault, json),
            }
        }
    }
}

/// Runs the command line as [`main_from`], within a program whose executable is not Conclave, and returns the exit code as a
/// number. `program` is the command that starts this command line again, its first words.
pub fn main_as<I>(program: Vec<OsString>, args: I) -> u8
where
    I: IntoIterator<Item = OsString>,
{
    demo::start_children_by(program);
    let code = main_from(args);
    (0..=u8::MAX).find(|number| ExitCode::from(*number) == code).unwrap_or(1)
}

fn print_fault(fault: &Fault, json: bool) -> ExitCode {
    if json {
        print_event("error", as_json(fault))
    } else {
        note!("conclave: {fault}")
    }
    ExitCode::from(fault.code.exit_code())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(args: &[&str]) -> String {
        format!("{:?}", main_from(args.iter().map(OsString::from)))
    }

    #[test]
    fn the_hidden_words_reach_the_daemons() {
        let (done, wrong) = (format!("{:?}", ExitCode::SUCCESS), format!("{:?}", ExitCode::from(2)));
        for daemon in ["__coordinator", "__party"] {
            assert_eq!(code(&["conclave", daemon, "run", "--help"]), done);
            assert_eq!(code(&["conclave", daemon, "run", "--config", "/nowhere/x.toml"]), wrong);
        }
        assert_eq!(code(&["conclave", "--help"]), done);
        assert_eq!(code(&["conclave", "nonsense"]), wrong);
    }
}
