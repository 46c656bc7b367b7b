//! The result of a check.

use serde::Serialize;

/// Maximum length of a coordinator's text that is shown.
pub(super) const MAX_TEXT: usize = 300;

/// Outcome of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    /// The check holds.
    Holds,
    /// The check fails: the coordinator lied, or its log is damaged.
    Fails,
    /// The check could not be made.
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
    /// `signature`, `consent`, `answers`, `proposals`, `draws` or `result`; `roster` and `sums` too for masked jobs; `log` if the
    /// coordinator can't show it.
    pub(crate) name: &'static str,
    /// Outcome of the check.
    pub(crate) result: Outcome,
    /// The compared items, or the error.
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

    /// Returns a failed check if there is an error, else one that holds.
    pub(super) fn of(name: &'static str, wrong: Option<String>, detail: impl Into<String>) -> Self {
        wrong.map_or_else(|| Self::holds(name, detail), |wrong| Self::fails(name, wrong))
    }
}
