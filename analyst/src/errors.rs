//! `conclave errors`: the stable error codes.

use std::process::ExitCode;

use clap::Args;
use conclave_pages::table::{Cell, Column, Table};
use conclave_proto::error::{ErrorCode, Fault};
use serde_json::{Value, json};

use crate::output::show;

/// List the stable error codes, with the exit code of each
///
/// With --json a command that fails prints {"error": {"code", "party", "message", "remedy"}} on standard error. Programs act on the
/// code; the message and the remedy are for people.
#[derive(Args)]
pub(crate) struct ErrorsArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ErrorsArgs) -> Result<ExitCode, Fault> {
    let columns: [Column<'_, ErrorCode>; 3] = [
        ("code", &|code| Cell::text(code.as_str())),
        ("exit", &|code| Cell::number(code.exit_code().to_string())),
        ("meaning", &|code| Cell::text(meaning(*code))),
    ];
    let rows =
        ErrorCode::ALL.map(|code| json!({ "code": code.as_str(), "exit_code": code.exit_code(), "meaning": meaning(code) }));
    let text = Table::new("", &ErrorCode::ALL, &columns).text();
    show(args.json, &json!({ "errors": Value::from(rows.to_vec()) }), &text.trim_end());
    Ok(ExitCode::SUCCESS)
}

fn meaning(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::InvalidInput => "a job, a configuration, a data file or an option is invalid",
        ErrorCode::NotFound => "the job or the file does not exist",
        ErrorCode::Policy => "an owner's policy forbids the request",
        ErrorCode::Revoked => {
            "an owner has withdrawn its consent or its trust in a certificate, or its permit for the job has ended"
        }
        ErrorCode::Budget => "a privacy budget does not cover the request",
        ErrorCode::Unauthenticated => "the certificate does not authorise the request",
        ErrorCode::Unreachable => "a party or the coordinator cannot be reached",
        ErrorCode::Conflict => "the id was used before for different content",
        ErrorCode::Internal => "anything else: a fault of the software or of its machine",
    }
}
