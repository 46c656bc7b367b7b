//! The estimate of a dispersion by the released score of its logarithm.

/// Largest change of the logarithm in the search.
const LONGEST: f64 = 1.0;
/// Variance of the change that the search expects.
const EXPECTED: f64 = 4.0;

/// The released score of the logarithm of a dispersion at a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DispersionScore {
    /// Its logarithm there.
    pub(super) at: f64,
    pub(super) score: f64,
    pub(super) score_sd: f64,
    pub(super) information: f64,
    pub(super) information_sd: f64,
}

/// The estimate of the logarithm of a dispersion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub(super) mean: f64,
    pub(super) variance: f64,
    /// The step to it.
    pub(super) step: f64,
}

impl DispersionScore {
    /// Returns the variance of the estimate, relative to the square of the information, with that of a step.
    fn variance(&self, step: f64) -> f64 {
        let noise = self.score_sd * self.score_sd + self.information_sd * self.information_sd * step * step;
        (self.information + noise) / (self.information * self.information)
    }

    /// Returns the change of the logarithm that the search makes.
    pub(super) fn step(&self) -> f64 {
        let step = self.score / self.information;
        (step * EXPECTED / (EXPECTED + self.variance(step))).clamp(-LONGEST, LONGEST)
    }

    /// Returns the variance of the search's point after its step due to noise, and where the step is cut or shrunk, the squared rest.
    pub(super) fn off(&self) -> f64 {
        let whole = self.score / self.information;
        let rest = whole - self.step();
        (self.variance(whole) - self.alone()).max(0.0) + rest * rest
    }

    /// Returns the variance without noise.
    pub(super) fn alone(&self) -> f64 {
        self.information.recip()
    }

    /// Returns the estimate at the answer. The noise of the coefficients makes residuals larger, as `added`
    /// records would that are one sd off; `part` is the share of a typical variance that the dispersion makes.
    pub(super) fn estimate(&self, added: f64, part: f64, order: f64) -> Estimate {
        let of_noise = 0.5 * added * part;
        let step = (self.score - of_noise) / self.information;
        let uncertain = of_noise / self.information;
        Estimate { mean: self.at + step, variance: self.variance(step) + uncertain * uncertain * 2.0 / order, step }
    }
}
