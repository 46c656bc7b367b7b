//! Slopes and information of a regression's likelihood, from which gradients and curvatures are computed.

use super::observed::ObservedForm;
use super::outcome_table::Outcomes;

/// Bounds on second derivatives of the log density; none is negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bends {
    /// The second derivative in `eta`: from minus the first to the second.
    pub predictor: [f64; 2],
    /// The magnitude of the mixed derivative in `eta` and the logarithm of the family's own parameter.
    pub mixed: f64,
    /// The second derivative in that logarithm: from minus the first to the second.
    pub own: [f64; 2],
}

impl Bends {
    /// Creates the bounds for a family without an own parameter.
    pub(super) fn of_predictor(falling: f64, rising: f64) -> Self {
        Self { predictor: [falling, rising], mixed: 0.0, own: [0.0; 2] }
    }
}

/// A record's residual and information at a public point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Standardised {
    /// The root of the Fisher information about the linear predictor. It does not depend on the outcome.
    pub(super) root: f64,
    /// psi: the residual in its own sds, within the clip.
    pub(super) residual: f64,
    /// kappa, from 0 to 1: minus the derivative of psi in the linear predictor, or its expectation, over the root.
    pub(super) slope: f64,
}

/// Derivatives of the log density of one outcome in the linear predictor `eta` and in the logarithm of the family's own
/// parameter, at a public value of that parameter.
pub(super) trait Slopes: Send + Sync {
    /// The public values derived from a point, computed once per block.
    type At: Sync;

    /// True if the second moments of predictors and outcome determine the likelihood.
    const BY_MOMENTS: bool = false;

    /// True if the slope in the linear predictor decreases in it and increases in the outcome, and there is no own parameter.
    const MONOTONE: bool = false;

    /// The greatest magnitude of the slope in the linear predictor over every outcome and every point. Records of a family with a slope
    /// of at most 1 may have leverage weights.
    const STEEPEST: f64 = f64::INFINITY;

    /// True if [`Slopes::standardised`] is defined.
    const BOUNDS_INFLUENCE: bool = false;

    /// True if [`Slopes::standardised`] returns a residual that is not centred and no slope: a table states its expectation and the
    /// slope.
    const CENTRED_BY_TABLE: bool = false;

    /// Returns the outcome's values, if there are few and a table of outcome and categorical predictors determines the likelihood.
    fn table_outcomes(&self) -> Option<Outcomes> {
        None
    }

    /// Computes the public values at a value of the family's own parameter, if it has one.
    fn slopes_at(&self, own: Option<f64>) -> Self::At;

    /// Returns `d log p / d eta` and `d log p / d log own` (0 without such a parameter) of an outcome on the model's scale.
    ///
    /// Implementations are straight-line arithmetic and marked `#[inline(always)]`. The result is not-a-number if an argument is.
    fn slopes(at: &Self::At, y: f64, eta: f64) -> [f64; 2];

    /// Returns one record's information about `eta` and about `log own`, given its predictors, in the family's
    /// [`Slopes::observed`] form.
    ///
    /// It is the observed information, or differs from it by terms that vanish at the maximum of the likelihood. The expected
    /// information would serve records of the family's law alone: for others, it is a different number. The same conditions apply
    /// as for [`Slopes::slopes`]. The result is never negative, and not-a-number if an argument is; such a record is inert.
    fn information_at(at: &Self::At, y: f64, eta: f64) -> [f64; 2];

    /// Returns a record's residual in its own sds, within `clip`, its slope and the root of the information. The same conditions
    /// apply as for [`Slopes::slopes`].
    #[inline(always)]
    fn standardised(_at: &Self::At, _y: f64, _eta: f64, _clip: f64) -> Standardised {
        Standardised { root: f64::NAN, residual: f64::NAN, slope: f64::NAN }
    }

    /// Returns a record's slope where its linear predictor is `half_way`, for the same standardisation. The same conditions apply as for
    /// [`Slopes::slopes`].
    #[inline(always)]
    fn slope_half_way(of: Standardised, _half_way: f64) -> f64 {
        of.slope
    }

    /// Returns the largest [`Slopes::information_at`] of a record whose linear predictor lies from `low` to `high`. It is public.
    /// A record's contribution is clamped to it.
    fn most_information(&self, at: &Self::At, low: f64, high: f64) -> [f64; 2];

    /// Returns the relation of [`Slopes::information_at`] to the observed information, for linear predictors up to `high`.
    fn observed(_at: &Self::At, _high: f64, _intercept: bool) -> ObservedForm {
        ObservedForm::Canonical
    }

    /// Returns the largest expected information of a record of the family's own law whose linear predictor lies from `low` to
    /// `high`, about `eta` and about `log own`. It forecasts precision.
    fn most_expected(&self, at: &Self::At, low: f64, high: f64) -> [f64; 2] {
        self.most_information(at, low, high)
    }

    /// Returns bounds on the second derivatives for every declared outcome, every `eta` in the range, and every value of the
    /// family's own parameter of at least `least`. They are rigorous up to rounding. `None` if the family has none.
    fn bends(&self, _range: (f64, f64), _least: Option<f64>) -> Option<Bends> {
        None
    }

    /// Returns pairs of slopes whose convex hull contains those of every declared outcome and every `eta` from `low` to `high`.
    /// They are public. `None` if the family has none.
    fn slopes_within(&self, at: &Self::At, low: f64, high: f64) -> Option<Vec<[f64; 2]>> {
        let (least, greatest) = self.outcomes();
        Self::MONOTONE.then(|| vec![Self::slopes(at, least, high), Self::slopes(at, greatest, low)])
    }

    /// Returns the least and the greatest outcome on the model's scale.
    fn outcomes(&self) -> (f64, f64);

    /// Returns outcomes at which the slopes may be extreme for a given `eta`: the ends and some between. A convex set that
    /// contains the slopes there contains those of every outcome up to two per cent.
    fn extreme_outcomes(&self, _at: &Self::At, _eta: f64) -> Vec<f64> {
        let (least, greatest) = self.outcomes();
        vec![least, greatest]
    }
}
