//! Models of one parameter whose log ratio is affine in the outcome: exponential families with one statistic of the outcome.

use super::exponential_family::{BoundedStatistic, ExponentialFamily};
use super::interface::Model;
use super::ratio_range::RatioRange;
use conclave_privacy::pass::BlockPass;
use conclave_privacy::pass::blocks::{Kernel, KernelVisitor, Scratch};
use conclave_privacy::pass::data::ModelData;
use conclave_privacy::pass::tile::Tile;

/// `log p(y | to) - log p(y | from) = offset + slope y`, with the outcome `y` on the model's scale.
///
/// Both are odd in the step, bit for bit: each is a difference between its ends, or such a difference times a symmetric factor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub offset: f64,
    pub slope: f64,
}

impl Line {
    #[inline(always)]
    fn at(&self, [y]: [f64; 1]) -> f64 {
        self.slope.mul_add(y, self.offset)
    }
}

/// A likelihood of one parameter whose log ratio is a [`Line`].
pub(super) trait LineLikelihood: Send + Sync {
    /// Returns the line of the step `from` to `to`.
    fn line(&self, from: f64, to: f64) -> Line;

    /// Returns the least and the greatest outcome, on the model's scale.
    fn outcome(&self) -> (f64, f64);

    /// Returns the statistic of an outcome, an increasing function.
    #[inline(always)]
    fn statistic(&self, outcome: f64) -> f64 {
        outcome
    }

    /// Returns `phi(theta)` of the exponential family.
    fn natural(&self, theta: f64) -> f64;

    /// Returns `log g(theta)` of the exponential family.
    fn log_normaliser(&self, theta: f64) -> f64;

    /// Returns the largest Fisher information of one record about the parameter on its unconstrained scale; see
    /// [`Model::information_bound`].
    fn information(&self) -> f64;

    /// Returns the log likelihood of these outcomes, up to a term that depends only on them.
    fn log_likelihood(&self, outcomes: &[f64], theta: f64) -> f64;

    /// Returns the parameter in the data's units.
    fn to_original(&self, theta: f64) -> f64 {
        theta
    }
}

/// A model whose log ratio is a [`Line`].
pub(super) struct LineModel<L> {
    names: Vec<String>,
    likelihood: L,
}

impl<L: LineLikelihood> LineModel<L> {
    pub(super) fn new(names: Vec<String>, likelihood: L) -> Self {
        Self { names, likelihood }
    }
}

impl<L: LineLikelihood> Kernel for LineModel<L> {
    type Constants = Line;

    fn constants(&self, from: &[f64], to: &[f64]) -> Line {
        self.likelihood.line(from[0], to[0])
    }

    #[inline(always)]
    fn log_ratios(&self, rows: &Tile<'_>, constants: &Line, _scratch: &mut Scratch, visitor: &mut impl KernelVisitor) {
        visitor.over([rows.outcome()], constants, Line::at);
    }
}

impl<L: LineLikelihood> Model for LineModel<L> {
    fn parameter_names(&self) -> &[String] {
        &self.names
    }

    /// The extremes of a line are at the ends.
    fn ratios(&self, from: &[f64], to: &[f64]) -> RatioRange {
        let Line { offset, slope } = self.likelihood.line(from[0], to[0]);
        let (least, greatest) = self.likelihood.outcome();
        RatioRange::of([offset + slope * least, offset + slope * greatest])
    }

    fn exponential_family(&self) -> Option<&dyn ExponentialFamily> {
        Some(self)
    }

    fn information_bound(&self) -> Vec<f64> {
        vec![self.likelihood.information()]
    }

    fn ratio_kernel(&self, pass: BlockPass<'_>) {
        assert!(pass.steps().all(|step| step.from.len() == 1 && step.to.len() == 1), "one value per parameter");
        pass.ratios(self);
    }

    fn log_likelihood(&self, data: &ModelData, theta: &[f64]) -> f64 {
        self.likelihood.log_likelihood(&data.outcome, theta[0])
    }

    fn to_original(&self, theta: &[f64]) -> Vec<f64> {
        vec![self.likelihood.to_original(theta[0])]
    }
}

impl<L: LineLikelihood> BoundedStatistic for LineModel<L> {
    fn ranges(&self) -> Vec<(f64, f64)> {
        let (least, greatest) = self.likelihood.outcome();
        vec![(self.likelihood.statistic(least), self.likelihood.statistic(greatest))]
    }

    fn statistic_kernel(&self, _component: usize, pass: BlockPass<'_>) {
        pass.statistic(|rows, i| self.likelihood.statistic(rows.outcome()[i]));
    }
}

impl<L: LineLikelihood> ExponentialFamily for LineModel<L> {
    fn natural(&self, theta: &[f64]) -> Vec<f64> {
        vec![self.likelihood.natural(theta[0])]
    }

    fn log_normaliser(&self, theta: &[f64]) -> f64 {
        self.likelihood.log_normaliser(theta[0])
    }
}
