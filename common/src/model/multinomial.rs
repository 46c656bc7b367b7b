//! The probabilities of a categorical outcome.
//!
//! Density of one record whose outcome is level `k` of K: `log p(k | p) = ln p_k`. A shard holds the level's number, from 0.
//!
//! Parameters: one probability per level, named `p[level]`, without unit. They are positive and sum to 1. Under a Dirichlet prior
//! the posterior is known exactly.
//!
//! Log ratio: `ln(p'_k / p_k)`, one of K public numbers. The public bound is their largest magnitude, the public centre the
//! middle of their range. A record without a level has ratio 0.
//!
//! Exponential family: `S_k` is 1 if the outcome is level `k` and 0 otherwise, `phi_k = ln p_k`, `log g = 0`. (K - 1 indicators
//! would suffice for records with a level and cost less, but would count a record without a level as the last.)

use super::Model;
use super::exponential_family::{BoundedStatistic, ExponentialFamily};
use super::ratio_range::RatioRange;
use super::table::Tables;
use conclave_privacy::pass::blocks::{Kernel, KernelVisitor, Scratch};
use conclave_privacy::pass::tile::Tile;
use conclave_privacy::pass::{BlockPass, ModelData};

/// The probabilities of a declared column's levels.
pub(super) struct Multinomial {
    names: Vec<String>,
}

/// One level's log ratio.
#[inline(always)]
fn ratio(from: f64, to: f64) -> f64 {
    libm::log(to) - libm::log(from)
}

impl Multinomial {
    /// Creates the model. `names` are the parameters, one per level, at least two.
    pub(super) fn new(names: Vec<String>) -> Self {
        Self { names }
    }
}

#[inline(always)]
fn as_it_is(_: &(), [ratio]: [f64; 1]) -> f64 {
    ratio
}

impl Kernel for Multinomial {
    /// Every level's log ratio.
    type Constants = Vec<f64>;

    fn constants(&self, from: &[f64], to: &[f64]) -> Vec<f64> {
        from.iter().zip(to).map(|(from, to)| ratio(*from, *to)).collect()
    }

    #[inline(always)]
    fn log_ratios(&self, rows: &Tile<'_>, ratios: &Vec<f64>, scratch: &mut Scratch, visitor: &mut impl KernelVisitor) {
        let out = &mut scratch.one.0[..rows.len()];
        out.fill(0.0);
        for (level, ratio) in ratios.iter().enumerate() {
            let level = level as f64;
            for (out, y) in out.iter_mut().zip(rows.outcome()) {
                *out = if *y == level { *ratio } else { *out };
            }
        }
        visitor.over([out], &(), as_it_is);
    }
}

impl Model for Multinomial {
    fn parameter_names(&self) -> &[String] {
        &self.names
    }

    fn ratios(&self, from: &[f64], to: &[f64]) -> RatioRange {
        // Up to rounding the ratios have both signs, since the probabilities sum to 1 at both ends. So a record without a level
        // does not extend the range.
        RatioRange::of(from.iter().zip(to).map(|(from, to)| ratio(*from, *to))).or_none()
    }

    fn exponential_family(&self) -> Option<&dyn ExponentialFamily> {
        Some(self)
    }

    fn tables(&self) -> Option<Tables> {
        Some(Tables::new(self.names.len(), &[]))
    }

    /// The information about log ratios of the probabilities is `p_k (1 - p_k)`.
    fn information_bound(&self) -> Vec<f64> {
        vec![0.25; self.names.len()]
    }

    fn ratio_kernel(&self, pass: BlockPass<'_>) {
        let levels = self.names.len();
        assert!(pass.steps().all(|step| step.from.len() == levels && step.to.len() == levels), "one value per parameter");
        pass.ratios(self);
    }

    fn log_likelihood(&self, data: &ModelData, theta: &[f64]) -> f64 {
        let of = |level: f64| theta.iter().enumerate().find(|(k, _)| *k as f64 == level).map_or(0.0, |(_, p)| libm::log(*p));
        data.outcome.iter().map(|level| of(*level)).sum()
    }
}

impl BoundedStatistic for Multinomial {
    fn ranges(&self) -> Vec<(f64, f64)> {
        vec![(0.0, 1.0); self.names.len()]
    }

    fn statistic_kernel(&self, component: usize, pass: BlockPass<'_>) {
        let level = component as f64;
        pass.statistic(|rows, i| f64::from(u8::from(rows.outcome()[i] == level)));
    }
}

impl ExponentialFamily for Multinomial {
    fn natural(&self, theta: &[f64]) -> Vec<f64> {
        theta.iter().map(|p| libm::log(*p)).collect()
    }

    fn log_normaliser(&self, _theta: &[f64]) -> f64 {
        0.0
    }
}
