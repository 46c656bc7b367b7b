//! A concern about the records, with a remedy.

/// A possible problem in the records, for their owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concern {
    /// True if a job can't use the records as they are.
    pub grave: bool,
    /// The finding, as a clause.
    pub found: String,
    /// The remedy, as a clause.
    pub remedy: &'static str,
}

impl Concern {
    pub(super) fn new(found: String, remedy: &'static str) -> Self {
        Self { grave: false, found, remedy }
    }

    pub(super) fn grave(found: String, remedy: &'static str) -> Self {
        Self { grave: true, found, remedy }
    }
}

/// Formats `found: remedy`.
impl std::fmt::Display for Concern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.found, self.remedy)
    }
}
