//! The intercept's own equation, which mends rare outcomes after the first stage.

use super::stage::ScoreStage;

/// How many sds of the released mean outcome its place is kept off 0 and 1.
const OFF_THE_EDGE: f64 = 3.0;
/// Least mean count that an intercept is set by, as a part of what was expected.
const LEAST_MEAN: f64 = 0.02;

/// How a mean outcome determines the intercept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum InterceptLink {
    /// Logistic: `logit(1/2 + g̃_0/n)`.
    Logit,
    /// Poisson: `log(1 + g̃_0/(n m))` beyond the start, with `m` the mean count that the start gives a record.
    Log { mean: f64 },
    /// The logarithm of a Weibull's scale at a shape of 1: `-log(1 - g̃_j/H̃_jj)` beyond the start, as the score is the
    /// expected less the seen number of events, and the information the expected.
    LogScale,
}

/// The equation, which holds where nothing but the intercept counts: at a start where the other coefficients are 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Intercept {
    /// Which coordinate it is.
    pub(crate) coordinate: usize,
    /// The number of records, or a guess.
    pub(crate) records: f64,
    pub(crate) link: InterceptLink,
}

impl Intercept {
    /// The step with its intercept by its own equation: of a probability where that goes farther, of a count or a time in any
    /// case, since a quadratic overshoots upwards as an exponential rises.
    pub(crate) fn mended(&self, stage: &ScoreStage, mut step: Vec<f64>) -> Vec<f64> {
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

    /// Where the outcomes' mean puts the intercept if nothing else mattered: how far from the start. No number where the release
    /// is none.
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

    fn stage(at: [f64; 2], score: f64) -> ScoreStage {
        let information = Information { at: at.to_vec(), matrix: Matrix::identity(2), sd: 1.0, own_sd: None };
        ScoreStage { at: at.to_vec(), score: vec![score, 0.0], score_noise: Matrix::identity(2), information }
    }

    fn mended(link: InterceptLink, at: [f64; 2], score: f64) -> f64 {
        Intercept { coordinate: 0, records: 1000.0, link }.mended(&stage(at, score), vec![0.1, 0.2])[0]
    }

    #[test]
    fn an_intercept_has_an_equation_of_its_own() {
        assert!((mended(InterceptLink::Logit, [0.0, 0.0], -450.0) - libm::log(0.05 / 0.95)).abs() < 1e-9);
        // Beyond 0: kept off the edge by three sds of the noise.
        assert!((mended(InterceptLink::Logit, [0.0, 0.0], -510.0) - libm::log(0.003 / 0.997)).abs() < 1e-9);
        // Not from elsewhere, and no shorter step.
        assert!([mended(InterceptLink::Logit, [0.1, 0.0], -450.0), mended(InterceptLink::Logit, [0.0, 0.1], -450.0)] == [0.1; 2]);
        assert_eq!(mended(InterceptLink::Logit, [0.0, 0.0], 1.0), 0.1);
    }

    #[test]
    fn a_mean_count_says_how_far_the_start_is_off() {
        let link = InterceptLink::Log { mean: 0.5 };
        assert!((mended(link, [-1.0, 0.0], -400.0) - libm::log(0.2)).abs() < 1e-9);
        assert!((mended(link, [-1.0, 0.0], -900.0) - libm::log(0.02)).abs() < 1e-9);
        assert!((mended(link, [-1.0, 0.0], 500.0) - libm::log(2.0)).abs() < 1e-9);
        assert_eq!(mended(link, [-1.0, 0.0], f64::NAN), 0.1);
        // A shorter step than a quadratic's, too.
        assert!((mended(link, [-1.0, 0.0], 20.0) - libm::log(1.04)).abs() < 1e-9);
    }

    #[test]
    fn events_say_how_far_the_scale_of_times_is_off() {
        let with = |score: f64, events: f64| {
            let mut stage = stage([0.0, -0.7], 0.0);
            stage.score[1] = score;
            stage.information.matrix[(1, 1)] = events;
            Intercept { coordinate: 1, records: 1000.0, link: InterceptLink::LogScale }.mended(&stage, vec![0.1, 9.0])[1]
        };
        // Four times as many as expected: a scale of a quarter.
        assert!((with(-300.0, 100.0) + libm::log(4.0)).abs() < 1e-9);
        assert!((with(75.0, 100.0) - libm::log(4.0)).abs() < 1e-9);
        assert!((with(99.9, 100.0) - libm::log(50.0)).abs() < 1e-9 && with(f64::NAN, 100.0) == 9.0);
    }
}
