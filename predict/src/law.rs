//! The distribution of an outcome given the parameters: its expected value and its draws.

use std::borrow::Cow;

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Gamma, Poisson, StandardNormal, StudentT};

/// The range of a negative binomial's dispersion, as the model clamps it.
const DISPERSION: (f64, f64) = (1e-9, 1e9);

/// The distribution of one record's outcome, in the data's units.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Law<'a> {
    /// 1 with this probability, else 0.
    Binary(f64),
    Normal {
        mean: f64,
        sd: f64,
    },
    /// Student's t; the location is the mean with more than one degree of freedom, and always the median.
    StudentT {
        location: f64,
        scale: f64,
        df: f64,
    },
    /// A count with this mean.
    Poisson(f64),
    /// A count with variance `mean + dispersion mean²`.
    NegativeBinomial {
        mean: f64,
        dispersion: f64,
    },
    /// The probability of each level.
    Levels(Cow<'a, [f64]>),
    /// The time of an event, whose survival function is `exp(-(t / scale)^shape)`.
    Weibull {
        shape: f64,
        scale: f64,
    },
    /// The time of an event whose hazard is constant in each interval; the last one has no end.
    Piecewise {
        /// The hazard in each interval, per unit of time.
        hazards: Vec<f64>,
        /// The beginnings of the intervals.
        starts: Vec<f64>,
        /// The time to which a mean is restricted.
        longest: f64,
    },
}

impl Law<'_> {
    /// Returns the expected outcome: a probability, a mean or a rate. Categories and times have other quantities.
    pub(crate) fn expected(&self) -> f64 {
        match *self {
            Law::Binary(p) => p,
            Law::Normal { mean, .. } | Law::NegativeBinomial { mean, .. } | Law::Poisson(mean) => mean,
            Law::StudentT { location, .. } => location,
            Law::Levels(_) => f64::NAN,
            Law::Weibull { shape, scale } => scale * libm::tgamma(1.0 + 1.0 / shape),
            Law::Piecewise { ref hazards, ref starts, longest } => restricted_mean(hazards, starts, longest),
        }
    }

    /// Returns the probability of a level; NaN for other outcomes.
    pub(crate) fn probability(&self, level: usize) -> f64 {
        if let Law::Levels(probabilities) = self { probabilities.get(level).copied().unwrap_or(f64::NAN) } else { f64::NAN }
    }

    /// Returns the probability that the event has not occurred by a time; NaN for outcomes that are no times.
    pub(crate) fn survival(&self, time: f64) -> f64 {
        match self {
            Law::Weibull { shape, scale } => libm::exp(-libm::pow(time / scale, *shape)),
            Law::Piecewise { hazards, starts, .. } => libm::exp(-cumulative(hazards, starts, time)),
            _ => f64::NAN,
        }
    }

    /// Returns the median time; NaN for outcomes that are no times.
    pub(crate) fn median_time(&self) -> f64 {
        let Law::Weibull { shape, scale } = *self else { return f64::NAN };
        scale * libm::pow(std::f64::consts::LN_2, 1.0 / shape)
    }

    /// Returns whether outcomes are whole numbers.
    pub(crate) fn is_discrete(&self) -> bool {
        matches!(self, Law::Binary(_) | Law::Poisson(_) | Law::NegativeBinomial { .. } | Law::Levels(_))
    }

    /// Draws an outcome; a level by its number.
    pub(crate) fn draw(&self, rng: &mut impl Rng) -> f64 {
        match *self {
            Law::Piecewise { ref hazards, ref starts, .. } => time_of(hazards, starts, -libm::log(1.0 - rng.random::<f64>())),
            Law::Binary(p) => f64::from(u8::from(rng.random::<f64>() < p)),
            Law::Normal { mean, sd } => mean + sd * normal(rng),
            Law::StudentT { location, scale, df } => {
                let t: f64 = StudentT::new(df).map_or(f64::NAN, |law| law.sample(rng));
                location + scale * t
            }
            Law::Poisson(mean) => count(mean, rng),
            Law::NegativeBinomial { mean, dispersion } => {
                let dispersion = dispersion.clamp(DISPERSION.0, DISPERSION.1);
                let rate: f64 = Gamma::new(dispersion.recip(), dispersion * mean).map_or(mean, |law| law.sample(rng));
                count(rate, rng)
            }
            Law::Levels(ref probabilities) => {
                let mut rest = rng.random::<f64>();
                let below = |p: &f64| {
                    rest -= p;
                    rest < 0.0
                };
                probabilities.iter().position(below).unwrap_or(probabilities.len().saturating_sub(1)) as f64
            }
            Law::Weibull { shape, scale } => scale * libm::pow(-libm::log(1.0 - rng.random::<f64>()), 1.0 / shape),
        }
    }
}

/// Returns the cumulative hazard at a time.
fn cumulative(hazards: &[f64], starts: &[f64], time: f64) -> f64 {
    let end = |k: usize| starts.get(k + 1).copied().unwrap_or(f64::INFINITY);
    hazards.iter().zip(starts).enumerate().map(|(k, (hazard, start))| hazard * (time.min(end(k)) - start).max(0.0)).sum()
}

/// Returns the area under the survival function up to a time.
fn restricted_mean(hazards: &[f64], starts: &[f64], longest: f64) -> f64 {
    let of_interval = |(k, (hazard, start)): (usize, (&f64, &f64))| {
        let width = starts.get(k + 1).copied().unwrap_or(longest).min(longest) - start;
        let fallen = if hazard * width > 1e-12 { -libm::expm1(-hazard * width) / hazard } else { width };
        libm::exp(-cumulative(hazards, starts, *start)) * fallen
    };
    hazards.iter().zip(starts).enumerate().map(of_interval).sum()
}

/// Returns the time at which the cumulative hazard reaches a value.
fn time_of(hazards: &[f64], starts: &[f64], value: f64) -> f64 {
    let last = starts.iter().rposition(|start| cumulative(hazards, starts, *start) <= value).unwrap_or(0);
    starts[last] + (value - cumulative(hazards, starts, starts[last])) / hazards[last]
}

fn normal(rng: &mut impl Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// Draws a Poisson count. A mean of 0 yields 0, and one that overflows the count is returned itself.
fn count(mean: f64, rng: &mut impl Rng) -> f64 {
    Poisson::new(mean).map_or(mean, |law| law.sample(rng))
}
