//! The interface of a model whose scores, information and second moments can be released: sums of integer
//! vectors, each record's held to a public length.

use super::shard::Block;
use crate::mechanism::LatticeSum;

/// A public affine map of one record's gradient: `rows . gradient + shift`, in units of what a record
/// contributes at most ([`crate::mechanism::GRADIENT_UNITS`] lattice units).
///
/// A record contributes the image, shortened to length 1 where it is longer; one that is left out
/// contributes the shift, which is the image of no gradient at all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame<'a> {
    rows: &'a [f64],
    shift: &'a [f64],
}

impl<'a> Frame<'a> {
    /// Numbers of a frame for so many parameters: `d^2 + d`.
    #[must_use]
    pub fn length(parameters: usize) -> usize {
        parameters * (parameters + 1)
    }

    /// The frame of these numbers, its rows one after the other and then the shift; `None` where there are not
    /// `d^2 + d` of them.
    #[must_use]
    pub fn new(numbers: &'a [f64], parameters: usize) -> Option<Self> {
        if parameters == 0 || numbers.len() != Self::length(parameters) {
            return None;
        }
        let (rows, shift) = numbers.split_at(parameters * parameters);
        Some(Self { rows, shift })
    }

    /// Number of parameters.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.shift.len()
    }

    /// What parameter's part of the gradient goes with which weight into component `k`.
    #[must_use]
    pub fn row(&self, k: usize) -> &'a [f64] {
        &self.rows[k * self.parameters()..(k + 1) * self.parameters()]
    }

    /// What is added to each component.
    #[must_use]
    pub fn shift(&self) -> &'a [f64] {
        self.shift
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
    /// Each record adds an integer vector of length at most [`crate::mechanism::GRADIENT_UNITS`], whatever it
    /// holds.
    ///
    /// # Panics
    /// On other numbers of parameters or columns than the model's, which are public.
    fn gradient_sum(&self, block: &Block<'_>, at: &[f64], frame: Frame<'_>) -> LatticeSum;

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

    /// Coefficients whose predictors are never both other than 0.
    fn never_together(&self, j: usize, k: usize) -> bool;
}
