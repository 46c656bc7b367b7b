//! Inference for the probabilities of a life table from noisy counts.
//!
//! In one group, `d_k` records have their event in interval `k`, `c_k` are censored within it and `f_k` at its end. Each count is released with
//! normal noise of variance `v`. Of the records at risk, `Y_k = d_k + f_k + c_k / 2 + sum_{j>k} (d_j + c_j + f_j)`, the difference
//! `g_k = d_k - h_k Y_k` has the expectation 0 at the truth. Without noise the `g_k` are differences of a martingale: uncorrelated, with
//! variances `Y_k h_k (1 - h_k)`. Intervals share the noise of all later counts, `h_k h_l` of each. So `g` is normal with a known covariance `W`: a
//! pivot, with log likelihood `-½ log|W| - ½ g' W^-1 g`. At the maximum without noise, `h_k = d_k / Y_k`, the actuarial estimate.
//!
//! Its quantiles are those of the exact mixture over the true counts where a count's noise is at least half a record, whatever the number of
//! events.

use super::gaussian::factor;
use crate::sampler::matrix::Matrix;
use conclave_common::model::{FollowUpEnd, LifeTable};

/// The least probability at which a Gaussian fit is centred, per record at risk.
const LEAST_EVENTS: f64 = 0.5;

/// The released counts of one group, summed over the parties, in the order of the intervals.
#[derive(Debug, Clone)]
pub(crate) struct GroupCounts {
    /// Records with their event in the interval.
    events: Vec<f64>,
    /// Records at risk in it.
    at_risk: Vec<f64>,
}

/// The released counts of a life table.
#[derive(Debug, Clone)]
pub(crate) struct LifeCounts {
    pub(crate) groups: Vec<GroupCounts>,
    /// Variance of each count's noise.
    pub(crate) variance: f64,
}

impl LifeCounts {
    /// Sorts the released counts, which are numbered as the cells of the table.
    pub(crate) fn new(table: &LifeTable, counts: &[f64], variance: f64) -> Self {
        let of = |group: usize| {
            let count = |interval, end| counts.get(table.cell(group, interval, end)).copied().unwrap_or(0.0);
            let (mut events, mut at_risk, mut later) = (vec![0.0; table.intervals()], vec![0.0; table.intervals()], 0.0);
            for k in (0..table.intervals()).rev() {
                let [event, within, at_end] =
                    [FollowUpEnd::Event, FollowUpEnd::Within, FollowUpEnd::AtEnd].map(|end| count(k, end));
                events[k] = event;
                at_risk[k] = later + event + at_end + 0.5 * within;
                later += event + at_end + within;
            }
            GroupCounts { events, at_risk }
        };
        Self { groups: (0..table.groups()).map(of).collect(), variance }
    }

    /// Returns, group by group, the log likelihood at the probabilities `h`, up to a constant.
    pub(crate) fn log_likelihood(&self, h: &[f64]) -> f64 {
        let mut rest = h;
        let mut sum = 0.0;
        for group in &self.groups {
            let (own, others) = rest.split_at(group.events.len().min(rest.len()));
            sum += group.log_likelihood(own, self.variance);
            rest = others;
        }
        sum
    }

    /// Returns, per parameter, a probability near the mode and its sd with and without noise.
    pub(crate) fn rough(&self) -> Vec<(f64, f64, f64)> {
        self.groups.iter().flat_map(|group| group.rough(self.variance)).collect()
    }
}

/// Returns the covariance of the noise of two intervals' differences at `h`, relative to that of a count.
fn shared_noise(h: &[f64], a: usize, b: usize) -> f64 {
    let (first, last) = (a.min(b), a.max(b));
    let product = h[first] * h[last];
    let later = FollowUpEnd::COUNT * (h.len() - 1 - last);
    // The events, those censored at the end, and those censored within.
    let of_events = if first == last { (1.0 - h[last]) * (1.0 - h[last]) } else { -h[first] * (1.0 - h[last]) };
    let of_within = if first == last { 0.25 } else { 0.5 };
    of_events + product * (1.0 + of_within + later as f64)
}

impl GroupCounts {
    /// Returns the number at risk, kept away from 0.
    fn at_risk(&self, k: usize) -> f64 {
        self.at_risk[k].max(1.0)
    }

    fn log_likelihood(&self, h: &[f64], variance: f64) -> f64 {
        let count = h.len();
        let differences: Vec<f64> = (0..count).map(|k| self.events[k] - h[k] * self.at_risk[k]).collect();
        let own = |k: usize| self.at_risk(k) * h[k] * (1.0 - h[k]);
        let covariance = Matrix::from_fn(count, |a, b| variance * shared_noise(h, a, b) + if a == b { own(a) } else { 0.0 });
        let spread = factor(&covariance);
        -0.5 * spread.quadratic_of_inverse(&differences) - 0.5 * spread.log_determinant()
    }

    fn rough(&self, variance: f64) -> Vec<(f64, f64, f64)> {
        let least = |k: usize| LEAST_EVENTS / (self.at_risk(k) + 2.0 * LEAST_EVENTS);
        let at = |k: usize| (self.events[k] / self.at_risk(k)).clamp(least(k), 1.0 - least(k));
        let h: Vec<f64> = (0..self.events.len()).map(at).collect();
        let one = |k: usize| {
            let own = self.at_risk(k) * h[k] * (1.0 - h[k]);
            let noise = variance * shared_noise(&h, k, k);
            (h[k], (own + noise).sqrt() / self.at_risk(k), own.sqrt() / self.at_risk(k))
        };
        (0..h.len()).map(one).collect()
    }
}

/// Returns the ratios of the noise's variance to the records' own, interval by interval, for `records` records in a group without
/// censoring, of which `events` have their event before the end.
pub(crate) fn expected_ratios(intervals: usize, records: f64, events: f64, variance: f64) -> Vec<f64> {
    // Equal hazards: the share of survivors is a power of that of one interval.
    let h = vec![1.0 - libm::pow(1.0 - events, 1.0 / intervals as f64); intervals];
    let ratio = |k: usize| {
        let at_risk = records * libm::pow(1.0 - h[k], k as f64);
        variance * shared_noise(&h, k, k) / (at_risk * h[k] * (1.0 - h[k]))
    };
    (0..intervals).map(ratio).collect()
}

#[cfg(test)]
#[path = "tests/life_counts.rs"]
mod tests;
