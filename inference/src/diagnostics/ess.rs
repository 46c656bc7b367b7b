//! Effective sample size by Geyer's initial monotone sequence over several chains.

use super::chains::{equal_lengths, is_usable, never_moved, pooled, slices, split};
use super::moments::{mean, mean_and_sd, quantile};
use super::ranks::z_scale;

/// Returns the effective sample size of the mean, from split chains; `NaN` if no chain moved.
#[must_use]
pub fn ess(chains: &[&[f64]]) -> f64 {
    let chains = equal_lengths(chains);
    if has_ess(&chains) { split_ess(&split(&chains)) } else { f64::NAN }
}

/// True if an effective sample size is defined: the chains are usable, and moved.
fn has_ess(chains: &[&[f64]]) -> bool {
    is_usable(chains) && !never_moved(chains)
}

/// Returns the bulk effective sample size; see [`super::Summary::ess_bulk`].
#[must_use]
pub fn ess_bulk(chains: &[&[f64]]) -> f64 {
    let chains = equal_lengths(chains);
    if has_ess(&chains) { split_ess(&slices(&z_scale(&split(&chains)))) } else { f64::NAN }
}

/// Returns the tail effective sample size; see [`super::Summary::ess_tail`].
#[must_use]
pub fn ess_tail(chains: &[&[f64]]) -> f64 {
    let chains = equal_lengths(chains);
    let mut sorted = pooled(&chains);
    sorted.sort_unstable_by(f64::total_cmp);
    ess_below(&chains, quantile(&sorted, 0.05)).min(ess_below(&chains, quantile(&sorted, 0.95)))
}

/// Effective sample size of the indicator of draws at or below `threshold`, from chains of equal length.
pub(super) fn ess_below(chains: &[&[f64]], threshold: f64) -> f64 {
    if !has_ess(chains) {
        return f64::NAN;
    }
    let below: Vec<Vec<f64>> =
        chains.iter().map(|chain| chain.iter().map(|&x| f64::from(u8::from(x <= threshold))).collect()).collect();
    split_ess(&split(&slices(&below)))
}

/// Effective sample size of the mean of chains that are already split and have equal lengths of at least 2.
///
/// If all values are equal, the result is their number: the indicator of a quantile that is the greatest draw. It is at most `count * log10(count)`, which antithetic chains can
/// reach.
// Chains end by it: stored jobs keep the bits with which they ran.
#[allow(clippy::disallowed_methods)]
fn split_ess(chains: &[&[f64]]) -> f64 {
    let draws = chains[0].len();
    let count = (draws * chains.len()) as f64;
    let (least, greatest) =
        chains.iter().flat_map(|chain| chain.iter()).fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &x| (a.min(x), b.max(x)));
    if greatest - least < 1e-15 {
        return count;
    }
    let correlation = Autocorrelation::new(chains);
    let tau = correlation_time(draws, |lag| correlation.at(lag));
    count / tau.max(1.0 / count.log10())
}

/// Autocorrelations from the variances within and between chains.
struct Autocorrelation {
    centred: Vec<Vec<f64>>,
    mean_var: f64,
    var_plus: f64,
}

impl Autocorrelation {
    fn new(chains: &[&[f64]]) -> Self {
        let n = chains[0].len() as f64;
        let means: Vec<f64> = chains.iter().map(|chain| mean(chain)).collect();
        let centred: Vec<Vec<f64>> = chains.iter().zip(&means).map(|(chain, m)| chain.iter().map(|x| x - m).collect()).collect();
        let mean_var = covariance(&centred, 0) * n / (n - 1.0);
        let between = if chains.len() > 1 { mean_and_sd(&means).1.powi(2) } else { 0.0 };
        Self { centred, mean_var, var_plus: mean_var * (n - 1.0) / n + between }
    }

    fn at(&self, lag: usize) -> f64 {
        1.0 - (self.mean_var - covariance(&self.centred, lag)) / self.var_plus
    }
}

/// Mean over the chains of the autocovariance at a lag, with divisor `n`.
fn covariance(centred: &[Vec<f64>], lag: usize) -> f64 {
    let total: f64 = centred.iter().map(|chain| dot(&chain[..chain.len() - lag], &chain[lag..])).sum();
    total / (centred.len() * centred[0].len()) as f64
}

/// Computes a dot product in eight lanes: a single accumulator would wait for each addition.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(x, y)| x * y).sum();
    let mut lanes = [0.0; 8];
    for (a, b) in a.zip(b) {
        for ((lane, x), y) in lanes.iter_mut().zip(a).zip(b) {
            *lane += x * y;
        }
    }
    lanes.iter().sum::<f64>() + rest
}

/// The integrated autocorrelation time, `-1 + 2 sum rho`, over Geyer's initial positive and monotone
/// sequence of pairs.
///
/// Lags are evaluated in order, and only up to the first pair with a negative sum.
fn correlation_time(draws: usize, correlation: impl Fn(usize) -> f64) -> f64 {
    let mut rho = vec![1.0, correlation(1)];
    let (mut even, mut odd) = (rho[0], rho[1]);
    while rho.len() + 2 < draws && even + odd > 0.0 {
        (even, odd) = (correlation(rho.len()), correlation(rho.len() + 1));
        rho.push(even);
        rho.push(odd);
    }
    // The doubled sum omits the last pair. Its even term counts once, unless it is negative and ended the sequence.
    let kept = rho.len() - 2;
    let last = if even > 0.0 || even + odd >= 0.0 { even } else { 0.0 };
    let sum: f64 = monotone(&rho[..kept]).iter().sum();
    -1.0 + 2.0 * sum + last
}

/// Makes the sums of consecutive pairs non-increasing.
fn monotone(rho: &[f64]) -> Vec<f64> {
    let mut rho = rho.to_vec();
    for t in (2..rho.len()).step_by(2) {
        let before = rho[t - 2] + rho[t - 1];
        if rho[t] + rho[t + 1] > before {
            (rho[t], rho[t + 1]) = (before / 2.0, before / 2.0);
        }
    }
    rho
}
