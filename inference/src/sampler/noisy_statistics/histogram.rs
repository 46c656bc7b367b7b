//! The start of a survival model's score stages, from a released histogram of its times.
//!
//! The histogram counts the records with and without an event in ranges of log time. Among the `R` records at risk in a range,
//! `d` have their event there; under a Weibull law the expected number is `R p`, with `p = 1 - exp(-(H_1 - H_0))` and `H` the
//! cumulative hazard at the range's ends. The differences `e = d - R p` are linear in the counts. Given the law they are nearly
//! normal, with covariance `diag(R p (1 - p)) + v A A'`, where `v` is the variance of a count's noise and `A` the map from counts
//! to differences. Records that are censored within a range count as half at risk. The start is the greatest value of this
//! likelihood, times the prior, on a grid that is refined around it. Bounds of times that no record comes near do not mislead it,
//! and neither do rounded times: see [`Histogram::start`].

use super::allotment::Allotment;
use super::gaussian::{GaussianPrior, factor};
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::model::TimesTable;
use conclave_common::query::Query;
use conclave_privacy::mechanism::{NoiseScale, QueryKind};

/// Share of the budget for the histogram.
const HISTOGRAM_SHARE: f64 = 0.05;
/// The logarithms of the shapes on the grid: from, to.
const LOG_SHAPES: (f64, f64) = (-3.0, 3.0);
/// The logarithms of the scales on the grid, in units of the greatest time: above the least, up to.
const LOG_SCALES: (f64, f64) = (-2.0, 9.0);
/// Points of the grid along a side.
const POINTS: usize = 25;
/// Times that the grid is refined.
const REFINED: usize = 4;
/// Largest misfit per range of a law that explains the counts; its expectation is 1.
const MOST_MISFIT: f64 = 2.0;
/// Least number of merged ranges.
const LEAST_RANGES: usize = 4;
/// Least expected number of events in a range.
const LEAST_EVENTS: f64 = 0.5;

/// The query for a histogram, once in a job.
#[derive(Debug, Clone)]
pub(crate) struct PendingHistogram {
    table: TimesTable,
    /// Set once it is sent.
    noise: Option<NoiseScale>,
    released: bool,
}

impl PendingHistogram {
    pub(crate) fn new(table: TimesTable) -> Self {
        Self { table, noise: None, released: false }
    }

    fn kind(&self) -> QueryKind {
        QueryKind::Table { cells: u32::try_from(self.table.cells()).unwrap_or(u32::MAX) }
    }

    /// Returns the query, if it is not answered, and subtracts its cost from the budget.
    ///
    /// # Errors
    /// The budget is too small for it.
    pub(crate) fn ask(&mut self, target: &Target, budget: &mut Allotment) -> Result<Option<Query>, SamplerError> {
        if self.released {
            return Ok(None);
        }
        let kind = self.kind();
        let noise = budget.take(&target.spec, target.model.as_ref(), kind, (&[], &[]), HISTOGRAM_SHARE)?;
        self.noise = Some(noise);
        Ok(Some(Query { chain: 0, kind, from: Vec::new(), to: Vec::new(), noise }))
    }

    /// Returns the histogram from the totals of the parties' answers; `None` if it was answered before.
    pub(crate) fn seen(&mut self, totals: &Totals, parties: usize) -> Option<Histogram> {
        if self.released {
            return None;
        }
        self.released = true;
        let sd = self.noise.map_or(0.0, |noise| self.kind().noise_sd(noise));
        let records = |units: &i128| *units as f64 / QueryKind::COUNT_UNIT as f64;
        let counts: Vec<f64> = totals.components().iter().map(records).collect();
        Some(Histogram::new(&self.table, &counts, parties as f64 * sd * sd))
    }
}

/// The released counts of a histogram, summed over the parties.
#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    /// Logarithm of the least time.
    pub(crate) least_log: f64,
    /// Number of records without an event, per range.
    pub(crate) censored: Vec<f64>,
    /// Number of records with an event, per range.
    pub(crate) events: Vec<f64>,
    /// Variance of a count's noise.
    pub(crate) variance: f64,
}

/// A law compared with the counts.
struct Fit {
    /// The squared length of the differences in sds of theirs.
    misfit: f64,
    log_density: f64,
}

impl Histogram {
    /// Sorts the released counts.
    pub(crate) fn new(table: &TimesTable, counts: &[f64], variance: f64) -> Self {
        let part = |first: usize| (first..first + TimesTable::RANGES).map(|at| counts.get(at).copied().unwrap_or(0.0)).collect();
        Self { least_log: table.least_log(), censored: part(0), events: part(TimesTable::RANGES), variance }
    }

    /// Returns the share of the records with an event, kept away from 0 by its noise.
    pub(crate) fn event_share(&self) -> f64 {
        let events: f64 = self.events.iter().sum();
        let sd = (self.variance * self.events.len() as f64).sqrt();
        let all: f64 = events + self.censored.iter().sum::<f64>();
        (events.max(sd) / all.max(1.0)).clamp(1e-3, 1.0)
    }

    /// Returns the logarithms of shape and scale at which the score stages start.
    ///
    /// Times in whole years or months leave narrow ranges empty beside full ones, which no Weibull law explains. So neighbouring
    /// ranges are merged until the best law explains their counts, or few ranges remain.
    pub(crate) fn start(&self, prior: &GaussianPrior) -> Vec<f64> {
        let mut seen = self.clone();
        loop {
            let best = seen.best(prior);
            let ranges = seen.events.len();
            if seen.fit(&best).misfit <= MOST_MISFIT * ranges as f64 || ranges < 2 * LEAST_RANGES {
                return best.to_vec();
            }
            let merged = |counts: &[f64]| counts.chunks(2).map(|pair| pair.iter().sum()).collect();
            let (censored, events) = (merged(&seen.censored), merged(&seen.events));
            seen = Self { censored, events, variance: 2.0 * seen.variance, ..seen };
        }
    }

    /// Returns the greatest value of the density on the refined grid.
    fn best(&self, prior: &GaussianPrior) -> [f64; 2] {
        let mut middle = [0.5 * (LOG_SHAPES.0 + LOG_SHAPES.1), 0.5 * (self.least_log + LOG_SCALES.0 + LOG_SCALES.1)];
        let mut half = [0.5 * (LOG_SHAPES.1 - LOG_SHAPES.0), 0.5 * (LOG_SCALES.1 - LOG_SCALES.0 - self.least_log)];
        let of_prior = |u: &[f64; 2]| -> f64 {
            u.iter().zip(&prior.mean).zip(&prior.precision).map(|((u, m), p)| -0.5 * p * (u - m) * (u - m)).sum()
        };
        for _ in 0..=REFINED {
            let at = |j: usize, i: usize| middle[j] + half[j] * (2.0 * i as f64 / (POINTS - 1) as f64 - 1.0);
            let points = (0..POINTS * POINTS).map(|i| [at(0, i / POINTS), at(1, i % POINTS)]);
            let valued = points.map(|u| (of_prior(&u) + self.fit(&u).log_density, u));
            // The first of equal values, so that every platform finds the same.
            let best = valued.fold((f64::NEG_INFINITY, middle), |best, (log, u)| if log > best.0 { (log, u) } else { best });
            middle = best.1;
            half = half.map(|half| 4.0 * half / (POINTS - 1) as f64);
        }
        middle
    }

    /// Compares the differences with the law of this shape and scale.
    fn fit(&self, u: &[f64; 2]) -> Fit {
        let (shape, ranges) = (libm::exp(u[0]), self.events.len());
        let width = -self.least_log / ranges as f64;
        let hazard = |end: usize| if end == 0 { 0.0 } else { libm::exp(shape * (self.least_log + end as f64 * width - u[1])) };
        let p: Vec<f64> = (0..ranges).map(|range| -libm::expm1(hazard(range) - hazard(range + 1))).collect();
        // At risk in a range: the events there and later, the censored later, and half of those censored there.
        let mut later = 0.0;
        let mut at_risk = vec![0.0; ranges];
        for range in (0..ranges).rev() {
            at_risk[range] = later + self.events[range] + 0.5 * self.censored[range];
            later += self.events[range] + self.censored[range];
        }
        let error: Vec<f64> = (0..ranges).map(|range| self.events[range] - at_risk[range] * p[range]).collect();
        let shared = |a: usize, b: usize| {
            let (first, last) = (a.min(b), a.max(b));
            let after = 2.0 * (ranges - 1 - last) as f64 * p[first] * p[last];
            let there = if first == last {
                (1.0 - p[last]) * (1.0 - p[last]) + 0.25 * p[last] * p[last]
            } else {
                -p[first] * (1.0 - p[last]) + 0.5 * p[first] * p[last]
            };
            self.variance * (after + there)
        };
        let own = |range: usize| (at_risk[range].max(0.0) * p[range]).max(LEAST_EVENTS) * (1.0 - p[range]) + LEAST_EVENTS;
        let covariance = Matrix::from_fn(ranges, |a, b| shared(a, b) + if a == b { own(a) } else { 0.0 });
        let spread = factor(&covariance);
        let misfit = spread.quadratic_of_inverse(&error);
        Fit { misfit, log_density: -0.5 * misfit - 0.5 * spread.log_determinant() }
    }
}

#[cfg(test)]
#[path = "tests/histogram.rs"]
mod tests;
