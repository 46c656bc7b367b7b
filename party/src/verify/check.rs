//! A check of a job, and how it came out.

use serde::Serialize;

/// Longest sentence of the coordinator's that is shown.
pub(super) const LONGEST_WORD: usize = 300;

/// What became of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    /// It holds.
    Holds,
    /// It does not: the coordinator lied, or its log is damaged.
    Fails,
    /// It could not be made.
    Skipped,
}

impl Outcome {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Skipped => "skipped",
        }
    }
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Check {
    /// `signature`, `consent`, `answers`, `proposals`, `draws` or `result`; `roster` and `sums` too where answers leave masked; `log` where the
    /// coordinator can't show it.
    pub(crate) name: &'static str,
    /// What became of it.
    pub(crate) result: Outcome,
    /// What was compared, or what is wrong.
    pub(crate) detail: String,
}

impl Check {
    pub(super) fn holds(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, result: Outcome::Holds, detail: detail.into() }
    }

    pub(super) fn fails(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, result: Outcome::Fails, detail: detail.into() }
    }

    pub(super) fn skipped(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, result: Outcome::Skipped, detail: detail.into() }
    }

    /// What it says is wrong, or else that it holds.
    pub(super) fn of(name: &'static str, wrong: Option<String>, detail: impl Into<String>) -> Self {
        wrong.map_or_else(|| Self::holds(name, detail), |wrong| Self::fails(name, wrong))
    }
}
