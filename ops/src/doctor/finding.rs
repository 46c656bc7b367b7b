//! The finding of one check, with its remedy.

use serde::Serialize;
use serde_json::{Value, json};

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// No action is needed.
    Ok,
    /// The daemon works, but action is advisable.
    Warn,
    /// The daemon can't work.
    Fail,
    /// The check was impossible or does not apply.
    Skipped,
}

impl Outcome {
    /// Returns the word for the table.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
            Self::Skipped => "skipped",
        }
    }
}

/// The finding of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check's stable name, for programs.
    pub code: &'static str,
    /// The outcome.
    pub result: Outcome,
    /// The finding in a sentence.
    pub found: String,
    /// The remedy; empty if no action is needed.
    pub remedy: String,
    /// True if the finding depends on the records and is therefore only for the owner.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

fn count(findings: &[Finding], result: Outcome) -> usize {
    findings.iter().filter(|finding| finding.result == result).count()
}

/// Returns the findings as one JSON object.
#[must_use]
pub fn object(findings: &[Finding]) -> Value {
    let [failed, warnings] = [Outcome::Fail, Outcome::Warn].map(|result| count(findings, result));
    json!({ "good": failed == 0, "failed": failed, "warnings": warnings, "checks": findings })
}

/// Returns the number of failures in words.
///
/// # Errors
/// A check failed.
pub fn verdict(findings: &[Finding]) -> Result<(), String> {
    match count(findings, Outcome::Fail) {
        0 => Ok(()),
        1 => Err("one check failed; see the table".to_owned()),
        failed => Err(format!("{failed} checks failed; see the table")),
    }
}

impl Finding {
    /// Creates a finding that needs no action.
    pub fn ok(code: &'static str, found: impl Into<String>) -> Self {
        Self { code, result: Outcome::Ok, found: found.into(), remedy: String::new(), private: false }
    }

    /// Creates a warning.
    pub fn warn(code: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { result: Outcome::Warn, remedy: remedy.into(), ..Self::ok(code, found) }
    }

    /// Creates a failure.
    pub fn fail(code: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { result: Outcome::Fail, remedy: remedy.into(), ..Self::ok(code, found) }
    }

    /// Creates a finding for a check that was impossible or does not apply.
    pub fn skipped(code: &'static str, why: impl Into<String>) -> Self {
        Self { result: Outcome::Skipped, ..Self::ok(code, why) }
    }

    /// Marks the finding as only for the owner.
    #[must_use]
    pub fn private(mut self) -> Self {
        self.private = true;
        self
    }
}
