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
    /// The second moments of a record's predictors and outcome: the upper triangle of a symmetric matrix, row after row.
    Moments {
        /// Rows of the matrix, 1 to [`QueryKind::MAX_ORDER`].
        order: u32,
    },
    /// The gradient of the log likelihood at a point, in a frame that the query gives.
    Gradient {
        /// Parameters, 1 to [`QueryKind::MAX_ORDER`].
        parameters: u32,
    },
    /// The expected information at a point: the upper triangle of a symmetric matrix, row after row.
    Curvature {
        /// Parameters, 1 to [`QueryKind::MAX_ORDER`].
        parameters: u32,
    },
    /// What is left of a step's log likelihood ratio once the gradient at its middle is taken off, each record's as its clipped vector of
    /// the lattice has it.
    Remainder {
        /// Parameters, 1 to [`QueryKind::MAX_ORDER`].
        parameters: u32,
    },
    /// The log likelihood ratio of a step over a hidden random sample of the units (Poisson subsampling, at the job's `batch`).
    SampledRatio,
    /// The gradient of the log likelihood at a point over a hidden random sample of the units, in a frame that the query gives.
    SampledGradient {
        /// Parameters, 1 to [`QueryKind::MAX_ORDER`].
        parameters: u32,
    },
    /// The sum over all units of the squares of their parts of a step's log likelihood ratio, each in units of 1 / [`QueryKind::SQUARE_UNITS`] of the
    /// square of the most that one unit contributes to the ratio.
    SecondMoment,
    /// One of the query's candidates, drawn by the exponential mechanism: its number.
    Choice {
        /// Candidates, 1 to [`QueryKind::MAX_CANDIDATES`].
        candidates: u32,
    },
    /// How many units of privacy lie in each cell of contingency tables, each counted as [`QueryKind::COUNT_UNIT`].
    Table {
        /// Cells of all tables, 1 to [`QueryKind::MAX_COMPONENTS`].
        cells: u32,
    },
}

/// The points that a query names, besides what else its numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Points {
    /// None: the sum is the same whatever theta is.
    None,
    /// One, theta; what stands in the place of theta' says how the answer is scaled.
    One,
    /// The two ends of a step.
    Two,
    /// The two ends of a step and its middle, one after the other: theta, middle, theta'.
    Three,
}

impl QueryKind {
    /// What one unit of privacy adds to a clip count, lattice units: as small as it may be with noise scales of at least 2^20.
    pub const COUNT_UNIT: u64 = 1 << 20;
    /// What the square of one unit's part is at most, lattice units.
    pub const SQUARE_UNITS: u64 = 1 << 30;
    /// The most components of a statistic, and the most cells of tables.
    pub const MAX_COMPONENTS: u32 = 1 << 16;
    /// The most parameters of a gradient or a curvature, and the most rows of moments.
    pub const MAX_ORDER: u32 = 128;
    /// The most candidates of a choice.
    pub const MAX_CANDIDATES: u32 = 1 << 16;
    /// The most numbers of a choice's candidates: a message of them is 2 MiB.
    pub const MOST_CANDIDATE_NUMBERS: usize = 1 << 18;
    /// This stands for a ratio over a sample; plus the number of parameters, for such a gradient.
    const SAMPLED: u32 = 1 << 28;
    /// This, plus the number of candidates, stands for a choice.
    const CHOICES: u32 = 1 << 27;
    /// This stands for a second moment.
    const SQUARES: u32 = 1 << 26;
    /// Numbers from here on stand for vectors: this, plus four times their order (rows, parameters or cells), plus 0 for
    /// moments, 1 for a gradient, 2 for a curvature, 3 for tables.
    const VECTORS: u32 = 1 << 30;
    /// This, plus the number of parameters, stands for a remainder.
    const REMAINDERS: u32 = 1 << 29;

    /// The number that stands for the kind in ledgers and digests: 0 for a ratio, 1 for a clip count, 2 + j for component j, and
    /// from 2^30 on a vector's kind in the last two bits, its order before them; a remainder is 2^29 and its parameters.
    #[must_use]
    pub fn code(self) -> u32 {
        let vector = |of: u32, order: u32| Self::VECTORS + 4 * order.min(Self::MAX_COMPONENTS) + of;
        match self {
            Self::Ratio => 0,
            Self::ClipCount => 1,
            Self::Statistic { component } => 2_u32.saturating_add(component),
            Self::Moments { order } => vector(0, order),
            Self::Gradient { parameters } => vector(1, parameters),
            Self::Curvature { parameters } => vector(2, parameters),
            Self::Table { cells } => vector(3, cells),
            Self::Remainder { parameters } => Self::REMAINDERS + parameters.min(Self::MAX_COMPONENTS),
            Self::SampledRatio => Self::SAMPLED,
            Self::SampledGradient { parameters } => Self::SAMPLED + parameters.clamp(1, Self::MAX_COMPONENTS),
            Self::SecondMoment => Self::SQUARES,
            Self::Choice { candidates } => Self::CHOICES + candidates.min(Self::MAX_CANDIDATES),
        }
    }

    /// The kind of that number.
    #[must_use]
    pub fn from_code(code: u32) -> Option<Self> {
        if let Some(vector) = code.checked_sub(Self::VECTORS) {
            let order = vector / 4;
            let (kind, most) = match vector % 4 {
                0 => (Self::Moments { order }, Self::MAX_ORDER),
                1 => (Self::Gradient { parameters: order }, Self::MAX_ORDER),
                2 => (Self::Curvature { parameters: order }, Self::MAX_ORDER),
                _ => (Self::Table { cells: order }, Self::MAX_COMPONENTS),
            };
            return Some(kind).filter(|_| (1..=most).contains(&order));
        }
        if let Some(parameters) = code.checked_sub(Self::REMAINDERS) {
            return Some(Self::Remainder { parameters }).filter(|_| (1..=Self::MAX_ORDER).contains(&parameters));
        }
        if let Some(parameters) = code.checked_sub(Self::SAMPLED) {
            let gradient = Some(Self::SampledGradient { parameters }).filter(|_| parameters <= Self::MAX_ORDER);
            return if parameters == 0 { Some(Self::SampledRatio) } else { gradient };
        }
        if let Some(candidates) = code.checked_sub(Self::CHOICES) {
            return Some(Self::Choice { candidates }).filter(|_| (1..=Self::MAX_CANDIDATES).contains(&candidates));
        }
        match code {
            Self::SQUARES => Some(Self::SecondMoment),
            0 => Some(Self::Ratio),
            1 => Some(Self::ClipCount),
            _ => Some(Self::Statistic { component: code - 2 }).filter(|_| code - 2 < Self::MAX_COMPONENTS),
        }
    }

    /// Integers in an answer: the components that the sum has, each with noise of its own. Public.
    #[must_use]
    pub fn length(self) -> usize {
        let triangle = |order: u32| order as usize * (order as usize + 1) / 2;
        match self {
            Self::Ratio
            | Self::SampledRatio
            | Self::SecondMoment
            | Self::ClipCount
            | Self::Statistic { .. }
            | Self::Remainder { .. }
            | Self::Choice { .. } => 1,
            Self::Moments { order } => triangle(order),
            Self::Curvature { parameters } => triangle(parameters),
            Self::Gradient { parameters } | Self::SampledGradient { parameters } => parameters as usize,
            Self::Table { cells } => cells as usize,
        }
    }

    /// The most candidates in so many parameters that one message holds.
    #[must_use]
    pub fn most_candidates(dimension: usize) -> u32 {
        let held = Self::MOST_CANDIDATE_NUMBERS / (dimension + 1);
        u32::try_from(held).unwrap_or(u32::MAX).min(Self::MAX_CANDIDATES)
    }

    /// The points that a query of this kind names.
    #[must_use]
    pub fn points(self) -> Points {
        match self {
            Self::Ratio | Self::SampledRatio | Self::SecondMoment | Self::ClipCount => Points::Two,
            Self::Gradient { .. } | Self::SampledGradient { .. } | Self::Curvature { .. } | Self::Choice { .. } => Points::One,
            Self::Remainder { .. } => Points::Three,
            Self::Statistic { .. } | Self::Moments { .. } | Self::Table { .. } => Points::None,
        }
    }

    /// How far the sum moves between neighbours, in sensitivities of the query: those of a ratio, a remainder and a gradient bound one
    /// unit's part, which counts `factor` times there ([`crate::accounting::Adjacency::factor`]); of other kinds it already
    /// bounds what the whole sum moves.
    #[must_use]
    pub fn moves(self, factor: u64) -> u64 {
        match self {
            Self::Ratio | Self::SampledRatio | Self::Remainder { .. } | Self::Gradient { .. } | Self::SampledGradient { .. } => {
                factor
            }
            _ => 1,
        }
    }

    /// The standard deviation of noise of scale `s`: of a ratio and a remainder in log-likelihood units, of a statistic in widths of its range, of
    /// counts in units of privacy, of second moments of ratios in squares of what one unit contributes at most, of moments and curvature in units of a product of two numbers in [-1, 1], of a gradient in
    /// what one unit contributes at most.
    #[must_use]
    pub fn noise_sd(self, s: NoiseScale) -> f64 {
        match self {
            Self::Ratio
            | Self::SampledRatio
            | Self::Remainder { .. }
            | Self::Statistic { .. }
            | Self::Moments { .. }
            | Self::Curvature { .. }
            | Self::Choice { .. } => s.sd(),
            Self::ClipCount | Self::Table { .. } => s.units() as f64 / Self::COUNT_UNIT as f64,
            Self::SecondMoment => s.units() as f64 / Self::SQUARE_UNITS as f64,
            Self::Gradient { .. } | Self::SampledGradient { .. } => s.units() as f64 / GRADIENT_UNITS as f64,
        }
    }

    /// Whether an owner's least noise, which is in log-likelihood units, is a limit to this kind. A vector is asked at a part of the
    /// budget each, and the remainder beside it moves far less than a ratio, as do second moments beside the ratios that they are of: the budget is what limits them.
    #[must_use]
    pub fn has_least_noise(self) -> bool {
        matches!(self, Self::Ratio | Self::SampledRatio | Self::ClipCount | Self::Statistic { .. })
    }

    /// Whether it is asked of a hidden random sample of the units, in a place of a block that was charged ahead.
    #[must_use]
    pub fn is_sampled(self) -> bool {
        matches!(self, Self::SampledRatio | Self::SampledGradient { .. })
    }

    /// The word by which an owner admits the kind: `ratio`, `statistic`, `moments`, `score`, `table`, `remainder` or `choice`. A clip count and a second moment
    /// go with the ratios that they are of, a curvature with the score; over a sample a ratio and a score are what they are over all.
    #[must_use]
    pub fn release(self) -> &'static str {
        match self {
            Self::Ratio | Self::SampledRatio | Self::SecondMoment | Self::ClipCount => "ratio",
            Self::Statistic { .. } => "statistic",
            Self::Moments { .. } => "moments",
            Self::Gradient { .. } | Self::SampledGradient { .. } | Self::Curvature { .. } => "score",
            Self::Choice { .. } => "choice",
            Self::Table { .. } => "table",
            Self::Remainder { .. } => "remainder",
        }
    }

    /// The words that [`QueryKind::release`] gives.
    pub const RELEASES: [&'static str; 7] = ["ratio", "statistic", "moments", "score", "table", "remainder", "choice"];
}

/// What one record contributes to a gradient at most, in lattice units and L2: 2^28. Squares of as many components as a gradient
/// may have add up to 2^63 at most.
pub const GRADIENT_UNITS: u64 = 1 << 28;

/// As an owner reads it: `ratio`, `clip count` or `statistic 3`.
impl std::fmt::Display for QueryKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ratio => f.write_str("ratio"),
            Self::ClipCount => f.write_str("clip count"),
            Self::Statistic { component } => write!(f, "statistic {component}"),
            Self::Moments { order } => write!(f, "moments of {order} columns"),
            Self::Gradient { parameters } => write!(f, "gradient of {parameters} parameters"),
            Self::Curvature { parameters } => write!(f, "curvature of {parameters} parameters"),
            Self::Table { cells } => write!(f, "table of {cells} cells"),
            Self::Remainder { parameters } => write!(f, "remainder of {parameters} parameters"),
            Self::SampledRatio => f.write_str("ratio over a sample"),
            Self::SecondMoment => f.write_str("second moment of ratios"),
            Self::SampledGradient { parameters } => write!(f, "gradient of {parameters} parameters over a sample"),
            Self::Choice { candidates } => write!(f, "choice of {candidates} candidates"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn codes_stand_for_kinds_one_to_one() {
        for code in 0..QueryKind::MAX_COMPONENTS + 2 {
            assert_eq!(QueryKind::from_code(code).map(QueryKind::code), Some(code));
        }
        assert_eq!(QueryKind::from_code(QueryKind::MAX_COMPONENTS + 2), None);
        assert_eq!(QueryKind::from_code(u32::MAX), None);
        for vectors in 0..4 {
            let most = if vectors == 3 { QueryKind::MAX_COMPONENTS } else { QueryKind::MAX_ORDER };
            let code = |order: u32| (1 << 30) + 4 * order + vectors;
            for order in 1..=most {
                let kind = QueryKind::from_code(code(order)).unwrap();
                assert_eq!(kind.code(), code(order));
                assert!(kind.length() >= order as usize && QueryKind::RELEASES.contains(&kind.release()));
            }
            assert_eq!((QueryKind::from_code(code(0)), QueryKind::from_code(code(most + 1))), (None, None));
        }
        for parameters in 1..=QueryKind::MAX_ORDER {
            let kind = QueryKind::Remainder { parameters };
            assert_eq!((QueryKind::from_code(kind.code()), kind.length()), (Some(kind), 1));
            assert!(QueryKind::RELEASES.contains(&kind.release()));
        }
        for code in (0..=QueryKind::MAX_ORDER).map(|more| (1 << 28) + more) {
            let kind = QueryKind::from_code(code).unwrap();
            assert!(kind.code() == code && kind.is_sampled() && QueryKind::RELEASES.contains(&kind.release()));
        }
        for candidates in [1, 2, QueryKind::MAX_CANDIDATES] {
            let kind = QueryKind::Choice { candidates };
            assert_eq!((QueryKind::from_code(kind.code()), kind.length()), (Some(kind), 1));
            assert!(QueryKind::RELEASES.contains(&kind.release()));
        }
        for none in [1 << 27, (1 << 27) + QueryKind::MAX_CANDIDATES + 1, (1 << 28) + QueryKind::MAX_ORDER + 1] {
            assert_eq!(QueryKind::from_code(none), None);
        }
        assert_eq!(QueryKind::from_code(1 << 29), None);
        assert_eq!(QueryKind::from_code((1 << 29) + QueryKind::MAX_ORDER + 1), None);
        assert_eq!(QueryKind::Curvature { parameters: 3 }.length(), 6);
        assert_eq!(QueryKind::Statistic { component: 3 }.to_string(), "statistic 3");
    }
}
