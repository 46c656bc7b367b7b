//! The interface of a model whose scores, information and second moments can be released: sums of integer vectors, each record's
//! held to a public length.

use super::combinations::Combinations;
use super::influence::Influence;
use super::leverage::Leverage;
use super::linear_predictor::LinearPredictor;
use super::observed::ObservedForm;
use conclave_privacy::mechanism::GRADIENT_UNITS;
use conclave_privacy::pass::BlockPass;
use conclave_privacy::pass::frame::Frame;
use conclave_privacy::pass::lattice_frame::WholeFrame;

/// The factor by which a second-order bound is raised to cover the rounding of its computation.
const OUTWARD: f64 = 1.0 + 1e-9;
/// The relative arithmetic error of a vector's inner product with a step.
const ARITHMETIC: f64 = 1e-13;

/// A step, and the inner product with it of the integer vectors of the gradient at its midpoint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Remainder<'a> {
    /// theta, the midpoint and theta', with one value per parameter each.
    pub points: [&'a [f64]; 3],
    /// The frame of the gradient at the midpoint.
    pub frame: Frame<'a>,
    /// The inner product of the step with a lattice unit of each component of the vector, in log-likelihood units.
    pub weights: &'a [f64],
    /// The constant subtracted from every record besides, in log-likelihood units: the inner product of the frame's centre with
    /// the step.
    pub constant: f64,
    /// The factor on each record's log ratio: the power of the likelihood. It is 1 except in a tempered model.
    pub power: f64,
    /// R of the records' leverage weights, if they have any.
    pub trace: Option<f64>,
}

impl<'a> Remainder<'a> {
    /// Returns the number of values in the second part of a query: a frame, the weights and the constant.
    #[must_use]
    pub fn length(parameters: usize) -> usize {
        Frame::length(parameters) + parameters + 1
    }

    /// Creates a step from its three points, one after the other, and its frame, weights and constant, and R if records have leverage
    /// weights. Returns `None` if the number of values does not fit, or these have no [`Leverage`].
    #[must_use]
    pub fn new(points: &'a [f64], numbers: &'a [f64], parameters: usize) -> Option<Self> {
        let length = Self::length(parameters);
        if parameters == 0 || points.len() != 3 * parameters || !(length..=length + 1).contains(&numbers.len()) {
            return None;
        }
        let (frame, rest) = numbers.split_at(Frame::length(parameters));
        let (weights, constant) = rest.split_at(parameters);
        let point = |k: usize| &points[k * parameters..(k + 1) * parameters];
        let (points, trace) = ([point(0), point(1), point(2)], constant.get(1).copied());
        let (frame, constant) = (Frame::new(frame, parameters)?, constant.first().copied()?);
        let step = Self { points, frame, weights, constant, power: 1.0, trace };
        (trace.is_none() || step.leverage().is_some()).then_some(step)
    }

    /// Returns the leverage weights of the records, if they have any.
    #[must_use]
    pub fn leverage(&self) -> Option<Leverage<'a>> {
        Leverage::of(self.frame, self.trace?)
    }

    /// Returns the public bound on one record's contribution, in log-likelihood units. `second_order` is
    /// [`ScoreModel::remainder_bound`], `rounding` is [`ScoreModel::vector_rounding`].
    #[must_use]
    pub fn bound(&self, second_order: f64, rounding: f64) -> f64 {
        let along: f64 = self.weights.iter().map(|weight| weight.abs()).sum();
        second_order * OUTWARD + rounding * OUTWARD + along * ARITHMETIC * GRADIENT_UNITS as f64
    }
}

/// A model with a design: its gradient and information at a point, and the second moments of its columns.
///
/// Gradients and information are those of one record's log density in the coefficients and, last, in the logarithm of the
/// family's own parameter, if it has one. If the model has an intercept, 0/1 predictors are coded as -1 and 1 in information and
/// moments; see [`ScoreModel::coding`].
pub trait ScoreModel: Send + Sync {
    /// Returns the design, if the model has one.
    fn design(&self) -> Option<&LinearPredictor> {
        None
    }

    /// Returns the number of coefficients, including the intercept. At most one further parameter follows them.
    fn coefficients(&self) -> usize;

    /// Returns the total number of parameters.
    fn parameters(&self) -> usize {
        self.coefficients()
    }

    /// Returns the largest sum of squares of one record's coded predictors: 1 for the intercept, 1 for each predictor, 1 for each
    /// column with levels. A record beyond it counts as inert.
    fn most_squares(&self) -> u64;

    /// Returns the combinations of levels whose indicators take the predictors' place in second moments, if the job asks for a
    /// table.
    fn cells(&self) -> Option<&Combinations> {
        None
    }

    /// Returns the number of rows of the second moments: the predictors or combinations, and the outcome.
    fn moments_order(&self) -> usize {
        self.cells().map_or(self.coefficients(), |cells| cells.rows().len()) + 1
    }

    /// Returns the largest sum of squares of one record's vector in the second moments.
    fn moments_squares(&self) -> u64 {
        self.cells().map_or(self.most_squares(), |_| 1) + 1
    }

    /// Gives a pass the kernel of each record's gradient in a frame, with `d` components.
    ///
    /// Each record adds a vector that is shorter than [`conclave_privacy::mechanism::GRADIENT_UNITS`] by the final rounding
    /// error. The sum, rounded to integers once, thus moves no further with a record than vectors of that length would move it.
    ///
    /// # Panics
    /// If the number of parameters or columns is not the model's. Both are public.
    fn gradient_kernel(&self, at: &[f64], frame: Frame<'_>, pass: BlockPass<'_>);

    /// Returns the public bound on the distance between one record's log ratio and its gradient at the midpoint times the step,
    /// in log-likelihood units.
    ///
    /// It bounds `|log p(y | to) - log p(y | from) - gradient(middle) . (to - from)|` over the declared columns, where the three
    /// points are `from`, `middle`, `to`. With leverage weights, it is the bound of that distance times the record's weight. Swapping the
    /// ends gives the same bits. `None` for a model without a bound, or without leverage weights.
    fn remainder_bound(&self, _points: [&[f64]; 3], _leverage: Option<&Leverage<'_>>) -> Option<f64> {
        None
    }

    /// Returns the largest rounding error of a record's vector in [`ScoreModel::gradient_kernel`] at the midpoint, in its inner
    /// product with the step, in log-likelihood units.
    fn vector_rounding(&self, step: &Remainder<'_>) -> f64 {
        WholeFrame::new(step.frame, self.coefficients()).rounding(step.weights)
    }

    /// Gives a pass the kernel of each record's remainder: its log ratio less the inner product of the step with its integer vector
    /// of [`ScoreModel::gradient_kernel`] at the midpoint. A model without a bound gives none.
    ///
    /// Swapping the ends, with `weights` and `constant` negated, negates each unit's contribution exactly.
    ///
    /// # Panics
    /// As [`ScoreModel::gradient_kernel`].
    fn remainder_kernel(&self, _step: &Remainder<'_>, _pass: BlockPass<'_>) {}

    /// Gives a pass the kernel of each record's information at a point, divided by `scales`: the first for the coefficients, the
    /// second for the family's own parameter. The components are ordered as in [`ScoreModel::moments_kernel`].
    ///
    /// # Panics
    /// As [`ScoreModel::gradient_kernel`].
    fn curvature_kernel(&self, at: &[f64], scales: [f64; 2], pass: BlockPass<'_>);

    /// Returns whether records may have leverage weights; see [`Leverage`].
    fn takes_leverage(&self) -> bool {
        false
    }

    /// Gives a pass the kernel of each record's gradient times its weight. A model without leverage weights gives none.
    ///
    /// # Panics
    /// As [`ScoreModel::gradient_kernel`].
    fn leverage_gradient_kernel(&self, _at: &[f64], _leverage: &Leverage<'_>, _pass: BlockPass<'_>) {}

    /// Returns the bound of a record's weight times its log ratio over all records, in log-likelihood units, from the frame alone. Swapping
    /// the ends gives the same bits. `None` for a model without leverage weights.
    fn leverage_reach(&self, _ends: [&[f64]; 2], _leverage: &Leverage<'_>) -> Option<f64> {
        None
    }

    /// Gives a pass the kernel of each record's log ratio times its weight, less `centre`. A model without leverage weights gives none.
    ///
    /// Swapping the ends, with `centre` negated, negates each record's value exactly.
    ///
    /// # Panics
    /// Those of [`ScoreModel::gradient_kernel`].
    fn leverage_ratio_kernel(&self, _ends: [&[f64]; 2], _leverage: &Leverage<'_>, _centre: f64, _pass: BlockPass<'_>) {}

    /// Returns whether the model has scores and information of bounded influence; see [`Influence`].
    fn bounds_influence(&self) -> bool {
        false
    }

    /// Returns whether a table states the expected residuals of bounded influence; see [`super::SlopeTable`].
    fn centres_by_table(&self) -> bool {
        false
    }

    /// Gives a pass the kernel of each record's score of bounded influence at a point, over its limit. The slope in the family's own
    /// parameter is 0, unless the frame asks for that one alone. A model without bounded influence gives none. No remainder follows such a
    /// score.
    ///
    /// # Panics
    /// As [`ScoreModel::gradient_kernel`].
    fn bounded_gradient_kernel(&self, _at: &[f64], _influence: &Influence<'_>, _pass: BlockPass<'_>) {}

    /// Gives a pass the kernel of each record's information of bounded influence at a point, over `R`, ordered as in
    /// [`ScoreModel::moments_kernel`]. A model without bounded influence gives none.
    ///
    /// # Panics
    /// As [`ScoreModel::gradient_kernel`].
    fn bounded_information_kernel(&self, _at: &[f64], _influence: &Influence<'_>, _pass: BlockPass<'_>) {}

    /// Gives a pass the kernel of each record's variance of a score of bounded influence under the model, over its limit: one
    /// number. A model
    /// without bounded influence gives none.
    ///
    /// # Panics
    /// As [`ScoreModel::gradient_kernel`].
    fn bounded_variance_kernel(&self, _at: &[f64], _influence: &Influence<'_>, _pass: BlockPass<'_>) {}

    /// Gives a pass the kernel of the counts of records between edges: of their standardised residuals at a point, or of the squared
    /// lengths of their images if there is an influence. A model without bounded influence gives none.
    ///
    /// # Panics
    /// As [`ScoreModel::gradient_kernel`].
    fn cells_kernel(&self, _at: &[f64], _of: (Option<&Influence<'_>>, &[f64]), _pass: BlockPass<'_>) {}

    /// Gives a pass the kernel of the pairwise products of each record's coded predictors and outcome: the upper triangle, row after
    /// row, in units of 2^-32, with the diagonal multiplied by [`conclave_privacy::pass::hold::DIAGONAL`]. A model that second
    /// moments do not determine gives none.
    ///
    /// # Panics
    /// As [`ScoreModel::gradient_kernel`].
    fn moments_kernel(&self, _pass: BlockPass<'_>) {}

    /// Returns the unit of the outcome in moments, `(centre, half width)` on the model's scale. The outcome less the offset and
    /// the centre is at most the half width in magnitude. `None` if second moments do not determine the model.
    fn moments_outcome(&self) -> Option<(f64, f64)> {
        None
    }

    /// Returns the number of the first coefficients whose predictors are 0 and 1 with a sum of 1, and which absorb the shift of a coded
    /// predictor: 1 for an intercept.
    fn intercepts(&self) -> usize {
        usize::from(self.has_intercept())
    }

    /// Returns, for each coefficient, whether 0 and 1 are coded as -1 and 1: the coded predictor is twice the predictor less the
    /// intercept's 1.
    fn coding(&self) -> Vec<bool> {
        self.design().map_or_else(|| vec![false; self.coefficients()], LinearPredictor::coding)
    }

    /// Returns the range of `direction . x` over the declared columns, with the intercept's 1 first if there is one, and without
    /// the offset. If `x` depends on the point, it is taken at `at`.
    fn range(&self, at: &[f64], direction: &[f64]) -> (f64, f64);

    /// Returns the range of the linear predictor's offset; zeros without one.
    fn offset_range(&self) -> (f64, f64) {
        self.design().and_then(LinearPredictor::offset).map_or((0.0, 0.0), |(range, _)| range)
    }

    /// Returns gradients, at a point, of extreme records of the declared columns. `None` if there are too many corners to list.
    fn extreme_gradients(&self, at: &[f64]) -> Option<Vec<Vec<f64>>>;

    /// Returns an upper bound on the length of the image of one record's gradient at a point under an affine map, over everything
    /// the declared columns allow. It is public and at most about one per cent too large. `None` for a model without a hull of
    /// its slopes, and if there are too many corners.
    fn reach(&self, _at: &[f64], _image: &dyn Fn(&[f64]) -> Vec<f64>) -> Option<f64> {
        None
    }

    /// Returns the factor by which to widen a frame whose images have length at most 1, so that the arithmetic of
    /// [`ScoreModel::gradient_kernel`] shortens none: 1 or slightly more. 1 for a model without a hull of its slopes.
    fn widened(&self, _at: &[f64], _frame: Frame<'_>) -> f64 {
        1.0
    }

    /// Returns public bounds on the Euclidean length of one record's gradient in the coefficients and, separately, on its slope
    /// in the family's own parameter.
    fn gradient_bound(&self, at: &[f64]) -> [f64; 2];

    /// Returns the largest information of one record at a point, about its linear predictor and about the family's own parameter.
    /// These are the recommended scales of a curvature query.
    fn most_information(&self, at: &[f64]) -> [f64; 2];

    /// Returns the relation of the released information at a point to the observed one.
    fn observed(&self, _at: &[f64]) -> ObservedForm {
        ObservedForm::Canonical
    }

    /// Returns the largest expected information of one record of the model's own law at a point, about its linear predictor and
    /// about the family's own parameter. It forecasts precision; [`ScoreModel::most_information`] bounds a release.
    fn most_expected(&self, at: &[f64]) -> [f64; 2] {
        self.most_information(at)
    }

    /// Returns the expected information of one record about each parameter at a point, if numeric predictors are uniform over
    /// their bounds and levels equally frequent. It is the diagonal of the information, coded as in [`ScoreModel::coding`].
    fn even_information(&self, at: &[f64]) -> Vec<f64>;

    /// Returns whether the first coefficient is an intercept.
    fn has_intercept(&self) -> bool {
        self.design().is_some_and(LinearPredictor::has_intercept)
    }

    /// Returns whether a coefficient's predictor is 0 or 1 for every record.
    fn is_indicator(&self, j: usize) -> bool {
        self.design().is_some_and(|design| design.is_indicator(j))
    }

    /// Returns whether a record may be inert, since a column with levels may hold a value that is not a level.
    fn leaves_out(&self) -> bool {
        self.design().is_some_and(LinearPredictor::spares_inert)
    }

    /// Returns all coefficients in groups of adjacent ones: the levels of a term, of whose predictors at most one is nonzero per
    /// record, and each other coefficient alone.
    fn groups(&self) -> Vec<Vec<usize>> {
        let alone = || (0..self.coefficients()).map(|j| vec![j]).collect();
        self.design().map_or_else(alone, LinearPredictor::groups)
    }

    /// Returns whether the predictors of two coefficients are never both nonzero.
    fn never_together(&self, j: usize, k: usize) -> bool {
        self.design().is_some_and(|design| design.never_together(j, k))
    }
}
