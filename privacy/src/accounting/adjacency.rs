//! Adjacency: which data sets are neighbours, and how far a sum moves between them.

/// The relation between data sets that an adversary must not be able to distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Adjacency {
    /// One unit is replaced by another. The number of units is public. A sum of contributions of at most `K_t` moves by at most
    /// `2 K_t`.
    #[default]
    Replace,
    /// One unit is added or removed. The number of units is not public. A sum of contributions of at most `K_t` moves by at
    /// most `K_t`.
    AddRemove,
}

impl Adjacency {
    /// Returns the name used in configuration files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Replace => "replace",
            Self::AddRemove => "add-remove",
        }
    }

    /// Returns the distance that a sum of contributions of at most `K_t` moves between neighbours, in multiples of `K_t`.
    #[must_use]
    pub fn factor(self) -> u64 {
        match self {
            Self::Replace => 2,
            Self::AddRemove => 1,
        }
    }
}
