//! A job's standing with its owner, and the decider.

/// A job's standing with the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The owner has yet to decide.
    Awaiting,
    /// It may run.
    Approved,
    /// It never ran, and will not.
    Rejected,
    /// It could run, and may not any more.
    Revoked,
}

impl Standing {
    /// Returns the name in the file and in lists.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Awaiting => "awaiting",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Revoked => "revoked",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        [Self::Approved, Self::Rejected, Self::Revoked].into_iter().find(|s| s.as_str() == text)
    }
}

/// The decider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decider {
    /// The owner, by a command.
    Owner,
    /// The limits of the configuration, with `approve = "automatic"`.
    Policy,
}

impl Decider {
    /// Returns the name in the file and in lists.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Policy => "policy",
        }
    }
}
