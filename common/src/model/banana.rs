//! The banana, a sampler benchmark: two normal outcomes, where the mean of the second is quadratic in that of the first.
//!
//! Density of one record: `y_1 ~ N(theta_1, 1 / tau_1)`, `y_2 ~ N(theta_2 + a theta_1^2, 1 / tau_2)`
//! (variances), independent, with known `a` and precisions `tau_1`, `tau_2`. Outcomes and parameters are
//! in the data's units; a shard holds both outcomes scaled, the second as its first auxiliary column.
//!
//! Parameters: `theta_1` and `theta_2`, any real numbers. Source: the banana-shaped distributions used to test adaptive samplers
//! since Haario, Saksman & Tamminen, *Adaptive proposal distribution for random walk Metropolis algorithm* (1999), here as a
//! likelihood.
//!
//! Log ratio: affine in both outcomes, so its range over the declared bounds is that of their four corners. A job that sets a
//! clip has no bound besides it, since such a job exists to show the effect of a clip that cuts many ratios.
//!
//! Gradient, with `e = y_2 - theta_2 - a theta_1^2`: `(tau_1 (y_1 - theta_1) + 2 a theta_1 tau_2 e, tau_2 e)`, also affine in
//! both outcomes; see [`super::banana_scores`].
//!
//! Information: `tau_2` about `theta_2`. About `theta_1` it is `tau_1 + 4 a^2 theta_1^2 tau_2`, which is unbounded; its value at
//! `|theta_1| = 1` is used.

use super::Model;
use super::banana_law::{BananaLaw, CORNERS, Constants, check};
use super::banana_scores::BananaScores;
use super::ratio_range::RatioRange;
use super::score::ScoreModel;
use conclave_privacy::pass::blocks::{Kernel, KernelVisitor, Scratch};
use conclave_privacy::pass::tile::Tile;
use conclave_privacy::pass::{BlockPass, ModelData};

/// The banana on two declared numeric columns.
pub(super) struct Banana {
    names: Vec<String>,
    law: BananaLaw,
    /// True if the job's clip replaces a bound.
    clipped: bool,
}

impl Banana {
    /// Creates the model. If `clipped`, the job's clip replaces a bound.
    pub(super) fn new(names: Vec<String>, law: BananaLaw, clipped: bool) -> Self {
        Self { names, law, clipped }
    }
}

impl Kernel for Banana {
    type Constants = Constants;

    fn constants(&self, from: &[f64], to: &[f64]) -> Constants {
        self.law.constants(from, to)
    }

    #[inline(always)]
    fn log_ratios(&self, rows: &Tile<'_>, constants: &Constants, _scratch: &mut Scratch, visitor: &mut impl KernelVisitor) {
        visitor.over([rows.outcome(), rows.auxiliary(0)], constants, Constants::of_record);
    }
}

impl Model for Banana {
    fn parameter_names(&self) -> &[String] {
        &self.names
    }

    fn ratios(&self, from: &[f64], to: &[f64]) -> RatioRange {
        if self.clipped {
            return RatioRange::unbounded();
        }
        let constants = self.law.constants(from, to);
        RatioRange::of(CORNERS.map(|record| constants.of_record(record)))
    }

    fn information_bound(&self) -> Vec<f64> {
        let BananaLaw { bend, precision: [first, second], .. } = self.law;
        vec![first + 4.0 * bend * bend * second, second]
    }

    fn ratio_kernel(&self, pass: BlockPass<'_>) {
        check(pass.columns(), pass.steps().all(|step| step.from.len() == 2 && step.to.len() == 2));
        pass.ratios(self);
    }

    fn scores(&self) -> Option<Box<dyn ScoreModel + '_>> {
        Some(Box::new(BananaScores(&self.law)))
    }

    /// Up to the constant of both normal densities.
    fn log_likelihood(&self, data: &ModelData, theta: &[f64]) -> f64 {
        check((0, data.auxiliary.len()), theta.len() == 2);
        let BananaLaw { scales, precision, .. } = &self.law;
        let means = [theta[0], self.law.mean(theta)];
        let one = |j: usize, x: f64| {
            let away = scales[j].0 + scales[j].1 * x - means[j];
            -0.5 * precision[j] * away * away
        };
        data.outcome.iter().zip(&data.auxiliary[0]).map(|(x, z)| one(0, *x) + one(1, *z)).sum()
    }
}
