//! A query's kind says what a release is a noisy sum of.

use super::NoiseScale;

/// What a party is asked for: each answer is an integer sum over its units of privacy, plus noise of the query's own scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum QueryKind {
    /// The log likelihood ratio of a step (Algorithms 1 and 2).
    #[default]
    Ratio,
    /// How many units of privacy a step's clip bites at, each counted as [`QueryKind::COUNT_UNIT`].
    ClipCount,
    /// One component of the sufficient statistic (Algorithm 3).
    Statistic {
        /// The component, from 0, below [`QueryKind::MAX_COMPONENTS`].
        component: u32,
    },
}

impl QueryKind {
    /// What one unit of privacy adds to a clip count, lattice units: as small as it may be with noise scales of at least 2^20.
    pub const COUNT_UNIT: u64 = 1 << 20;
    /// The most components of a statistic.
    pub const MAX_COMPONENTS: u32 = 1 << 16;

    /// The number that stands for the kind in ledgers and digests: 0 for a ratio, 1 for a clip count, 2 + j for component j.
    #[must_use]
    pub fn code(self) -> u32 {
        match self {
            Self::Ratio => 0,
            Self::ClipCount => 1,
            Self::Statistic { component } => 2_u32.saturating_add(component),
        }
    }

    /// Integers in an answer: the components that the sum has, each with noise of its own. Public.
    #[must_use]
    pub fn length(self) -> usize {
        match self {
            Self::Ratio | Self::ClipCount | Self::Statistic { .. } => 1,
        }
    }

    /// Whether a query of this kind is asked of a step, from one point to another; else it is asked of no point at all.
    #[must_use]
    pub fn is_of_a_step(self) -> bool {
        !matches!(self, Self::Statistic { .. })
    }

    /// How far the sum moves between neighbours, in sensitivities of the query: a ratio's bounds one unit's part, which counts
    /// `factor` times there ([`crate::accounting::Adjacency::factor`]); of other kinds it already bounds what the whole sum moves.
    #[must_use]
    pub(crate) fn moves(self, factor: u64) -> u64 {
        match self {
            Self::Ratio => factor,
            Self::ClipCount | Self::Statistic { .. } => 1,
        }
    }

    /// The standard deviation of noise of scale `s`: of a ratio in log-likelihood units, of a statistic in widths of its range, of a
    /// clip count in units of privacy.
    #[must_use]
    pub fn noise_sd(self, s: NoiseScale) -> f64 {
        match self {
            Self::Ratio | Self::Statistic { .. } => s.sd(),
            Self::ClipCount => s.units() as f64 / Self::COUNT_UNIT as f64,
        }
    }

    /// The kind of that number.
    #[must_use]
    pub fn from_code(code: u32) -> Option<Self> {
        match code {
            0 => Some(Self::Ratio),
            1 => Some(Self::ClipCount),
            _ => Some(Self::Statistic { component: code - 2 }).filter(|_| code - 2 < Self::MAX_COMPONENTS),
        }
    }
}

/// As an owner reads it: `ratio`, `clip count` or `statistic 3`.
impl std::fmt::Display for QueryKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ratio => f.write_str("ratio"),
            Self::ClipCount => f.write_str("clip count"),
            Self::Statistic { component } => write!(f, "statistic {component}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_stand_for_kinds_one_to_one() {
        for code in 0..QueryKind::MAX_COMPONENTS + 2 {
            assert_eq!(QueryKind::from_code(code).map(QueryKind::code), Some(code));
        }
        assert_eq!(QueryKind::from_code(QueryKind::MAX_COMPONENTS + 2), None);
        assert_eq!(QueryKind::from_code(u32::MAX), None);
        assert_eq!(QueryKind::Statistic { component: 3 }.to_string(), "statistic 3");
    }
}
