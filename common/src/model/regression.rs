//! The common part of all regressions: a record enters through its outcome and its linear predictor, and there is at most one
//! further parameter.
//!
//! Each regression's file implements the likelihood of an outcome at a linear predictor, [`Likelihood`].

use super::Model;
use super::combinations::Combinations;
use super::exponential_family::{BoundedStatistic, ExponentialFamily};
use super::likelihood::{Ends, Likelihood};
use super::linear_predictor::{LinearPredictor, Span};
use super::linear_statistic::LinearStatistic;
use super::outcome_table::OutcomeTable;
use super::ratio_range::RatioRange;
use super::regression_scores::RegressionScores;
use super::score::ScoreModel;
use super::weighted::CoefficientStep;
use conclave_privacy::pass::blocks::{Kernel, KernelVisitor, Scratch, TILE};
use conclave_privacy::pass::tile::Tile;
use conclave_privacy::pass::{Block, BlockPass, ModelData};

/// A regression.
pub(super) struct Regression<L> {
    names: Vec<String>,
    predictor: LinearPredictor,
    likelihood: L,
    statistic: Option<LinearStatistic>,
    cells: Option<Combinations>,
}

impl<L: Likelihood> Regression<L> {
    /// Creates a regression with one name per parameter.
    pub(super) fn new(names: Vec<String>, predictor: LinearPredictor, likelihood: L) -> Self {
        Self { names, predictor, likelihood, statistic: None, cells: None }
    }

    /// Attaches the sums of products that the regression may release, if it has them.
    pub(super) fn with_statistic(self, statistic: Option<LinearStatistic>) -> Self {
        Self { statistic, ..self }
    }

    /// Sets the combinations of levels whose second moments the job asks for.
    pub(super) fn by_cells(self, cells: Option<Combinations>) -> Self {
        Self { cells, ..self }
    }

    fn ends<'a>(&self, from: &'a [f64], to: &'a [f64]) -> Ends<'a> {
        let ((from, own_from), (to, own_to)) = (self.split(from), self.split(to));
        Ends { from, to, own: own_from.zip(own_to) }
    }

    /// Returns the coefficients and the family's own parameter.
    fn split<'a>(&self, theta: &'a [f64]) -> (&'a [f64], Option<f64>) {
        assert_eq!(theta.len(), self.names.len(), "one value per parameter");
        let (coefficients, own) = theta.split_at(self.predictor.len());
        (coefficients, own.first().copied())
    }
}

impl<L: Likelihood> Kernel for Regression<L> {
    type Constants = (CoefficientStep, L::Constants);

    fn constants(&self, from: &[f64], to: &[f64]) -> Self::Constants {
        let ends = self.ends(from, to);
        (self.predictor.moves(ends.from, ends.to), self.likelihood.constants(&self.predictor, &ends))
    }

    #[inline(always)]
    fn log_ratios(&self, rows: &Tile<'_>, constants: &Self::Constants, scratch: &mut Scratch, visitor: &mut impl KernelVisitor) {
        let (moves, constants) = constants;
        L::log_ratios(constants, &moves.of(rows, scratch), visitor);
    }
}

impl<L: Likelihood> Model for Regression<L> {
    fn parameter_names(&self) -> &[String] {
        &self.names
    }

    fn ratios(&self, from: &[f64], to: &[f64]) -> RatioRange {
        let ratios = self.likelihood.ratios(&self.predictor, &self.ends(from, to));
        if self.predictor.spares_inert() { ratios.or_none() } else { ratios }
    }

    fn exponential_family(&self) -> Option<&dyn ExponentialFamily> {
        let family = self.statistic.as_ref().filter(|statistic| statistic.is_family());
        family.map(|family| family as &dyn ExponentialFamily)
    }

    fn statistic(&self) -> Option<&dyn BoundedStatistic> {
        self.statistic.as_ref().map(|statistic| statistic as &dyn BoundedStatistic)
    }

    fn scores(&self) -> Option<Box<dyn ScoreModel + '_>> {
        let Self { names, predictor, likelihood, cells, .. } = self;
        Some(Box::new(RegressionScores { predictor, likelihood, cells: cells.as_ref(), own: names.len() > predictor.len() }))
    }

    fn outcome_table(&self, most: usize) -> Option<OutcomeTable> {
        OutcomeTable::of(&self.predictor, self.likelihood.table_outcomes()?, most)
    }

    fn information_bound(&self) -> Vec<f64> {
        let (linear, own) = self.likelihood.information();
        let coefficients = self.predictor.greatest_squares().map(|square| linear * square);
        coefficients.chain((self.names.len() > self.predictor.len()).then_some(own)).collect()
    }

    fn ratio_kernel(&self, pass: BlockPass<'_>) {
        self.predictor.check(pass.columns());
        pass.ratios(self);
    }

    fn log_likelihood(&self, data: &ModelData, theta: &[f64]) -> f64 {
        let block = Block::lent(data);
        self.predictor.check(block.columns());
        let (coefficients, own) = self.split(theta);
        let mut eta = vec![0.0; data.outcome.len()];
        let weighted = self.predictor.weighted(coefficients);
        let mut tiles = block.tiles(TILE);
        while let Some(rows) = tiles.next_tile() {
            weighted.fill(&rows, &mut eta[rows.range()]);
        }
        let densities = eta.iter().zip(&data.outcome).map(|(eta, y)| self.likelihood.log_density(*y, *eta, own));
        densities.filter(|density| !density.is_nan()).sum()
    }

    fn to_original(&self, theta: &[f64]) -> Vec<f64> {
        let (coefficients, own) = self.split(theta);
        let mut original = self.predictor.to_original(coefficients);
        let (centre, half_width) = self.likelihood.outcome_scale().unwrap_or((0.0, 1.0));
        original.iter_mut().for_each(|b| *b *= half_width);
        if self.predictor.has_intercept() {
            original[0] += centre;
        }
        original.extend(own.map(|own| own * half_width));
        original
    }
}

/// Returns the range of a record's log ratio if the log density is concave in the linear predictor and its slope increases in the
/// outcome. `mode` returns the linear predictor at which the slope is 0.
///
/// The log ratio is the integral of the slope over the movement of the linear predictor. For upward movements it is greatest
/// where the slope is: for the greatest outcome, from the low end of the predictor's range. For downward movements it is greatest
/// for the least outcome, from the high end. The least log ratio is the negated greatest ratio of the reverse step, which swaps
/// up and down. If all records move the same way, as in a step of the intercept or of an indicator, the two magnitudes differ,
/// and the middle is a centre that lowers the price. The range always includes 0, so a record that does not move, or is inert,
/// needs no extension.
pub(super) fn concave_ratios(
    span: Span,
    outcome: (f64, f64),
    log_density: impl Fn(f64, f64) -> f64,
    slope: impl Fn(f64, f64) -> f64,
    mode: impl Fn(f64) -> f64,
) -> RatioRange {
    let Span { low, high, up, down } = span;
    let rise = |y: f64, start: f64, end: f64, steepest: f64, by: f64| {
        if by == 0.0 {
            return 0.0;
        }
        let (there, here) = (log_density(y, end), log_density(y, start));
        // The bound covers the rounding of a difference of large numbers; the steepest slope is another upper bound.
        (there - here + 1e-14 * (there.abs() + here.abs())).min(steepest.max(0.0) * by)
    };
    let upward = |by: f64| rise(outcome.1, low, (low + by).min(mode(outcome.1).max(low)), slope(outcome.1, low), by);
    let downward = |by: f64| rise(outcome.0, high, (high - by).max(mode(outcome.0).min(high)), -slope(outcome.0, high), by);
    RatioRange::of([upward(up), downward(down), -upward(down), -downward(up)]).or_none()
}

/// Returns the range of a step in the linear predictor and in the family's own parameter, from the ranges of the two partial
/// steps, in both orders.
pub(super) fn one_after_the_other(
    linear_first: RatioRange,
    own_then: RatioRange,
    own_first: RatioRange,
    linear_then: RatioRange,
) -> RatioRange {
    own_then.plus(linear_first).and(own_first.plus(linear_then))
}

/// The least standard deviation of an outcome, in half widths, that is assumed if it is unknown. It only bounds the information
/// with which the search for the mode starts.
pub(super) const LEAST_SCATTER: f64 = 0.05;
