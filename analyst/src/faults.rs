//! Faults of the commands.

use std::ffi::OsString;

use conclave_common::text::one_line;
use conclave_proto::error::{ErrorCode, Fault, from_status};
use conclave_proto::v1::JobStatus;
use serde_json::{Value, json};

pub(crate) fn input(message: impl Into<String>) -> Fault {
    Fault::new(ErrorCode::InvalidInput, message)
}

/// Returns a fault of the coordinator or of this machine.
pub(crate) fn internal(message: impl Into<String>) -> Fault {
    Fault::new(ErrorCode::Internal, message)
}

/// Returns the fault in the coordinator's refusal.
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn refused(status: tonic::Status) -> Fault {
    from_status(&status)
}

/// Returns the fault with which a job failed.
pub(crate) fn failure(status: &JobStatus) -> Fault {
    let code = ErrorCode::parse(&status.error_code).unwrap_or(ErrorCode::Internal);
    let reason = if status.error.is_empty() { "no reason was given" } else { &status.error };
    Fault::new(code, format!("the job failed: {}", one_line(reason)))
}

/// Returns true if the arguments of a command ask for JSON: its fault is then printed as JSON, too.
pub(crate) fn wants_json(args: &[OsString]) -> bool {
    args.iter().take_while(|word| *word != "--").any(|word| word == "--json")
}

/// Returns the object of a fault.
pub(crate) fn as_json(fault: &Fault) -> Value {
    json!({ "code": fault.code.as_str(), "party": fault.party, "message": fault.message, "remedy": fault.remedy })
}

/// Returns the fault of a command line that the parser refuses: its first paragraph, without the usage.
pub(crate) fn wrong_options(error: &clap::Error) -> Fault {
    let text = error.to_string();
    let first = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
    let words: Vec<&str> = first.lines().map(str::trim).collect();
    input(words.join(" ")).with_remedy("`conclave COMMAND --help` lists the options")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_asks_for_json_and_a_file_of_this_name_does_not() {
        let args = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert!(wants_json(&args(&["conclave", "plan", "job.toml", "--json"])));
        assert!(!wants_json(&args(&["conclave", "plan", "--", "--json"])));
    }

    #[test]
    fn a_remedy_stands_apart() {
        let fault = input("epsilon = 40 exceeds 8").with_remedy("lower epsilon").at_party("a");
        assert_eq!(fault.to_string(), "a: epsilon = 40 exceeds 8: lower epsilon");
        let object =
            json!({ "code": "invalid_input", "party": "a", "message": "epsilon = 40 exceeds 8", "remedy": "lower epsilon" });
        assert_eq!(as_json(&fault), object);
        assert_eq!(as_json(&internal("x"))["remedy"], Value::Null);
    }
}
