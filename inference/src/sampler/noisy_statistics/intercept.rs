//! The intercept's own equation, which corrects the first stage for rare outcomes.

use super::stage::ScoreStage;

/// Number of sds of the released mean outcome by which it is kept away from 0 and 1.
const OFF_THE_EDGE: f64 = 3.0;
/// Least mean count that sets an intercept, as a share of the expected mean.
const LEAST_MEAN: f64 = 0.02;

/// The equation that determines the intercept from a mean outcome.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum InterceptLink {
    /// Logistic: `logit(1/2 + g̃_0/n)`.
    Logit,
    /// Poisson: `log(1 + g̃_0/(n m))` beyond the start, with `m` the mean count of a record at the start.
    Log { mean: f64 },
    /// The logarithm of a Weibull's scale at a shape of 1: `-log(1 - g̃_j/H̃_jj)` beyond the start. The score is the expected
    /// minus the observed number of events, and the information is the expected number.
    LogScale,
}

/// The equation, which holds where only the intercept matters: at a start where the other coefficients are 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Intercept {
    /// Index of the intercept's coordinate.
    pub(crate) coordinate: usize,
    /// The number of records, or a guess.
    pub(crate) records: f64,
    pub(crate) link: InterceptLink,
}

impl Intercept {
    /// Replaces the step's intercept by the solution of its own equation. For a probability it does so only if that step is
    /// longer; for a count or a time always, because a quadratic overshoots as an exponential rises.
    pub(crate) fn corrected(&self, stage: &ScoreStage, mut step: Vec<f64>) -> Vec<f64> {
        let others = stage.at.iter().enumerate().all(|(j, x)| j == self.coordinate || *x == 0.0);
        let probability = self.link == InterceptLink::Logit;
        let own = stage.at.get(self.coordinate).is_some_and(|x| *x == 0.0) || !probability;
        if others
            && own
            && let Some(slot) = step.get_mut(self.coordinate)
        {
            let to = self.value(stage);
            if to.is_finite() && (!probability || to.abs() > slot.abs()) {
                *slot = to;
            }
        }
        step
    }

    /// Returns the distance from the start to the intercept that the mean outcome implies if nothing else mattered. NaN if the
    /// release is NaN.
    fn value(&self, stage: &ScoreStage) -> f64 {
        let mean = stage.score[self.coordinate] / self.records;
        let error = OFF_THE_EDGE * stage.score_noise[(self.coordinate, self.coordinate)].sqrt() / self.records;
        match self.link {
            InterceptLink::Logit => {
                let edge = error.clamp(1e-6, 0.5);
                let p = (0.5 + mean).clamp(edge, 1.0 - edge);
                libm::log(p) - libm::log1p(-p)
            }
            InterceptLink::Log { mean: expected } => libm::log((1.0 + mean / expected).max(LEAST_MEAN)) + 0.0 * mean,
            InterceptLink::LogScale => {
                let information = &stage.information;
                let events = information.matrix[(self.coordinate, self.coordinate)].max(OFF_THE_EDGE * information.sd);
                let part = stage.score[self.coordinate] / events;
                -libm::log((1.0 - part).max(LEAST_MEAN)) + 0.0 * part
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::matrix::Matrix;
    use crate::sampler::noisy_statistics::information::Information;
    use conclave_common::model::ObservedForm;

    fn stage(at: [f64; 2], score: f64) -> ScoreStage {
        let information =
            Information { at: at.to_vec(), matrix: Matrix::identity(2), sd: 1.0, own_sd: None, form: ObservedForm::Canonical };
        ScoreStage { at: at.to_vec(), score: vec![score, 0.0], score_noise: Matrix::identity(2), information }
    }

    fn corrected(link: InterceptLink, at: [f64; 2], score: f64) -> f64 {
        Intercept { coordinate: 0, records: 1000.0, link }.corrected(&stage(at, score), vec![0.1, 0.2])[0]
    }

    #[test]
    fn an_intercept_has_an_equation_of_its_own() {
        assert!((corrected(InterceptLink::Logit, [0.0, 0.0], -450.0) - libm::log(0.05 / 0.95)).abs() < 1e-9);
        // Beyond 0, the mean is kept three noise sds away from the edge.
        assert!((corrected(InterceptLink::Logit, [0.0, 0.0], -510.0) - libm::log(0.003 / 0.997)).abs() < 1e-9);
        // The rule does not apply at another start, and never shortens a step.
        assert!(
            [corrected(InterceptLink::Logit, [0.1, 0.0], -450.0), corrected(InterceptLink::Logit, [0.0, 0.1], -450.0)]
                == [0.1; 2]
        );
        assert_eq!(corrected(InterceptLink::Logit, [0.0, 0.0], 1.0), 0.1);
    }

    #[test]
    fn a_mean_count_says_how_far_the_start_is_off() {
        let link = InterceptLink::Log { mean: 0.5 };
        assert!((corrected(link, [-1.0, 0.0], -400.0) - libm::log(0.2)).abs() < 1e-9);
        assert!((corrected(link, [-1.0, 0.0], -900.0) - libm::log(0.02)).abs() < 1e-9);
        assert!((corrected(link, [-1.0, 0.0], 500.0) - libm::log(2.0)).abs() < 1e-9);
        assert_eq!(corrected(link, [-1.0, 0.0], f64::NAN), 0.1);
        // The rule also replaces a quadratic's longer step.
        assert!((corrected(link, [-1.0, 0.0], 20.0) - libm::log(1.04)).abs() < 1e-9);
    }

    #[test]
    fn events_say_how_far_the_scale_of_times_is_off() {
        let with = |score: f64, events: f64| {
            let mut stage = stage([0.0, -0.7], 0.0);
            stage.score[1] = score;
            stage.information.matrix[(1, 1)] = events;
            Intercept { coordinate: 1, records: 1000.0, link: InterceptLink::LogScale }.corrected(&stage, vec![0.1, 9.0])[1]
        };
        // Four times the expected events: a scale of a quarter.
        assert!((with(-300.0, 100.0) + libm::log(4.0)).abs() < 1e-9);
        assert!((with(75.0, 100.0) - libm::log(4.0)).abs() < 1e-9);
        assert!((with(99.9, 100.0) - libm::log(50.0)).abs() < 1e-9 && with(f64::NAN, 100.0) == 9.0);
    }
}
