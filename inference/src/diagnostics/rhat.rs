//! Split R-hat compares the chains with each other, and the first half of each chain with its second.

use super::chains::{equal_lengths, is_usable, pooled, slices, split};
use super::moments::{mean_and_sd, quantile};
use super::ranks::z_scale;

/// Returns the rank-normalised split R-hat: the larger of the values for the draws and for the folded draws. It is dimensionless,
/// and near 1 for chains that agree.
#[must_use]
pub fn split_rhat(chains: &[&[f64]]) -> f64 {
    let chains = equal_lengths(chains);
    if chains.len() < 2 || !is_usable(&chains) {
        return f64::NAN;
    }
    let halves = split(&chains);
    let mut sorted = pooled(&halves);
    sorted.sort_unstable_by(f64::total_cmp);
    let median = quantile(&sorted, 0.5);
    let folded: Vec<Vec<f64>> = halves.iter().map(|half| half.iter().map(|x| (x - median).abs()).collect()).collect();
    let bulk = rhat(&z_scale(&halves));
    let tail = rhat(&z_scale(&slices(&folded)));
    // Not f64::max: chains that never moved give NaN for the bulk, which f64::max would discard.
    if tail > bulk { tail } else { bulk }
}

/// R-hat of chains without further transformation (Vehtari et al. 2021, equations 1 to 4).
fn rhat<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let draws = chains[0].as_ref().len() as f64;
    let moments: Vec<(f64, f64)> = chains.iter().map(|chain| mean_and_sd(chain.as_ref())).collect();
    let means: Vec<f64> = moments.iter().map(|m| m.0).collect();
    let between = draws * mean_and_sd(&means).1.powi(2);
    let within = moments.iter().map(|m| m.1 * m.1).sum::<f64>() / moments.len() as f64;
    ((between / within + draws - 1.0) / draws).sqrt()
}
