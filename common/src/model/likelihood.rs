//! The interface of a regression's likelihood.

use super::linear_predictor::LinearPredictor;
use super::ratio_range::RatioRange;
use super::slopes::Slopes;
use super::weighted::TileStep;
use conclave_privacy::pass::blocks::KernelVisitor;

/// The likelihood of an outcome at a linear predictor.
pub(super) trait Likelihood: Slopes {
    /// The public values derived from a step, computed once per block.
    type Constants;

    /// Computes the public values of a step over the declared columns.
    fn constants(&self, predictor: &LinearPredictor, step: &Ends<'_>) -> Self::Constants;

    /// Returns `log p(y | to) - log p(y | from)` of an outcome on the model's scale at linear predictors `from` and `to`.
    ///
    /// Implementations are straight-line arithmetic and marked `#[inline(always)]`. The result is odd in the step bit for bit,
    /// and NaN if an argument is.
    fn log_ratio(constants: &Self::Constants, y: f64, from: f64, to: f64) -> f64;

    /// Passes the log ratios of a tile's records to the visitor. A family with a faster formula than both linear predictors
    /// overrides this.
    #[inline(always)]
    fn log_ratios(constants: &Self::Constants, moving: &TileStep<'_>, visitor: &mut impl KernelVisitor)
    where
        Self: Sized,
    {
        visitor.over(moving.columns(), &(0.5 * moving.by, constants), around::<Self>);
    }

    /// Returns the log density, up to a term that depends only on the outcome, for references without privacy.
    fn log_density(&self, y: f64, eta: f64, own: Option<f64>) -> f64;

    /// Returns the range of a record's log ratio over the declared columns. The reverse step yields the exact negatives, swapped.
    fn ratios(&self, predictor: &LinearPredictor, step: &Ends<'_>) -> RatioRange;

    /// Returns the largest Fisher information of one record about its linear predictor, and about the log of the family's own
    /// parameter.
    fn information(&self) -> (f64, f64);

    /// Returns centre and half width of the outcome in the data's units, if the linear predictor and the family's own parameter
    /// are on the scale of the outcome.
    fn outcome_scale(&self) -> Option<(f64, f64)> {
        None
    }
}

/// Returns the log ratio of a record from both linear predictors.
#[inline(always)]
pub(super) fn around<L: Likelihood>((half, constants): &(f64, &L::Constants), [y, middle, direction]: [f64; 3]) -> f64 {
    let h = half * direction;
    L::log_ratio(constants, y, middle - h, middle + h)
}

/// The two ends of a step, split into coefficients and own parameter.
pub(super) struct Ends<'a> {
    /// The linear predictor's coefficients before the step.
    pub from: &'a [f64],
    /// The linear predictor's coefficients after the step.
    pub to: &'a [f64],
    /// The family's own parameter before and after the step, if it has one.
    pub own: Option<(f64, f64)>,
}
