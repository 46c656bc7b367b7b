//! A finding of one check, and what to do about it.

use serde::Serialize;

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Nothing to do.
    Ok,
    /// It works, and something should be done about it.
    Warn,
    /// The daemon can't work like this.
    Fail,
    /// It could not be looked at, or does not apply.
    Skipped,
}

impl Outcome {
    /// In a word, for the table.
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

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check's stable name, for programs.
    pub code: &'static str,
    /// How it came out.
    pub result: Outcome,
    /// What was found, in a sentence.
    pub found: String,
    /// What to do about it; empty where there is nothing to do.
    pub remedy: String,
    /// Whether it says something about the records, and so is for the owner's eyes alone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

impl Finding {
    /// Nothing to do.
    pub fn ok(code: &'static str, found: impl Into<String>) -> Self {
        Self { code, result: Outcome::Ok, found: found.into(), remedy: String::new(), private: false }
    }

    /// It works, and something should be done.
    pub fn warn(code: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { result: Outcome::Warn, remedy: remedy.into(), ..Self::ok(code, found) }
    }

    /// The daemon can't work like this.
    pub fn fail(code: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { result: Outcome::Fail, remedy: remedy.into(), ..Self::ok(code, found) }
    }

    /// It could not be looked at, or does not apply.
    pub fn skipped(code: &'static str, why: impl Into<String>) -> Self {
        Self { result: Outcome::Skipped, ..Self::ok(code, why) }
    }

    /// For the owner's eyes alone.
    #[must_use]
    pub fn private(mut self) -> Self {
        self.private = true;
        self
    }
}
