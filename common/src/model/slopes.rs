//! Slopes and expected information of a regression's likelihood: what gradients and curvatures are made of.

/// Bounds on second derivatives of the log density, none of them negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bends {
    /// In `eta` twice: from minus the first to the second.
    pub predictor: [f64; 2],
    /// In `eta` and the logarithm of the family's own parameter: its magnitude.
    pub mixed: f64,
    /// In that logarithm twice: from minus the first to the second.
    pub own: [f64; 2],
}

impl Bends {
    /// Of a family without a parameter of its own.
    pub(super) fn of_predictor(falling: f64, rising: f64) -> Self {
        Self { predictor: [falling, rising], mixed: 0.0, own: [0.0; 2] }
    }
}

/// Derivatives of the log density of one outcome in the linear predictor `eta` and in the logarithm of the
/// family's own parameter, at a public value of that parameter.
pub(super) trait Slopes: Send + Sync {
    /// What is public of a point, worked out once for a block.
    type At: Sync;

    /// Whether the second moments of predictors and outcome determine the likelihood.
    const BY_MOMENTS: bool = false;

    /// Whether the outcome is 0 or 1, so that a table of it and of categorical predictors determines the likelihood.
    const BY_TABLE: bool = false;

    /// Whether the slope in the linear predictor falls with it and rises with the outcome, and there is no own parameter.
    const MONOTONE: bool = false;

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

    /// How far the log density bends for every declared outcome, every `eta` from `low` to `high`, and every value of the family's own parameter
    /// that is no less than `least`; rigorous but for rounding. `None` where no bound is given.
    fn bends(&self, _range: (f64, f64), _least: Option<f64>) -> Option<Bends> {
        None
    }

    /// Pairs of slopes whose convex hull has those of every declared outcome and every `eta` from `low` to `high`, public. `None` where none are
    /// given.
    fn slopes_within(&self, at: &Self::At, low: f64, high: f64) -> Option<Vec<[f64; 2]>> {
        let (least, greatest) = self.outcomes();
        Self::MONOTONE.then(|| vec![Self::slopes(at, least, high), Self::slopes(at, greatest, low)])
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
