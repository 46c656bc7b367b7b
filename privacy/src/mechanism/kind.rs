//! The kind of a query: the sum that its release reports with noise.

use super::NoiseScale;

/// The sum that a query requests. Each answer except a choice is an integer sum over a party's units of privacy, plus noise of
/// the query's scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum QueryKind {
    /// The log likelihood ratio of a step (Algorithms 1 and 2).
    #[default]
    Ratio,
    /// The number of units of privacy with at least one record whose ratio the clip changes, each counted as
    /// [`QueryKind::COUNT_UNIT`].
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
    /// The gradient of the log likelihood at a point, summed over a hidden random sample of the units. Its frame is part of the
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
    /// The number of units of privacy in each cell of contingency tables, or of one table whose cells depend on a point, each counted
    /// as [`QueryKind::COUNT_UNIT`].
    Table {
        /// Cells of all tables, 1 to [`QueryKind::MAX_COMPONENTS`].
        cells: u32,
    },
}

/// The points among a query's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Points {
    /// No point: the sum does not depend on theta.
    None,
    /// One point, theta. The numbers in the place of theta' scale the answer.
    One,
    /// One point or none, as for [`Points::One`] and [`Points::None`].
    OneOrNone,
    /// The two ends of a step.
    Two,
    /// The two ends of a step and its midpoint, in the order theta, midpoint, theta'.
    Three,
    /// One point, theta_0. The numbers in the place of theta' are the candidates of a choice.
    Candidates,
}

impl QueryKind {
    /// The contribution of one unit of privacy to a clip count, in lattice units. It is the smallest useful value, since noise
    /// scales are at least 2^20.
    pub const COUNT_UNIT: u64 = 1 << 20;
    /// The largest squared contribution of one unit, in lattice units.
    pub const SQUARE_UNITS: u64 = 1 << 30;
    /// The largest number of components of a statistic, and of cells of tables.
    pub const MAX_COMPONENTS: u32 = 1 << 16;
    /// The largest number of parameters of a gradient or a curvature, and of rows of moments.
    pub const MAX_ORDER: u32 = 128;
    /// The largest number of candidates of a choice.
    pub const MAX_CANDIDATES: u32 = 1 << 16;
    /// The largest number of floats in all candidates of a choice, which fill 2 MiB of a message.
    pub const MOST_CANDIDATE_NUMBERS: usize = 1 << 18;

    /// Returns the facts of the kind. A new kind needs an arm here and an entry in [`QueryKind::from_code`].
    fn facts(self) -> Facts {
        match self {
            Self::Ratio => RATIO,
            Self::ClipCount => Facts { name: "clip count", code: 1, bounds_a_contribution: false, noise_unit: COUNTED, ..RATIO },
            Self::Statistic { component } => Facts {
                name: "statistic #",
                release: "statistic",
                code: 2_u32.saturating_add(component),
                size: component,
                sizes: (0, Self::MAX_COMPONENTS - 1),
                points: Points::None,
                bounds_a_contribution: false,
                noise_unit: (1 << 32, "in widths of the statistic's range"),
                ..RATIO
            },
            Self::Moments { order } => {
                Facts { name: "moments of # columns", release: "moments", points: Points::None, ..matrix(0, order) }
            }
            Self::Gradient { parameters } => vector(1, parameters),
            Self::Curvature { parameters } => Facts { name: "curvature of # parameters", ..matrix(2, parameters) },
            Self::Table { cells } => Facts {
                name: "table of # cells",
                release: "table",
                sizes: (1, Self::MAX_COMPONENTS),
                points: Points::OneOrNone,
                bounds_a_contribution: false,
                noise_unit: COUNTED,
                ..vector(3, cells)
            },
            Self::Remainder { parameters } => Facts {
                name: "remainder of # parameters",
                release: "remainder",
                code: REMAINDERS + parameters.min(Self::MAX_COMPONENTS),
                size: parameters,
                sizes: (1, Self::MAX_ORDER),
                points: Points::Three,
                ..RATIO
            },
            Self::SampledRatio => Facts { name: "ratio over a sample", code: SAMPLED, ..RATIO },
            Self::SampledGradient { parameters } => Facts {
                name: "gradient of # parameters over a sample",
                code: SAMPLED + parameters.clamp(1, Self::MAX_COMPONENTS),
                ..vector(1, parameters)
            },
            Self::SecondMoment => Facts {
                name: "second moment of ratios",
                code: SQUARES,
                bounds_a_contribution: false,
                noise_unit: LARGEST_SQUARES,
                ..RATIO
            },
            Self::Choice { candidates } => Facts {
                name: "choice of # candidates",
                release: "choice",
                code: CHOICES + candidates.min(Self::MAX_CANDIDATES),
                size: candidates,
                sizes: (1, Self::MAX_CANDIDATES),
                points: Points::Candidates,
                bounds_a_contribution: false,
                ..RATIO
            },
        }
    }

    /// Returns the number that stands for the kind in ledgers and digests.
    ///
    /// It is 0 for a ratio, 1 for a clip count and 2 + j for component j. A second moment is 2^26. A choice is 2^27 plus its
    /// number of candidates, and a remainder 2^29 plus its number of parameters. A ratio over a sample is 2^28, and a gradient
    /// over a sample 2^28 plus its number of parameters. From 2^30 on, the last two bits hold the kind of a vector, and the
    /// bits before them its order.
    #[must_use]
    pub fn code(self) -> u32 {
        self.facts().code
    }

    /// Returns the kind that a code stands for; `None` if there is none.
    #[must_use]
    pub fn from_code(code: u32) -> Option<Self> {
        let after = |first: u32| code.wrapping_sub(first);
        let size = after(VECTORS) / 4;
        let kinds = [
            Self::Ratio,
            Self::ClipCount,
            Self::Statistic { component: after(2) },
            Self::Moments { order: size },
            Self::Gradient { parameters: size },
            Self::Curvature { parameters: size },
            Self::Table { cells: size },
            Self::Remainder { parameters: after(REMAINDERS) },
            Self::SampledRatio,
            Self::SampledGradient { parameters: after(SAMPLED) },
            Self::SecondMoment,
            Self::Choice { candidates: after(CHOICES) },
        ];
        let stands_for = |facts: Facts| facts.code == code && (facts.sizes.0..=facts.sizes.1).contains(&facts.size);
        kinds.into_iter().find(|kind| stands_for(kind.facts()))
    }

    /// Returns the number of integers in an answer, each with its own noise. It is public.
    #[must_use]
    pub fn length(self) -> usize {
        self.facts().length
    }

    /// Returns the largest number of candidates, of `dimension` parameters each, that one message can hold.
    #[must_use]
    pub fn most_candidates(dimension: usize) -> u32 {
        let held = Self::MOST_CANDIDATE_NUMBERS / (dimension + 1);
        u32::try_from(held).unwrap_or(u32::MAX).min(Self::MAX_CANDIDATES)
    }

    /// Returns the points that a query of this kind names.
    #[must_use]
    pub fn points(self) -> Points {
        self.facts().points
    }

    /// Returns the distance that the sum moves between neighbours, in multiples of the query's sensitivity.
    ///
    /// Theorem, sensitivity: the sums of neighbours are at most this multiple of the sensitivity apart, in L2.
    ///
    /// Where the sensitivity bounds one unit's contribution, as for a ratio, a remainder and a gradient, the result is `factor`
    /// ([`crate::accounting::Adjacency::factor`]). Where it already bounds the movement of the whole sum, the result is 1. A
    /// choice is not priced by it; see [`crate::accounting::PrivacyUnit::range_of_choice`].
    ///
    /// Proof: `docs/explanation/proofs.md`, section 1, which has the distance of each kind and adjacency.
    #[must_use]
    pub fn moves(self, factor: u64) -> u64 {
        if self.facts().bounds_a_contribution { factor } else { 1 }
    }

    /// Returns the standard deviation of noise of scale `s`, in the unit that [`QueryKind::noise_unit`] names.
    #[must_use]
    pub fn noise_sd(self, s: NoiseScale) -> f64 {
        // The unit is a power of two: exact.
        s.units() as f64 / self.facts().noise_unit.0 as f64
    }

    /// Returns the unit of the noise, as an owner reads it.
    #[must_use]
    pub fn noise_unit(self) -> &'static str {
        self.facts().noise_unit.1
    }

    /// Returns whether an owner's minimum noise, which is in log-likelihood units, applies to this kind.
    ///
    /// It applies to ratios, clip counts and statistics. It does not apply to vectors, each of which uses a set part of the
    /// budget. Nor does it apply to remainders and second moments, which move far less than the ratios beside them. A choice
    /// has no noise. The budget limits all of these.
    #[must_use]
    pub fn has_minimum_noise(self) -> bool {
        matches!(self, Self::Ratio | Self::SampledRatio | Self::ClipCount | Self::Statistic { .. })
    }

    /// Returns whether the query is over a hidden random sample of the units. It then belongs to a block, which is charged when
    /// it is opened.
    #[must_use]
    pub fn is_sampled(self) -> bool {
        matches!(self, Self::SampledRatio | Self::SampledGradient { .. })
    }

    /// Returns whether the first ledgers' view of releases names this kind. A ledger replaces its view with the first charge of
    /// any other kind.
    #[must_use]
    pub fn is_of_first_ledgers(self) -> bool {
        matches!(self, Self::Ratio | Self::ClipCount | Self::Statistic { .. }) || self.code() >= VECTORS
    }

    /// Returns the number of candidates of a choice; `None` for a noised sum.
    #[must_use]
    pub fn candidates(self) -> Option<u32> {
        if let Self::Choice { candidates } = self { Some(candidates) } else { None }
    }

    /// Returns the word by which an owner permits the kind: one of [`QueryKind::RELEASES`].
    ///
    /// The word of a clip count and of a second moment is `ratio`, that of a curvature is `score`. A ratio and a score over a
    /// sample have the same words as over all units.
    #[must_use]
    pub fn release(self) -> &'static str {
        self.facts().release
    }

    /// All words that [`QueryKind::release`] returns.
    pub const RELEASES: [&'static str; 7] = ["ratio", "statistic", "moments", "score", "table", "remainder", "choice"];
}

/// The facts about a kind of release that hold for every model.
#[derive(Clone, Copy)]
struct Facts {
    /// Name for an owner; `#` stands for the size.
    name: &'static str,
    /// The word by which an owner permits it.
    release: &'static str,
    /// The number in ledgers, in digests and on the wire, which never changes.
    code: u32,
    /// The number of the kind's components, rows, parameters, candidates or cells; 0 for a kind without any.
    size: u32,
    /// The least and the greatest size.
    sizes: (u32, u32),
    /// The number of integers in an answer.
    length: usize,
    points: Points,
    /// True if the sensitivity bounds one unit's contribution, false if it bounds the movement of the whole sum.
    bounds_a_contribution: bool,
    /// The unit of the noise, in lattice units and in words.
    noise_unit: (u64, &'static str),
}

/// The first code of vectors, whose last two bits hold the kind. The next four constants are the first codes of other kinds.
const VECTORS: u32 = 1 << 30;
const REMAINDERS: u32 = 1 << 29;
const SAMPLED: u32 = 1 << 28;
const CHOICES: u32 = 1 << 27;
const SQUARES: u32 = 1 << 26;
const COUNTED: (u64, &str) = (QueryKind::COUNT_UNIT, "in records or persons counted");
const PRODUCTS: (u64, &str) = (1 << 32, "in products of two numbers between -1 and 1");
const LARGEST_SQUARES: (u64, &str) = (QueryKind::SQUARE_UNITS, "in squares of the largest contribution of one record or person");

/// The facts of a ratio. Other kinds of one integer replace some of them.
const RATIO: Facts = Facts {
    name: "ratio",
    release: "ratio",
    code: 0,
    size: 0,
    sizes: (0, 0),
    length: 1,
    points: Points::Two,
    bounds_a_contribution: true,
    noise_unit: (1 << 32, "in log-likelihood units"),
};

/// Returns the facts of a gradient of `size` parameters. Other vectors replace some of them. `kind` is in the last two bits of
/// the code.
fn vector(kind: u32, size: u32) -> Facts {
    Facts {
        name: "gradient of # parameters",
        release: "score",
        code: VECTORS + 4 * size.min(QueryKind::MAX_COMPONENTS) + kind,
        size,
        sizes: (1, QueryKind::MAX_ORDER),
        length: size as usize,
        points: Points::One,
        noise_unit: (GRADIENT_UNITS, "in units of one record's largest contribution"),
        ..RATIO
    }
}

/// Returns the facts of a symmetric matrix of this order, of which the upper triangle is released.
fn matrix(kind: u32, order: u32) -> Facts {
    let length = order as usize * (order as usize + 1) / 2;
    Facts { length, bounds_a_contribution: false, noise_unit: PRODUCTS, ..vector(kind, order) }
}

/// The largest contribution of one record to a gradient, in lattice units and L2: 2^28. The squares of its components sum to at
/// most 2^56.
pub const GRADIENT_UNITS: u64 = 1 << 28;

/// Writes the kind as an owner reads it: `ratio`, `clip count` or `statistic 3`.
impl std::fmt::Display for QueryKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let facts = self.facts();
        f.write_str(&facts.name.replace('#', &facts.size.to_string()))
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
