//! Draws from the product of the factors, and their summaries.

use rayon::prelude::*;

use super::beside::Beside;
use super::factor::OwnFactor;
use crate::sampler::error::SamplerError;
use crate::sampler::noisy_statistics::answer::Answer;
use crate::sampler::noisy_statistics::draws::{draw, spread};
use crate::sampler::noisy_statistics::information::Reach;

/// Number of records over all draws whose exact likelihood is computed.
const MOST_RECORDS: usize = 2_000_000_000;
/// Minimum number of draws.
const FEWEST: usize = 1000;

/// Mean, sd and quantiles of a parameter, on the scale of its prior.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Estimate {
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub sd: f64,
    /// 5 % quantile.
    pub q5: f64,
    /// Median.
    pub q50: f64,
    /// 95 % quantile.
    pub q95: f64,
}

/// Draws with their weights.
pub(super) struct Weighted {
    /// theta of each draw.
    pub(super) theta: Vec<Vec<f64>>,
    pub(super) weights: Vec<f64>,
    /// Largest ratio of the draws' width to the fit's.
    pub(super) spread: f64,
}

/// Draws from the fit's factors, and weights each draw by the ratio of the owner's likelihood to its quadratic.
///
/// # Errors
/// The posterior has no point of positive density.
pub(super) fn weighted(own: OwnFactor<'_>, fit: &Beside, reach: Reach<'_>) -> Result<Weighted, SamplerError> {
    let likelihood = fit.others.as_ref().map(|(stage, fitted)| stage.likelihood(fitted, reach));
    let log_likelihood = |u: &[f64]| {
        let at = own.coding.coded(u);
        likelihood.as_ref().map_or(0.0, |others| others.log(&at)) + fit.quadratic.log(&at)
    };
    let answer = Answer {
        mean: own.coding.plain(&fit.mean),
        covariance: own.coding.plain_covariance(&fit.covariance),
        log_likelihood: Box::new(log_likelihood),
    };
    let (draws, _) = draw(own.target, &answer, 0)?;
    let spread = spread(own.target, &answer, &draws);
    // Neighbouring draws of a chain are the most alike, so every k-th round of the chains is kept.
    let kept = (MOST_RECORDS / own.data.outcome.len().max(1)).max(FEWEST);
    let chains = own.target.spec.sampler.chains.max(1) as usize;
    let every = draws.len().div_ceil(kept).max(1);
    let theta: Vec<Vec<f64>> = draws.chunks(chains).step_by(every).flatten().map(|draw| draw.theta.clone()).collect();
    let middle = own.log(&fit.quadratic.at);
    let excess = |theta: &Vec<f64>| {
        let at = own.coding.coded(&own.target.space.coordinates(theta));
        own.log_of(theta) - middle - fit.quadratic.log(&at)
    };
    let logs: Vec<f64> = theta.par_iter().map(excess).collect();
    let most = logs.iter().copied().filter(|log| log.is_finite()).fold(f64::NEG_INFINITY, f64::max);
    let weight = |log: &f64| if log.is_finite() { libm::exp(log - most) } else { 0.0 };
    Ok(Weighted { weights: logs.iter().map(weight).collect(), theta, spread })
}

impl Weighted {
    /// Returns the effective share of the draws: 1 if the owner's likelihood is a quadratic.
    pub(super) fn efficiency(&self) -> f64 {
        let (sum, squares) = self.weights.iter().fold((0.0, 0.0), |(sum, squares), w| (sum + w, squares + w * w));
        if squares > 0.0 { sum * sum / squares / self.weights.len() as f64 } else { 0.0 }
    }

    /// Summarises a parameter.
    pub(super) fn estimate(&self, parameter: usize) -> Estimate {
        Estimate::of(self.theta.iter().map(|theta| theta[parameter]).zip(self.weights.iter().copied()).collect())
    }
}

impl Estimate {
    /// Summarises values with weights.
    pub(super) fn of(mut values: Vec<(f64, f64)>) -> Self {
        values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let all: f64 = values.iter().map(|(_, weight)| weight).sum();
        let mean = values.iter().map(|(value, weight)| value * weight).sum::<f64>() / all;
        let variance = values.iter().map(|(value, weight)| weight * (value - mean) * (value - mean)).sum::<f64>() / all;
        let quantile = |part: f64| {
            let mut below = 0.0;
            let reached = values.iter().find(|(_, weight)| {
                below += weight;
                below >= part * all
            });
            reached.map_or(f64::NAN, |(value, _)| *value)
        };
        Self { mean, sd: variance.sqrt(), q5: quantile(0.05), q50: quantile(0.5), q95: quantile(0.95) }
    }
}
