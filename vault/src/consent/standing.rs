//! A job's standing with its owner, and who decided on it.

/// Where a job stands with the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nobody has decided.
    Awaiting,
    /// It may run.
    Approved,
    /// It never ran, and won't.
    Rejected,
    /// It could run, and must not any more.
    Revoked,
}

impl Standing {
    /// The name in the file and in lists.
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

/// Who decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decider {
    /// The owner, by a command.
    Owner,
    /// The limits of the configuration, with `approve = "automatic"`.
    Policy,
}

impl Decider {
    /// The name in the file and in lists.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Policy => "policy",
        }
    }
}
