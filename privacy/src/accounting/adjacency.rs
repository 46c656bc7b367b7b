//! Adjacency says which data sets are neighbours, and so how far a sum moves between them.

/// Which data sets are neighbours, that is, what an adversary can't tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Adjacency {
    /// One unit is replaced by another. The number of units is public, and the sum moves by at most `2 K_t`.
    #[default]
    Replace,
    /// One unit is added or removed. The number of units is not public, and the sum moves by at most `K_t`.
    AddRemove,
}

impl Adjacency {
    /// The name in configuration files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Replace => "replace",
            Self::AddRemove => "add-remove",
        }
    }

    /// How many times `K_t` the sum moves between neighbours.
    #[must_use]
    pub fn factor(self) -> u64 {
        match self {
            Self::Replace => 2,
            Self::AddRemove => 1,
        }
    }
}
