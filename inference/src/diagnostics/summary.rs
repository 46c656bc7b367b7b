//! Posterior summary of one parameter, with the diagnostics of its chains.

use super::chains::{equal_lengths, never_moved, pooled};
use super::ess::{ess, ess_below, ess_bulk};
use super::mcse;
use super::moments::{mean_and_sd, quantile};
use super::rhat::split_rhat;

/// Posterior summary of one parameter.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Summary {
    /// Mean of all draws.
    pub mean: f64,
    /// Standard deviation of all draws (divisor: the count minus one).
    pub sd: f64,
    /// 5% quantile. All quantiles here are interpolated linearly between order statistics (Hyndman & Fan's type 7).
    pub q5: f64,
    /// Median.
    pub median: f64,
    /// 95% quantile.
    pub q95: f64,
    /// Effective sample size of the bulk: the effective sample size of the mean of the rank-normalised draws.
    pub ess_bulk: f64,
    /// Effective sample size of the tails: the smaller of the effective sample sizes of the 5% and 95% quantiles.
    pub ess_tail: f64,
    /// Rank-normalised split R-hat: the larger of the values for the draws and for their folded values. A value below 1.01 is
    /// good, a value above 1.1 is unacceptable.
    pub rhat: f64,
    /// Monte Carlo standard error of the mean, `sd / sqrt(ess)`.
    pub mcse_mean: f64,
    /// Monte Carlo standard error of the sd.
    pub mcse_sd: f64,
    /// Monte Carlo standard error of the 5% quantile.
    pub mcse_q5: f64,
    /// Monte Carlo standard error of the median.
    pub mcse_median: f64,
    /// Monte Carlo standard error of the 95% quantile.
    pub mcse_q95: f64,
    /// Effective sample size of the 5% quantile: the effective sample size of the indicator of draws at or below it.
    pub ess_q5: f64,
    /// Effective sample size of the median, defined in the same way.
    pub ess_median: f64,
    /// Effective sample size of the 95% quantile, defined in the same way.
    pub ess_q95: f64,
}

/// Effective draws below which no Monte Carlo error of an sd is published. On a normal posterior it is too small by a factor of
/// 1.2 with 50 effective draws, of 1.6 with 17 and of 2.2 with 10, and by more on a skewed one.
const LEAST_FOR_SD: f64 = 50.0;

impl Summary {
    /// Returns the figures of a result: effective sample sizes are capped at the number of draws over all chains, and the Monte
    /// Carlo error of the sd is `NaN` with fewer than 50 effective draws.
    #[must_use]
    pub fn published(self, draws: usize) -> Self {
        let of_sd = if self.ess_bulk >= LEAST_FOR_SD { self.mcse_sd } else { f64::NAN };
        Self { mcse_sd: of_sd, ..self.with_ess_capped(draws) }
    }

    /// Caps the effective sample sizes at the number of draws over all chains. Antithetic chains estimate their mean better than
    /// that number of independent draws, which `mcse_mean` shows, but a larger effective sample size would look like a mistake.
    #[must_use]
    pub fn with_ess_capped(mut self, draws: usize) -> Self {
        let most = draws as f64;
        let sizes = [&mut self.ess_bulk, &mut self.ess_tail, &mut self.ess_q5, &mut self.ess_median, &mut self.ess_q95];
        // `NaN` stays `NaN`.
        sizes.into_iter().filter(|size| **size > most).for_each(|size| *size = most);
        self
    }
}

/// Summary without values: every field is `NaN`.
pub(super) const EMPTY: Summary = Summary {
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
        return EMPTY;
    }
    let (mean, sd) = mean_and_sd(&sorted);
    let sd = if never_moved(&chains) { 0.0 } else { sd };
    sorted.sort_unstable_by(f64::total_cmp);
    let [q5, median, q95] = PROBABILITIES.map(|p| quantile(&sorted, p));
    let ess_at = [q5, median, q95].map(|threshold| ess_below(&chains, threshold));
    let mcse_at = |i: usize| mcse::quantile_error(&sorted, PROBABILITIES[i], ess_at[i]);
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
        mcse_sd: mcse::sd_error(&chains, mean),
        mcse_q5: mcse_at(0),
        mcse_median: mcse_at(1),
        mcse_q95: mcse_at(2),
        ess_q5: ess_at[0],
        ess_median: ess_at[1],
        ess_q95: ess_at[2],
    }
}

/// Probabilities of the quantiles in a summary.
const PROBABILITIES: [f64; 3] = [0.05, 0.5, 0.95];
