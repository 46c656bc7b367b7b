//! The kind of a query: the sum that its release reports with noise.

use super::NoiseScale;

/// The sum that a query requests. Each answer is an integer sum over a party's units of privacy, plus noise of the query's scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum QueryKind {
    /// The log likelihood ratio of a step (Algorithms 1 and 2).
    #[default]
    Ratio,
    /// The number of units of privacy whose ratio the clip changes, each counted as [`QueryKind::COUNT_UNIT`].
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
    /// The gradient of the log likelihood at a point, in a frame that is part of the query.
    Gradient {
        /// Parameters, 1 to [`QueryKind::MAX_ORDER`].
        parameters: u32,
    },
    /// The expected information at a point: the upper triangle of a symmetric matrix, row after row.
    Curvature {
        /// Parameters, 1 to [`QueryKind::MAX_ORDER`].
        parameters: u32,
    },
    /// The step's log likelihood ratio less the gradient at its midpoint times the step. Each record's gradient is its clipped
    /// lattice vector.
    Remainder {
        /// Parameters, 1 to [`QueryKind::MAX_ORDER`].
        parameters: u32,
    },
    /// The log likelihood ratio of a step over a hidden random sample of the units (Poisson subsampling, at the job's `batch`).
    SampledRatio,
    /// The gradient of the log likelihood at a point over a hidden random sample of the units, in a frame that is part of the
    /// query.
    SampledGradient {
        /// Parameters, 1 to [`QueryKind::MAX_ORDER`].
        parameters: u32,
    },
    /// The sum over all units of the squared contributions to a step's log likelihood ratio. The unit is 1 /
    /// [`QueryKind::SQUARE_UNITS`] of the largest squared contribution.
    SecondMoment,
    /// The number of one of the query's candidates, drawn by the exponential mechanism.
    Choice {
        /// Candidates, 1 to [`QueryKind::MAX_CANDIDATES`].
        candidates: u32,
    },
    /// The number of units of privacy in each cell of contingency tables, each counted as [`QueryKind::COUNT_UNIT`].
    Table {
        /// Cells of all tables, 1 to [`QueryKind::MAX_COMPONENTS`].
        cells: u32,
    },
}

/// The points among a query's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Points {
    /// None: the sum does not depend on theta.
    None,
    /// One, theta; the numbers in place of theta' scale the answer.
    One,
    /// The two ends of a step.
    Two,
    /// The two ends of a step and its midpoint, in the order theta, midpoint, theta'.
    Three,
}

impl QueryKind {
    /// The contribution of one unit of privacy to a clip count, in lattice units. It is the smallest useful value, since noise
    /// scales are at least 2^20.
    pub const COUNT_UNIT: u64 = 1 << 20;
    /// The largest squared contribution of one unit, in lattice units.
    pub const SQUARE_UNITS: u64 = 1 << 30;
    /// The most components of a statistic, and the most cells of tables.
    pub const MAX_COMPONENTS: u32 = 1 << 16;
    /// The most parameters of a gradient or a curvature, and the most rows of moments.
    pub const MAX_ORDER: u32 = 128;
    /// The most candidates of a choice.
    pub const MAX_CANDIDATES: u32 = 1 << 16;
    /// The largest total count of numbers of a choice's candidates: 2 MiB in a message.
    pub const MOST_CANDIDATE_NUMBERS: usize = 1 << 18;
    /// The code of a ratio over a sample. The code of a gradient over a sample adds the number of parameters.
    const SAMPLED: u32 = 1 << 28;
    /// The code of a choice, less its number of candidates.
    const CHOICES: u32 = 1 << 27;
    /// The code of a second moment.
    const SQUARES: u32 = 1 << 26;
    /// The first code of vectors. A vector's code adds four times its order (rows, parameters or cells), and 0 for moments, 1 for
    /// a gradient, 2 for a curvature, 3 for tables.
    const VECTORS: u32 = 1 << 30;
    /// The code of a remainder, less its number of parameters.
    const REMAINDERS: u32 = 1 << 29;

    /// Returns the number that stands for the kind in ledgers and digests.
    ///
    /// It is 0 for a ratio, 1 for a clip count and 2 + j for component j. From 2^30 on, the last two bits hold the kind of a
    /// vector and the bits before them its order. A remainder is 2^29 plus its number of parameters.
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

    /// Returns the kind that a code stands for; `None` if there is none.
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

    /// Returns the number of integers in an answer, each with its own noise. It is public.
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

    /// Returns the largest number of candidates in `dimension` parameters that one message can hold.
    #[must_use]
    pub fn most_candidates(dimension: usize) -> u32 {
        let held = Self::MOST_CANDIDATE_NUMBERS / (dimension + 1);
        u32::try_from(held).unwrap_or(u32::MAX).min(Self::MAX_CANDIDATES)
    }

    /// Returns the points that a query of this kind names.
    #[must_use]
    pub fn points(self) -> Points {
        match self {
            Self::Ratio | Self::SampledRatio | Self::SecondMoment | Self::ClipCount => Points::Two,
            Self::Gradient { .. } | Self::SampledGradient { .. } | Self::Curvature { .. } | Self::Choice { .. } => Points::One,
            Self::Remainder { .. } => Points::Three,
            Self::Statistic { .. } | Self::Moments { .. } | Self::Table { .. } => Points::None,
        }
    }

    /// Returns the distance that the sum moves between neighbours, in multiples of the query's sensitivity.
    ///
    /// The sensitivity of a ratio, a remainder and a gradient bounds one unit's contribution, so the result is `factor`
    /// ([`crate::accounting::Adjacency::factor`]). The sensitivity of every other kind already bounds the movement of the whole
    /// sum, so the result is 1.
    ///
    /// Proof: `docs/explanation/design.md`, section 2.
    #[must_use]
    pub fn moves(self, factor: u64) -> u64 {
        match self {
            Self::Ratio | Self::SampledRatio | Self::Remainder { .. } | Self::Gradient { .. } | Self::SampledGradient { .. } => {
                factor
            }
            _ => 1,
        }
    }

    /// Returns the standard deviation of noise of scale `s`, in a unit that depends on the kind:
    ///
    /// - ratio and remainder: log-likelihood units;
    /// - statistic: widths of its range;
    /// - counts: units of privacy;
    /// - second moments of ratios: the largest squared contribution of one unit;
    /// - moments and curvature: a product of two numbers in [-1, 1];
    /// - gradient: the largest contribution of one unit.
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

    /// Returns whether an owner's minimum noise, which is in log-likelihood units, applies to this kind.
    ///
    /// It does not apply to vectors, each of which uses a set part of the budget. Nor does it apply to remainders and second
    /// moments, which move far less than the ratios beside them. The budget limits all of these.
    #[must_use]
    pub fn has_minimum_noise(self) -> bool {
        matches!(self, Self::Ratio | Self::SampledRatio | Self::ClipCount | Self::Statistic { .. })
    }

    /// Returns whether the query is over a hidden random sample of the units, and so part of a block that was charged when it was
    /// opened.
    #[must_use]
    pub fn is_sampled(self) -> bool {
        matches!(self, Self::SampledRatio | Self::SampledGradient { .. })
    }

    /// Returns the word by which an owner permits the kind: `ratio`, `statistic`, `moments`, `score`, `table`, `remainder` or
    /// `choice`.
    ///
    /// The word of a clip count and of a second moment is `ratio`, that of a curvature is `score`. A ratio and a score over a
    /// sample have the same words as over all units.
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

    /// All words that [`QueryKind::release`] returns.
    pub const RELEASES: [&'static str; 7] = ["ratio", "statistic", "moments", "score", "table", "remainder", "choice"];
}

/// The largest contribution of one record to a gradient, in lattice units and L2: 2^28. The squares of all components of a
/// gradient sum to at most 2^63.
pub const GRADIENT_UNITS: u64 = 1 << 28;

/// Writes the kind as an owner reads it: `ratio`, `clip count` or `statistic 3`.
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
