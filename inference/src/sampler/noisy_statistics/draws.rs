//! Draws from the posterior given the releases, by a walk on its density.

use super::answer::Answer;
use super::walk::{Walk, WalkSettings};
use crate::sampler::error::SamplerError;
use crate::sampler::target::Target;
use conclave_common::query::Draw;

/// Draws the job's number of draws from a posterior, and returns them with the walk's acceptance rate. `iteration` is the round
/// that they belong to.
pub(crate) fn draw(target: &Target, answer: &Answer<'_>, iteration: u64) -> Result<(Vec<Draw>, f64), SamplerError> {
    let Target { spec, space, .. } = target;
    let density = |u: &[f64]| {
        let theta = space.theta(u);
        if !spec.in_support(&theta) {
            return f64::NEG_INFINITY;
        }
        (answer.log_likelihood)(u) + space.log_prior(spec, u, &theta)
    };
    let inside = space.coordinates(&space.theta_inside(spec, &answer.mean));
    let settings = WalkSettings { chains: spec.sampler.chains as usize, seed: spec.sampler.seed, first_stream: 0, warmup: 0 };
    let walk = Walk::new(settings, &answer.mean, &answer.covariance, &inside, &density);
    let mut walk = walk.ok_or(SamplerError::NoPlace)?;
    let mut draws = Vec::new();
    for _ in 0..spec.sampler.draws {
        for (chain, u) in walk.draw(&density).into_iter().enumerate() {
            let theta = space.theta_inside(spec, &u);
            draws.push(Draw { chain: chain as u32, warmup: false, theta, accepted: true, log_alpha: 0.0, iteration });
        }
    }
    Ok((draws, walk.acceptance()))
}

/// Returns the largest ratio of the width of the draws, between their 5 % and 95 % quantiles, to that of the answer's Gaussian fit, over the
/// coordinates.
pub(crate) fn spread(target: &Target, answer: &Answer<'_>, draws: &[Draw]) -> f64 {
    /// The same width of a standard normal law.
    const NORMAL: f64 = 3.29;
    let at: Vec<Vec<f64>> = draws.iter().map(|draw| target.space.coordinates(&draw.theta)).collect();
    let ratio = |(j, variance): (usize, f64)| {
        let mut values: Vec<f64> = at.iter().map(|u| u[j]).collect();
        values.sort_unstable_by(f64::total_cmp);
        let quantile = |part: f64| values.get((part * values.len() as f64) as usize).copied().unwrap_or(f64::NAN);
        (quantile(0.95) - quantile(0.05)) / (NORMAL * variance.sqrt())
    };
    answer.covariance.diagonal_entries().into_iter().enumerate().map(ratio).fold(0.0, f64::max)
}
