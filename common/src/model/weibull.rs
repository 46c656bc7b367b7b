//! Weibull survival times with right censoring.
//!
//! Density of one record with time `t` and event `d` (1 if the time is that of the event, 0 if it is that of the last
//! observation): `log p(t, d | k, lambda) = d (ln k + (k - 1) ln t - k ln lambda) - (t / lambda)^k`, up to terms that do not
//! depend on the parameters. The time is in units of its declared maximum `T`, so `t` lies in `[min / max, 1]`. A shard holds `x`
//! with `t = (max + min) / (2 max) + x (max - min) / (2 max)`, and the event as its first auxiliary column.
//!
//! Parameters: `shape` k > 0, without unit, and `scale` lambda > 0 in units of `T` (in the data's unit of time among the original
//! values). Source: Kalbfleisch & Prentice, *The Statistical Analysis of Failure Time Data*, 2nd ed., section 3.4. Times are
//! positive, so the column's declared minimum must be above 0; shorter times count as the minimum.
//!
//! Log ratio, with `u = ln t`, `b = k ln lambda` and `H(u) = e^(k u - b)`:
//! `d (Delta ln k - Delta b + u Delta k) - (H'(u) - H(u))`. The second derivative in `u` is `k^2 H - k'^2 H'`, whose largest
//! magnitude on an interval is at an end or at `k^3 H = k'^3 H'`. Branch and bound then gives the range over the declared times,
//! for `d = 0` and `d = 1`, and from it the public bound and the public centre.
//!
//! Information about the logs of the parameters: 1.83 for an uncensored record's shape (pi^2/6 + (1 - gamma)^2), `k^2` for its
//! scale. The second is unbounded; its value at a shape of 10 is used.

use super::ratio_range::RatioRange;
use super::score::ScoreModel;
use super::times::Times;
use super::times_table::TimesTable;
use super::weibull_scores::WeibullScores;
use super::{Model, envelope};
use crate::elementary::exp;
use crate::schema::ColumnSpec;
use conclave_privacy::pass::blocks::{Kernel, KernelVisitor, Scratch};
use conclave_privacy::pass::tile::Tile;
use conclave_privacy::pass::{BlockPass, ModelData};

/// Weibull survival on a declared time column and an event column.
pub(super) struct Weibull {
    names: Vec<String>,
    times: Times,
}

/// The public constants of a step's ratios; every difference is odd in the step.
#[derive(Clone, Copy)]
pub(super) struct Constants {
    shape: (f64, f64),
    /// `k ln lambda`.
    offset: (f64, f64),
    /// `ln k' - ln k`.
    log_shape: f64,
}

impl Constants {
    #[inline(always)]
    fn new(from: &[f64], to: &[f64]) -> Self {
        let offset = |theta: &[f64]| theta[0] * libm::log(theta[1]);
        Self { shape: (from[0], to[0]), offset: (offset(from), offset(to)), log_shape: libm::log(to[0]) - libm::log(from[0]) }
    }

    /// Returns the log ratio of a record with log time `u`.
    #[inline(always)]
    fn ratio(&self, u: f64, event: f64) -> f64 {
        let (shape, offset) = (self.shape, self.offset);
        let hazard = (self.log_shape - (offset.1 - offset.0)) + u * (shape.1 - shape.0);
        let cumulative = exp(shape.1 * u - offset.1) - exp(shape.0 * u - offset.0);
        event * hazard - cumulative
    }

    /// Returns the largest magnitude of the ratio's second derivative in `u` on `[low, high]`.
    fn curvature(&self, low: f64, high: f64) -> f64 {
        let at = |u: f64| {
            let term = |shape: f64, offset: f64| shape * shape * libm::exp(shape * u - offset);
            (term(self.shape.1, self.offset.1) - term(self.shape.0, self.offset.0)).abs()
        };
        // If the shapes are equal, this is not finite, and the maximum is at an end.
        let turn = (3.0 * self.log_shape - (self.offset.1 - self.offset.0)) / (self.shape.0 - self.shape.1);
        let inside = if low < turn && turn < high { at(turn) } else { 0.0 };
        at(low).max(at(high)).max(inside)
    }
}

impl Weibull {
    /// Creates the model. `time` has a declared minimum above 0.
    pub(super) fn new(names: Vec<String>, time: &ColumnSpec) -> Self {
        Self { names, times: Times::new(time) }
    }
}

/// Panics if the shapes differ. Shapes are public.
fn check((_, auxiliary): (usize, usize), dimensions: bool) {
    assert_eq!(auxiliary, 1, "a time has its event");
    assert!(dimensions, "one value per parameter");
}

impl Weibull {
    #[inline(always)]
    fn of_record((model, constants): &(&Self, &Constants), [x, event]: [f64; 2]) -> f64 {
        constants.ratio(model.times.log(x), event)
    }
}

impl Kernel for Weibull {
    type Constants = Constants;

    fn constants(&self, from: &[f64], to: &[f64]) -> Constants {
        Constants::new(from, to)
    }

    #[inline(always)]
    fn log_ratios(&self, rows: &Tile<'_>, constants: &Constants, _scratch: &mut Scratch, visitor: &mut impl KernelVisitor) {
        visitor.over([rows.outcome(), rows.auxiliary(0)], &(self, constants), Self::of_record);
    }
}

impl Model for Weibull {
    fn parameter_names(&self) -> &[String] {
        &self.names
    }

    fn ratios(&self, from: &[f64], to: &[f64]) -> RatioRange {
        let constants = Constants::new(from, to);
        let curvature = |low, high| constants.curvature(low, high);
        let of = |event: f64| envelope::range(self.times.least_log, 0.0, |u| constants.ratio(u, event), curvature);
        of(0.0).hull(of(1.0))
    }

    fn information_bound(&self) -> Vec<f64> {
        vec![1.83, 100.0]
    }

    fn ratio_kernel(&self, pass: BlockPass<'_>) {
        check(pass.columns(), pass.steps().all(|step| step.from.len() == 2 && step.to.len() == 2));
        pass.ratios(self);
    }

    fn scores(&self) -> Option<Box<dyn ScoreModel + '_>> {
        Some(Box::new(WeibullScores(self.times)))
    }

    fn times_table(&self) -> Option<TimesTable> {
        Some(TimesTable::new(self.times))
    }

    /// Omits `-sum d ln t`.
    fn log_likelihood(&self, data: &ModelData, theta: &[f64]) -> f64 {
        check((0, data.auxiliary.len()), theta.len() == 2);
        let (shape, log_scale) = (theta[0], libm::log(theta[1]));
        let one = |(x, event): (&f64, &f64)| {
            let z = shape * (libm::log(self.times.middle + self.times.half * x) - log_scale);
            event * (libm::log(shape) + z) - libm::exp(z)
        };
        // An inert record is not a number.
        data.outcome.iter().zip(&data.auxiliary[0]).map(one).filter(|density| !density.is_nan()).sum()
    }

    fn to_original(&self, theta: &[f64]) -> Vec<f64> {
        vec![theta[0], self.times.longest * theta[1]]
    }
}
