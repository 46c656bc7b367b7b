//! Slopes and expected information of a regression's likelihood: what gradients and curvatures are made of.

/// Derivatives of the log density of one outcome in the linear predictor `eta` and in the logarithm of the
/// family's own parameter, at a public value of that parameter.
pub(super) trait Slopes: Send + Sync {
    /// What is public of a point, worked out once for a block.
    type At: Sync;

    /// Whether the second moments of predictors and outcome determine the likelihood.
    const BY_MOMENTS: bool = false;

    /// Whether the outcome is 0 or 1, so that a table of it and of categorical predictors determines the likelihood.
    const BY_TABLE: bool = false;

    /// The constants at a value of the family's own parameter, where it has one.
    fn slopes_at(&self, own: Option<f64>) -> Self::At;

    /// `d log p / d eta` and `d log p / d log own` (0 without such a parameter) of an outcome on the model's
    /// scale.
    ///
    /// Straight-line arithmetic, mark it `#[inline(always)]`; not a number where an argument is.
    fn slopes(at: &Self::At, y: f64, eta: f64) -> [f64; 2];

    /// One record's expected information about `eta` and about `log own`, given its predictors; of a family
    /// whose information about its own parameter has no closed form that slope's square, whose expectation
    /// it is. As [`Slopes::slopes`]; never negative, and not a number where an argument is: such a record counts for
    /// nothing.
    fn information_at(at: &Self::At, y: f64, eta: f64) -> [f64; 2];

    /// The greatest [`Slopes::information_at`] of a record whose linear predictor lies from `low` to `high`;
    /// public. Where it is exceeded, a record's part is held to it.
    fn most_information(&self, at: &Self::At, low: f64, high: f64) -> [f64; 2];

    /// `[a, b]` where the log density's second derivative in `eta` lies from `-a` to `b` for every declared outcome and every `eta` from
    /// `low` to `high`, neither negative; of a family without a parameter of its own. `None` where none is given.
    fn second_derivatives(&self, _low: f64, _high: f64) -> Option<[f64; 2]> {
        None
    }

    /// Least and greatest outcome on the model's scale.
    fn outcomes(&self) -> (f64, f64);

    /// Outcomes at which the slopes may be extreme, `eta` given: the ends, and what lies between. Close enough that a body
    /// which holds both slopes there holds those of every outcome, but for a fiftieth.
    fn extreme_outcomes(&self, _at: &Self::At, _eta: f64) -> Vec<f64> {
        let (least, greatest) = self.outcomes();
        vec![least, greatest]
    }
}
