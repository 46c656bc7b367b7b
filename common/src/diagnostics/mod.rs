//! Convergence diagnostics of Markov chains: rank-normalised split R-hat, bulk and tail effective sample size, Monte Carlo error, and
//! [what they mean](Verdict) in sentences.
//!
//! After Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), "Rank-normalization, folding, and localization: an improved R-hat for
//! assessing convergence of MCMC", in the form that ArviZ 0.23 computes. Chains are slices of draws of one parameter, in order.
//!
//! What cannot be computed is `NaN`: everything for no draws or draws that are not numbers, the diagnostics for fewer than four draws per
//! chain, R-hat for a single chain or for chains that never moved. Chains of unequal length are cut to the shortest.

mod ess;
mod mcse;
mod ranks;
mod verdict;

use ess::of_split_chains;
use ranks::z_scale;
pub use verdict::{ERROR_SHARE, RHAT, Verdict, ess_wanted, verdict};

/// Posterior summary of one parameter.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Summary {
    /// Mean of all draws.
    pub mean: f64,
    /// Standard deviation of all draws (divisor: count less one).
    pub sd: f64,
    /// 5% quantile, linearly interpolated between order statistics, as all quantiles here (Hyndman & Fan's type 7).
    pub q5: f64,
    /// Median.
    pub median: f64,
    /// 95% quantile.
    pub q95: f64,
    /// Effective sample size of the bulk: that of the mean of rank-normalised draws.
    pub ess_bulk: f64,
    /// Effective sample size of the tails: the smaller of those of the 5% and 95% quantiles.
    pub ess_tail: f64,
    /// The larger of the rank-normalised split R-hat of the draws and of their folded values. Below 1.01 is good, above 1.1 is not.
    pub rhat: f64,
    /// Monte Carlo standard error of the mean, `sd / sqrt(ess)`.
    pub mcse_mean: f64,
    /// Monte Carlo standard error of the sd.
    pub mcse_sd: f64,
    /// Monte Carlo standard error of the 5% quantile, and of the other two below.
    pub mcse_q5: f64,
    /// Of the median.
    pub mcse_median: f64,
    /// Of the 95% quantile.
    pub mcse_q95: f64,
    /// Effective sample size of the 5% quantile: that of the indicator of draws at or below it. The same for the other two below.
    pub ess_q5: f64,
    /// Of the median.
    pub ess_median: f64,
    /// Of the 95% quantile.
    pub ess_q95: f64,
}

/// A summary with nothing in it.
const NOTHING: Summary = Summary {
    mean: f64::NAN,
    sd: f64::NAN,
    q5: f64::NAN,
    median: f64::NAN,
    q95: f64::NAN,
    ess_bulk: f64::NAN,
    ess_tail: f64::NAN,
    rhat: f64::NAN,
    mcse_mean: f64::NAN,
    mcse_sd: f64::NAN,
    mcse_q5: f64::NAN,
    mcse_median: f64::NAN,
    mcse_q95: f64::NAN,
    ess_q5: f64::NAN,
    ess_median: f64::NAN,
    ess_q95: f64::NAN,
};

/// Summarises the chains of one parameter.
#[must_use]
pub fn summarise(chains: &[&[f64]]) -> Summary {
    let chains = equal_lengths(chains);
    let mut sorted = pooled(&chains);
    if sorted.is_empty() || sorted.iter().any(|x| !x.is_finite()) {
        return NOTHING;
    }
    let (mean, sd) = mean_and_sd(&sorted);
    sorted.sort_unstable_by(f64::total_cmp);
    let [q5, median, q95] = PROBABILITIES.map(|p| quantile(&sorted, p));
    let ess_at = [q5, median, q95].map(|threshold| ess_below(&chains, threshold));
    let mcse_at = |i: usize| mcse::of_quantile(&sorted, PROBABILITIES[i], ess_at[i]);
    Summary {
        mean,
        sd,
        q5,
        median,
        q95,
        ess_bulk: ess_bulk(&chains),
        ess_tail: ess_at[0].min(ess_at[2]),
        rhat: split_rhat(&chains),
        mcse_mean: sd / ess(&chains).sqrt(),
        mcse_sd: mcse::of_sd(&chains, mean),
        mcse_q5: mcse_at(0),
        mcse_median: mcse_at(1),
        mcse_q95: mcse_at(2),
        ess_q5: ess_at[0],
        ess_median: ess_at[1],
        ess_q95: ess_at[2],
    }
}

/// Of the quantiles that a summary holds.
const PROBABILITIES: [f64; 3] = [0.05, 0.5, 0.95];

/// Rank-normalised split R-hat: the larger of the bulk's and the folded draws'. Dimensionless, near 1 for chains that agree.
#[must_use]
pub fn split_rhat(chains: &[&[f64]]) -> f64 {
    let chains = equal_lengths(chains);
    if chains.len() < 2 || !usable(&chains) {
        return f64::NAN;
    }
    let halves = split(&chains);
    let mut sorted = pooled(&halves);
    sorted.sort_unstable_by(f64::total_cmp);
    let median = quantile(&sorted, 0.5);
    let folded: Vec<Vec<f64>> = halves.iter().map(|half| half.iter().map(|x| (x - median).abs()).collect()).collect();
    let bulk = rhat(&z_scale(&halves));
    let tail = rhat(&z_scale(&slices(&folded)));
    // Not f64::max: chains that never moved give NaN for the bulk, and that must not be swallowed.
    if tail > bulk { tail } else { bulk }
}

/// Effective sample size of the mean, from split chains.
#[must_use]
pub fn ess(chains: &[&[f64]]) -> f64 {
    let chains = equal_lengths(chains);
    if usable(&chains) { of_split_chains(&split(&chains)) } else { f64::NAN }
}

/// Bulk effective sample size; see [`Summary::ess_bulk`].
#[must_use]
pub fn ess_bulk(chains: &[&[f64]]) -> f64 {
    let chains = equal_lengths(chains);
    if usable(&chains) { of_split_chains(&slices(&z_scale(&split(&chains)))) } else { f64::NAN }
}

/// Tail effective sample size; see [`Summary::ess_tail`].
#[must_use]
pub fn ess_tail(chains: &[&[f64]]) -> f64 {
    let chains = equal_lengths(chains);
    let mut sorted = pooled(&chains);
    sorted.sort_unstable_by(f64::total_cmp);
    ess_below(&chains, quantile(&sorted, 0.05)).min(ess_below(&chains, quantile(&sorted, 0.95)))
}

/// Effective sample size of the indicator of draws at or below `threshold`, of chains of one length.
fn ess_below(chains: &[&[f64]], threshold: f64) -> f64 {
    if !usable(chains) {
        return f64::NAN;
    }
    let below: Vec<Vec<f64>> =
        chains.iter().map(|chain| chain.iter().map(|&x| f64::from(u8::from(x <= threshold))).collect()).collect();
    of_split_chains(&split(&slices(&below)))
}

/// A quantile of sorted values, linearly interpolated. `NaN` when there are none.
#[must_use]
pub fn quantile(sorted: &[f64], probability: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let position = probability.clamp(0.0, 1.0) * last as f64;
    let below = (position.floor() as usize).min(last);
    let above = (below + 1).min(last);
    sorted[below] + (position - below as f64) * (sorted[above] - sorted[below])
}

/// R-hat of chains as they are (Vehtari et al. 2021, equations 1 to 4).
fn rhat<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let draws = chains[0].as_ref().len() as f64;
    let moments: Vec<(f64, f64)> = chains.iter().map(|chain| mean_and_sd(chain.as_ref())).collect();
    let means: Vec<f64> = moments.iter().map(|m| m.0).collect();
    let between = draws * mean_and_sd(&means).1.powi(2);
    let within = moments.iter().map(|m| m.1 * m.1).sum::<f64>() / moments.len() as f64;
    ((between / within + draws - 1.0) / draws).sqrt()
}

/// Cuts all chains to the length of the shortest.
fn equal_lengths<'a>(chains: &[&'a [f64]]) -> Vec<&'a [f64]> {
    let draws = chains.iter().map(|chain| chain.len()).min().unwrap_or(0);
    chains.iter().map(|chain| &chain[..draws]).collect()
}

/// Whether chains of one length are long enough, and numbers.
fn usable(chains: &[&[f64]]) -> bool {
    !chains.is_empty() && chains.iter().all(|chain| chain.len() >= 4 && chain.iter().all(|x| x.is_finite()))
}

/// First and second halves; an odd length leaves the middle draw out.
fn split<'a>(chains: &[&'a [f64]]) -> Vec<&'a [f64]> {
    let half = |chain: &&'a [f64]| chain.len() / 2;
    let first = chains.iter().map(|chain| &chain[..half(chain)]);
    first.chain(chains.iter().map(|chain| &chain[chain.len() - half(chain)..])).collect()
}

fn pooled(chains: &[&[f64]]) -> Vec<f64> {
    chains.iter().flat_map(|chain| chain.iter().copied()).collect()
}

fn slices(chains: &[Vec<f64>]) -> Vec<&[f64]> {
    chains.iter().map(Vec::as_slice).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Mean and sample standard deviation (0 for a single value).
fn mean_and_sd(values: &[f64]) -> (f64, f64) {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    (mean, (squares / (values.len() as f64 - 1.0).max(1.0)).sqrt())
}

#[cfg(test)]
mod tests;
