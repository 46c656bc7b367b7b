//! A concern about the records, and what to do about it.

/// What looks wrong about the records, for their owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concern {
    /// Whether a job can make nothing of the records as they are.
    pub grave: bool,
    /// What was found, in a clause.
    pub found: String,
    /// What to do about it, in a clause.
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

/// `found: remedy`.
impl std::fmt::Display for Concern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.found, self.remedy)
    }
}
