//! The interface of a model whose scores, information and second moments can be released: sums of integer
//! vectors, each record's held to a public length.

use conclave_privacy::mechanism::{GRADIENT_UNITS, Sensitivity};
use conclave_privacy::pass::LatticeSum;
use conclave_privacy::pass::frame::Frame;
use conclave_privacy::pass::lattice_frame::WholeFrame;
use conclave_privacy::pass::shard::Block;

/// What a bound on the second order is raised by against the rounding of the arithmetic that made it.
const OUTWARD: f64 = 1.0 + 1e-9;
/// The arithmetic's own error in a vector's part along a step, of the most that it can be.
const ARITHMETIC: f64 = 1e-13;

/// A step, and how the integer vectors of the gradient at its middle count along it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Remainder<'a> {
    /// theta, the middle, theta'; one value per parameter each.
    pub points: [&'a [f64]; 3],
    /// The frame of the gradient at the middle.
    pub frame: Frame<'a>,
    /// What a lattice unit of each component of the vector comes to along the step, in log-likelihood units.
    pub weights: &'a [f64],
    /// What is taken off every record besides, in log-likelihood units: the frame's centre along the step.
    pub constant: f64,
    /// What each record's log ratio is multiplied by: the likelihood's power. 1 but for a tempered model, which sets it.
    pub power: f64,
}

impl<'a> Remainder<'a> {
    /// Numbers of the second part of a question: a frame, the weights and the constant.
    #[must_use]
    pub fn length(parameters: usize) -> usize {
        Frame::length(parameters) + parameters + 1
    }

    /// The step whose three points these are, one after the other, and its frame, weights and constant; `None` where there are not as
    /// many numbers as that.
    #[must_use]
    pub fn new(points: &'a [f64], numbers: &'a [f64], parameters: usize) -> Option<Self> {
        if parameters == 0 || points.len() != 3 * parameters || numbers.len() != Self::length(parameters) {
            return None;
        }
        let (frame, rest) = numbers.split_at(Frame::length(parameters));
        let (weights, constant) = rest.split_at(parameters);
        let point = |k: usize| &points[k * parameters..(k + 1) * parameters];
        Some(Self {
            points: [point(0), point(1), point(2)],
            frame: Frame::new(frame, parameters)?,
            weights,
            constant: constant.first().copied()?,
            power: 1.0,
        })
    }

    /// The public bound on one record's part, in log-likelihood units, where [`ScoreModel::remainder_bound`] gives this one without
    /// the rounding of its vector, which [`ScoreModel::vector_rounding`] gives.
    #[must_use]
    pub fn bound(&self, second_order: f64, rounding: f64) -> f64 {
        let along: f64 = self.weights.iter().map(|weight| weight.abs()).sum();
        second_order * OUTWARD + rounding * OUTWARD + along * ARITHMETIC * GRADIENT_UNITS as f64
    }
}

/// A model with a design: its gradient at a point, the information there, and the second moments of its
/// columns.
///
/// Gradients and information are those of one record's log density in the coefficients and, last, in the
/// logarithm of the family's own parameter where it has one. Predictors of 0 and 1 count as -1 and 1 in
/// information and moments where the model has an intercept; see [`ScoreModel::coding`].
pub trait ScoreModel: Send + Sync {
    /// Coefficients, the intercept's included; one parameter more at most follows them.
    fn coefficients(&self) -> usize;

    /// Parameters in all.
    fn parameters(&self) -> usize;

    /// The greatest sum of squares of one record's coded predictors: 1 for the intercept, 1 for each predictor,
    /// 1 for a column with levels whatever their number. What lies beyond counts as no record.
    fn most_squares(&self) -> u64;

    /// The sum over a block of each record's gradient in a frame, `d` components.
    ///
    /// Whatever it holds, each record adds a vector so much shorter than [`conclave_privacy::mechanism::GRADIENT_UNITS`] that the sum, rounded to
    /// integers once, moves no farther with a record than by vectors of that length.
    ///
    /// # Panics
    /// On other numbers of parameters or columns than the model's, which are public.
    fn gradient_sum(&self, block: &Block<'_>, at: &[f64], frame: Frame<'_>) -> LatticeSum;

    /// The public bound on what one record's log ratio of a step is beyond its gradient at the step's middle, in log-likelihood units:
    /// `|log p(y | to) - log p(y | from) - gradient(middle) . (to - from)|` over the declared columns, where the three points are
    /// `from`, `middle`, `to`. The same bits when the ends are swapped. `None` for a model without one.
    fn remainder_bound(&self, _points: [&[f64]; 3]) -> Option<f64> {
        None
    }

    /// How far a record's vector in [`ScoreModel::gradient_sum`] at the step's middle is from its gradient at most by rounding, along the step,
    /// in log-likelihood units.
    fn vector_rounding(&self, step: &Remainder<'_>) -> f64 {
        WholeFrame::new(step.frame, self.coefficients()).rounding(step.weights)
    }

    /// The sum over a block of what each record's log ratio of a step is beyond the vector that it has in [`ScoreModel::gradient_sum`] at
    /// the step's middle, the same integers; each unit of privacy held to `clamp`. `None` for a model without a bound.
    ///
    /// Swapping the ends, with `weights` and `constant` negated, negates each unit's part exactly.
    ///
    /// # Panics
    /// As [`ScoreModel::gradient_sum`].
    fn remainder_sum(&self, _block: &Block<'_>, _step: &Remainder<'_>, _clamp: Sensitivity) -> Option<LatticeSum> {
        None
    }

    /// The sum over a block of each record's information at a point, divided by `scales`: the first for the
    /// coefficients, the second for the family's own parameter. Components as [`ScoreModel::moments_sum`].
    ///
    /// # Panics
    /// As [`ScoreModel::gradient_sum`].
    fn curvature_sum(&self, block: &Block<'_>, at: &[f64], scales: [f64; 2]) -> LatticeSum;

    /// The sum over a block of the products of each record's coded predictors and outcome, two by two: the
    /// upper triangle, row after row, in units of 2^-32, the diagonal multiplied by
    /// [`super::products::DIAGONAL`]. `None` for a model that second moments do not determine.
    ///
    /// # Panics
    /// As [`ScoreModel::gradient_sum`].
    fn moments_sum(&self, block: &Block<'_>) -> Option<LatticeSum>;

    /// The unit of the outcome in moments, `(centre, half width)` on the model's scale: the outcome less the
    /// offset, less the centre, is at most the half width. `None` as [`ScoreModel::moments_sum`].
    fn moments_outcome(&self) -> Option<(f64, f64)>;

    /// Per coefficient, whether 0 and 1 count as -1 and 1: the coded predictor is twice it less the intercept's.
    fn coding(&self) -> Vec<bool>;

    /// Least and greatest `direction . x` over the declared columns, the intercept's 1 first where there is one;
    /// without the offset. Of a model whose `x` depends on the point, at `at`.
    fn range(&self, at: &[f64], direction: &[f64]) -> (f64, f64);

    /// Least and greatest offset of the linear predictor; zeros without one.
    fn offset_range(&self) -> (f64, f64);

    /// Gradients of single records that lie at the edge of what the declared columns allow, at a point; `None`
    /// where corners are too many to list.
    fn extreme_gradients(&self, at: &[f64]) -> Option<Vec<Vec<f64>>>;

    /// The length of the longest image of one record's gradient at a point under an affine map, over everything the declared columns allow: public,
    /// never below it, and about one per cent above at most. `None` of a model that gives no hull of its slopes, and where corners are too many.
    fn reach(&self, _at: &[f64], _image: &dyn Fn(&[f64]) -> Vec<f64>) -> Option<f64> {
        None
    }

    /// How much wider a frame is to be whose images are no longer than 1 at a point, so that the arithmetic of [`ScoreModel::gradient_sum`] shortens
    /// none: 1, or a little more. 1 of a model that gives no hull of its slopes.
    fn widened(&self, _at: &[f64], _frame: Frame<'_>) -> f64 {
        1.0
    }

    /// A public bound on the length of one record's gradient in the Euclidean norm of the coefficients' space
    /// and, apart, on its slope in the family's own parameter.
    fn gradient_bound(&self, at: &[f64]) -> [f64; 2];

    /// The most information of one record at a point, about its linear predictor and about the family's own
    /// parameter: what a curvature's scales should be.
    fn most_information(&self, at: &[f64]) -> [f64; 2];

    /// What one record is expected to say of each parameter at a point, where numeric predictors are even over their bounds and levels
    /// equally frequent: the diagonal of the information, coded as [`ScoreModel::coding`] says.
    fn even_information(&self, at: &[f64]) -> Vec<f64>;

    /// Whether the first coefficient is an intercept.
    fn has_intercept(&self) -> bool;

    /// Whether a coefficient's predictor is 0 or 1 for every record.
    fn is_indicator(&self, j: usize) -> bool;

    /// Whether a record may add nothing, since a column with levels may hold a value that is none of them.
    fn leaves_out(&self) -> bool;

    /// All coefficients in groups of neighbours: the levels of a term, of whose predictors at most one is other than 0 in a record, and each other
    /// one alone.
    fn groups(&self) -> Vec<Vec<usize>>;

    /// Coefficients whose predictors are never both other than 0.
    fn never_together(&self, j: usize, k: usize) -> bool;
}
