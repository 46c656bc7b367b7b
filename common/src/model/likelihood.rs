//! The interface of a regression's likelihood: what its file gives, and what is made of it elsewhere.

use super::linear_predictor::LinearPredictor;
use super::ratio_range::RatioRange;
use super::slopes::Slopes;
use super::weighted::TileStep;
use conclave_privacy::pass::blocks::KernelVisitor;

/// The likelihood of an outcome at a linear predictor.
pub(super) trait Likelihood: Slopes {
    /// What of a step is public, worked out once for a block.
    type Constants;

    /// The constants of a step over the declared columns.
    fn constants(&self, predictor: &LinearPredictor, step: &Ends<'_>) -> Self::Constants;

    /// `log p(y | to) - log p(y | from)` of an outcome on the model's scale at linear predictors `from` and `to`.
    ///
    /// Straight-line arithmetic, mark it `#[inline(always)]`; odd in the step bit for bit; NaN where an argument is.
    fn log_ratio(constants: &Self::Constants, y: f64, from: f64, to: f64) -> f64;

    /// Shows the log ratios of a tile's records. A family with a shorter way than by both linear predictors takes it here.
    #[inline(always)]
    fn log_ratios(constants: &Self::Constants, moving: &TileStep<'_>, visitor: &mut impl KernelVisitor)
    where
        Self: Sized,
    {
        visitor.over(moving.columns(), &(0.5 * moving.by, constants), around::<Self>);
    }

    /// The log density, up to what depends on the outcome alone; for references that need no privacy.
    fn log_density(&self, y: f64, eta: f64, own: Option<f64>) -> f64;

    /// The range of a record's log ratio over the declared columns. The reverse step gives exactly the negatives, swapped.
    fn ratios(&self, predictor: &LinearPredictor, step: &Ends<'_>) -> RatioRange;

    /// The most Fisher information of one record about its linear predictor, and about the log of the family's own parameter.
    fn information(&self) -> (f64, f64);

    /// Centre and half width of the outcome in the data's units, where the linear predictor and the family's own parameter are on the
    /// scale of the outcome.
    fn outcome_scale(&self) -> Option<(f64, f64)> {
        None
    }
}

/// The log ratio of a record by both linear predictors.
#[inline(always)]
pub(super) fn around<L: Likelihood>((half, constants): &(f64, &L::Constants), [y, middle, direction]: [f64; 3]) -> f64 {
    let h = half * direction;
    L::log_ratio(constants, y, middle - h, middle + h)
}

/// The two ends of a step, taken apart.
pub(super) struct Ends<'a> {
    /// The linear predictor's coefficients before the step.
    pub from: &'a [f64],
    /// And after.
    pub to: &'a [f64],
    /// The family's own parameter before and after the step, where it has one.
    pub own: Option<(f64, f64)>,
}
