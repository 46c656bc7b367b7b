//! Reasons why a run ends after its first stages: the last one cannot become an adequate answer.
//!
//! The reasons about information, prior and moments hold in the planner's best case, predictors uniform over their bounds, at a
//! location that is more favourable to the answer than the released one. The reason about the step is a forecast from the releases.

use super::adequacy::{Figure, ScoreChecks};

/// Largest expected remainder of the quadratic on the last step, in posterior sds. The check of the answer has the limit 1, and the
/// information half way leaves out less than was expected: of 197 runs on real data at small budgets, 49 were beyond this limit, of
/// which two had an adequate answer; of the others 121 had one.
const MOST_EXPECTED: f64 = 3.0;

/// A reason why the remaining releases cannot make the answer adequate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Obstacle {
    /// Least ratio of the noise of the last stage's information to the information, and its limit.
    Information {
        /// The ratio.
        rho: f64,
        /// Its limit.
        limit: f64,
    },
    /// Least ratio of a posterior variance to the prior's after the last stage, and its limit.
    Prior {
        /// The ratio.
        share: f64,
        /// Its limit.
        limit: f64,
    },
    /// Expected remainder of the quadratic on the last step, in posterior sds, and its limit.
    Step {
        /// The remainder: the median over steps from the located answer to the last one.
        expected: f64,
        /// Its limit.
        limit: f64,
    },
    /// Ratio of the second moments' noise to their least eigenvalue, where no further release makes it smaller.
    Moments {
        /// The least eigenvalue that the noise admits.
        least: f64,
        /// The least that the check needs.
        limit: f64,
    },
}

impl Obstacle {
    /// Returns the reason in words.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Information { rho, limit } => format!(
                "the noise of the last stage's information would be at least {rho:.2} times the information about a parameter, above the limit \
                 of {limit}"
            ),
            Self::Prior { share, limit } => format!(
                "the last stage would leave a posterior variance of at least {share:.2} times the prior's, above the limit of {limit}"
            ),
            Self::Step { expected, limit } => format!(
                "the noise leaves the last query too far from the answer: the remainder of the quadratic on the last step is expected to be \
                 {expected:.2}, above the limit of {limit}"
            ),
            Self::Moments { least, limit } => format!(
                "statistics_too_noisy: the least eigenvalue of the predictors' moments is at most {least:.3e}, and the remaining budget would \
                 determine those above {limit:.3e} only"
            ),
        }
    }

    /// Returns the obstacle that an expected remainder on the last step is, if it exceeds its limit.
    pub(super) fn of_step(expected: f64) -> Option<Self> {
        // A step that is not a number is no shorter than one beyond the limit.
        let within = expected <= MOST_EXPECTED;
        (!within).then_some(Self::Step { expected, limit: MOST_EXPECTED })
    }

    /// Returns the obstacle that the least possible figures of a last stage show, if they exceed their limits.
    pub(super) fn of_score(rho: f64, share: f64) -> Option<Self> {
        let [rho, share] = ScoreChecks::least(rho, share);
        if !rho.holds() {
            return Some(Self::Information { rho: rho.value, limit: rho.limit });
        }
        let Figure { value, limit } = share;
        (!share.holds()).then_some(Self::Prior { share: value, limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_last_step_is_an_obstacle_beyond_its_limit() {
        assert_eq!(Obstacle::of_step(3.0), None);
        assert_eq!(Obstacle::of_step(3.1), Some(Obstacle::Step { expected: 3.1, limit: 3.0 }));
        assert!(matches!(Obstacle::of_step(f64::NAN), Some(Obstacle::Step { .. })));
    }

    #[test]
    fn only_figures_beyond_their_limits_are_obstacles() {
        assert_eq!(Obstacle::of_score(1.9, 0.09), None);
        assert_eq!(Obstacle::of_score(2.1, 0.09), Some(Obstacle::Information { rho: 2.1, limit: 2.0 }));
        assert_eq!(Obstacle::of_score(1.9, 0.11), Some(Obstacle::Prior { share: 0.11, limit: 0.1 }));
        assert!(Obstacle::of_score(2.1, 0.0).is_some_and(|obstacle| obstacle.words().contains("at least 2.10 times")));
    }
}
