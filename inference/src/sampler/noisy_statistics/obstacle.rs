//! Reasons why a run ends after its first stages: the last one cannot become an adequate answer.
//!
//! Each reason holds in the planner's best case, predictors uniform over their bounds, at a location that is more favourable to the
//! answer than the released one.

use super::adequacy::{Figure, ScoreChecks};

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
            Self::Moments { least, limit } => format!(
                "statistics_too_noisy: the least eigenvalue of the predictors' moments is at most {least:.3e}, and the remaining budget would \
                 determine those above {limit:.3e} only"
            ),
        }
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
    fn only_figures_beyond_their_limits_are_obstacles() {
        assert_eq!(Obstacle::of_score(1.9, 0.09), None);
        assert_eq!(Obstacle::of_score(2.1, 0.09), Some(Obstacle::Information { rho: 2.1, limit: 2.0 }));
        assert_eq!(Obstacle::of_score(1.9, 0.11), Some(Obstacle::Prior { share: 0.11, limit: 0.1 }));
        assert!(Obstacle::of_score(2.1, 0.0).is_some_and(|obstacle| obstacle.words().contains("at least 2.10 times")));
    }
}
