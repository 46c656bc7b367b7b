//! The scores, information and moments of a regression.

use super::bounded::{BetweenEdges, Bounded};
use super::cell_moments::CellMoments;
use super::combinations::Combinations;
use super::gradient::RegressionSlopes;
use super::influence::Influence;
use super::leverage::{Leverage, Weighed};
use super::leverage_ratio::WeightedRatios;
use super::likelihood::{Ends, Likelihood};
use super::linear_predictor::LinearPredictor;
use super::observed::ObservedForm;
use super::products::{Vectors, Weight, offset_alone};
use super::reach::Images;
use super::remainder::{self, second_order};
use super::score::{Remainder, ScoreModel};
use conclave_privacy::pass::BlockPass;
use conclave_privacy::pass::frame::Frame;
use conclave_privacy::pass::lattice_frame::LatticeFrame;

/// Returns the distance between the logarithms of two numbers, rounded outward, with the same bits if they are swapped.
fn logarithms_apart((a, b): (f64, f64)) -> f64 {
    let (of_a, of_b) = (libm::log(a), libm::log(b));
    if a == b { 0.0 } else { (of_a - of_b).abs() + 4.0 * f64::EPSILON * (1.0 + of_a.abs() + of_b.abs()) }
}

/// Returns the largest magnitude of each slope.
fn greatest(slopes: &[[f64; 2]]) -> [f64; 2] {
    [0, 1].map(|j| slopes.iter().fold(0.0, |most: f64, pair| most.max(pair[j].abs())))
}

/// A regression's linear predictor and likelihood, from which scores are computed.
pub(super) struct RegressionScores<'a, L> {
    pub(super) predictor: &'a LinearPredictor,
    pub(super) likelihood: &'a L,
    /// The combinations of levels, if second moments are those of their indicators.
    pub(super) cells: Option<&'a Combinations>,
    /// True if the family has an own parameter.
    pub(super) own: bool,
}

impl<L: Likelihood> RegressionScores<'_, L> {
    /// Returns the coefficients and the family's own parameter.
    fn split<'t>(&self, at: &'t [f64]) -> (&'t [f64], Option<f64>) {
        assert_eq!(at.len(), self.parameters(), "one value per parameter");
        let (coefficients, own) = at.split_at(self.predictor.len());
        (coefficients, own.first().copied())
    }

    /// Returns the range of the linear predictor over the declared columns, including the offset.
    fn predictors(&self, coefficients: &[f64]) -> (f64, f64) {
        self.predictor.range(coefficients, 1.0, None)
    }
}

impl<L: Likelihood> ScoreModel for RegressionScores<'_, L> {
    fn design(&self) -> Option<&LinearPredictor> {
        Some(self.predictor)
    }

    fn coefficients(&self) -> usize {
        self.predictor.len()
    }

    fn parameters(&self) -> usize {
        self.predictor.len() + usize::from(self.own)
    }

    fn most_squares(&self) -> u64 {
        self.predictor.most_squares()
    }

    fn cells(&self) -> Option<&Combinations> {
        self.cells
    }

    fn gradient_kernel(&self, at: &[f64], frame: Frame<'_>, pass: BlockPass<'_>) {
        self.predictor.check(pass.columns());
        let slopes = RegressionSlopes::new(self.likelihood, self.predictor, self.split(at));
        pass.ball(&slopes, at, frame, self.predictor.len(), self.predictor.has_intercept());
    }

    fn takes_leverage(&self) -> bool {
        L::STEEPEST <= 1.0 && !self.own
    }

    fn leverage_gradient_kernel(&self, at: &[f64], leverage: &Leverage<'_>, pass: BlockPass<'_>) {
        self.predictor.check(pass.columns());
        let slopes = RegressionSlopes::new(self.likelihood, self.predictor, self.split(at));
        let slopes = Weighed { slopes, weigher: Some(leverage.weigher(self.predictor)) };
        pass.ball(&slopes, &leverage.key(at), leverage.frame(), self.predictor.len(), self.predictor.has_intercept());
    }

    fn leverage_reach(&self, [from, to]: [&[f64]; 2], leverage: &Leverage<'_>) -> Option<f64> {
        let step: Vec<f64> = self.split(from).0.iter().zip(self.split(to).0).map(|(from, to)| to - from).collect();
        let range = |direction: &[f64]| self.predictor.range(direction, 0.0, None);
        self.takes_leverage().then(|| L::STEEPEST * leverage.reach(&step, range))
    }

    fn leverage_ratio_kernel(&self, [from, to]: [&[f64]; 2], leverage: &Leverage<'_>, centre: f64, pass: BlockPass<'_>) {
        self.predictor.check(pass.columns());
        let ((from, own_from), (to, own_to)) = (self.split(from), self.split(to));
        let ends = Ends { from, to, own: own_from.zip(own_to) };
        pass.values(&WeightedRatios::new((self.likelihood, self.predictor), &ends, leverage, centre));
    }

    fn remainder_bound(&self, [from, middle, to]: [&[f64]; 3], leverage: Option<&Leverage<'_>>) -> Option<f64> {
        if leverage.is_some() && !self.takes_leverage() {
            return None;
        }
        let half = |a: &[f64], b: &[f64]| {
            let ((a, own), (b, own_to)) = (self.split(a), self.split(b));
            let step: Vec<f64> = a.iter().zip(b).map(|(a, b)| b - a).collect();
            let range = |direction: &[f64]| self.predictor.range(direction, 0.0, None);
            let (low, high) = range(&step);
            // The root of a record's weight is a factor on its movement: the bound is quadratic.
            let moved = leverage.map_or(f64::INFINITY, |leverage| leverage.movement(&step, range));
            (high.max(-low).min(moved), own.zip(own_to).map_or(0.0, logarithms_apart))
        };
        let points = [from, middle, to].map(|theta| self.split(theta));
        let ends = points.map(|(coefficients, _)| self.predictors(coefficients));
        let (low, high) = ends.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), (low, high)| (l.min(*low), h.max(*high)));
        let least = points.iter().filter_map(|(_, own)| *own).reduce(f64::min);
        let bends = self.likelihood.bends((low, high), least)?;
        Some(second_order(half(from, middle), half(middle, to), &bends))
    }

    fn remainder_kernel(&self, step: &Remainder<'_>, pass: BlockPass<'_>) {
        self.predictor.check(pass.columns());
        let [from, middle, to] = step.points.map(|theta| self.split(theta));
        let own = from.1.zip(to.1);
        let ends = Ends { from: from.0, to: to.0, own };
        remainder::of_regression((self.likelihood, self.predictor), (middle, ends), step, pass);
    }

    fn curvature_kernel(&self, at: &[f64], scales: [f64; 2], pass: BlockPass<'_>) {
        self.predictor.check(pass.columns());
        let (coefficients, own) = self.split(at);
        let weight = Weight::Information::<L> {
            eta: self.predictor.weighted(coefficients),
            at: self.likelihood.slopes_at(own),
            scales,
            own: self.own,
        };
        Vectors::new(self.predictor, weight).give(pass);
    }

    fn bounds_influence(&self) -> bool {
        L::BOUNDS_INFLUENCE
    }

    fn centres_by_table(&self) -> bool {
        L::CENTRED_BY_TABLE
    }

    fn bounded_gradient_kernel(&self, at: &[f64], influence: &Influence<'_>, pass: BlockPass<'_>) {
        self.predictor.check(pass.columns());
        let bounded = Bounded::new((self.likelihood, self.predictor), self.split(at), influence);
        // No other gradient has as many numbers, so no remainder takes its weights for its own.
        let key = [at, &[influence.clip, influence.trace]].concat();
        pass.ball(&bounded, &key, influence.frame(), self.predictor.len(), self.predictor.has_intercept());
    }

    fn bounded_information_kernel(&self, at: &[f64], influence: &Influence<'_>, pass: BlockPass<'_>) {
        self.predictor.check(pass.columns());
        Bounded::new((self.likelihood, self.predictor), self.split(at), influence).give_information(pass);
    }

    fn bounded_variance_kernel(&self, at: &[f64], influence: &Influence<'_>, pass: BlockPass<'_>) {
        self.predictor.check(pass.columns());
        Bounded::new((self.likelihood, self.predictor), self.split(at), influence).give_variance(pass);
    }

    fn cells_kernel(&self, at: &[f64], (influence, edges): (Option<&Influence<'_>>, &[f64]), pass: BlockPass<'_>) {
        self.predictor.check(pass.columns());
        let (of, arch) = ((self.likelihood, self.predictor), pass.arch());
        let bounded = match influence {
            Some(influence) => Bounded::new(of, self.split(at), influence),
            None => Bounded::without_frame(of, self.split(at)),
        };
        BetweenEdges::new(arch, bounded, edges, influence.is_some()).give(pass);
    }

    fn moments_kernel(&self, pass: BlockPass<'_>) {
        let Some((centre, half_width)) = self.moments_outcome() else { return };
        self.predictor.check(pass.columns());
        if let Some(combinations) = self.cells {
            return CellMoments { combinations, centre, unit: half_width.recip() }.give(pass);
        }
        let offset = offset_alone(centre, self.predictor.offset().map(|(_, factor)| factor));
        let weight = Weight::Outcome::<L>(offset, half_width.recip());
        Vectors::new(self.predictor, weight).give(pass);
    }

    fn moments_outcome(&self) -> Option<(f64, f64)> {
        let ((least, greatest), (low, high)) = (self.likelihood.outcomes(), self.offset_range());
        let (least, greatest) = (least - high, greatest - low);
        // Without an intercept no parameter could absorb the centre.
        let centre = if self.predictor.has_intercept() { 0.5 * (least + greatest) } else { 0.0 };
        L::BY_MOMENTS.then_some((centre, (greatest - centre).max(centre - least)))
    }

    fn range(&self, _at: &[f64], direction: &[f64]) -> (f64, f64) {
        self.predictor.range(direction, 0.0, None)
    }

    fn extreme_gradients(&self, at: &[f64]) -> Option<Vec<Vec<f64>>> {
        let (coefficients, own) = self.split(at);
        let slopes_at = self.likelihood.slopes_at(own);
        let (low, high) = self.offset_range();
        let mut extremes = Vec::new();
        for x in self.predictor.corners()? {
            let without_offset: f64 = x.iter().zip(coefficients).map(|(x, b)| x * b).sum();
            for offset in [low, high].into_iter().take(1 + usize::from(low < high)) {
                let eta = without_offset + offset;
                for y in self.likelihood.extreme_outcomes(&slopes_at, eta) {
                    let [slope, of_own] = L::slopes(&slopes_at, y, eta);
                    extremes.push(x.iter().map(|x| slope * x).chain(self.own.then_some(of_own)).collect());
                }
            }
        }
        Some(extremes)
    }

    fn reach(&self, at: &[f64], image: &dyn Fn(&[f64]) -> Vec<f64>) -> Option<f64> {
        let (coefficients, own) = self.split(at);
        let slopes_at = self.likelihood.slopes_at(own);
        // The existence of the hull depends on the family only, not on the point.
        self.likelihood.slopes_within(&slopes_at, 0.0, 0.0)?;
        let none = || vec![[f64::NAN; 2]];
        let hull = |low: f64, high: f64| self.likelihood.slopes_within(&slopes_at, low, high).unwrap_or_else(none);
        let edges = self.predictor.edges()?;
        Some(Images::new(image, coefficients.len(), self.own).reach(edges, coefficients, self.offset_range(), &hull))
    }

    fn widened(&self, at: &[f64], frame: Frame<'_>) -> f64 {
        let (coefficients, own) = self.split(at);
        let (low, high) = self.predictors(coefficients);
        let slopes = self.likelihood.slopes_within(&self.likelihood.slopes_at(own), low, high);
        slopes.map_or(1.0, |slopes| LatticeFrame::new(frame, coefficients.len()).widened(greatest(&slopes)))
    }

    fn gradient_bound(&self, at: &[f64]) -> [f64; 2] {
        /// Places between the ends of the linear predictor's range at which slopes are evaluated.
        const PLACES: usize = 64;
        let (coefficients, own) = self.split(at);
        let slopes_at = self.likelihood.slopes_at(own);
        let (low, high) = self.predictors(coefficients);
        let slopes = self.likelihood.slopes_within(&slopes_at, low, high).unwrap_or_else(|| {
            let place = |k: usize| low + (high - low) * (k as f64 / PLACES as f64);
            let at = |eta: f64| self.likelihood.extreme_outcomes(&slopes_at, eta).into_iter().map(move |y| (y, eta));
            (0..=PLACES).flat_map(|k| at(place(k))).map(|(y, eta)| L::slopes(&slopes_at, y, eta)).collect()
        });
        let most = greatest(&slopes);
        [most[0] * (self.most_squares() as f64).sqrt(), most[1]]
    }

    fn most_information(&self, at: &[f64]) -> [f64; 2] {
        let (coefficients, own) = self.split(at);
        let (low, high) = self.predictors(coefficients);
        self.likelihood.most_information(&self.likelihood.slopes_at(own), low, high)
    }

    fn observed(&self, at: &[f64]) -> ObservedForm {
        let (coefficients, own) = self.split(at);
        let (_, high) = self.predictors(coefficients);
        L::observed(&self.likelihood.slopes_at(own), high, self.predictor.has_intercept())
    }

    fn most_expected(&self, at: &[f64]) -> [f64; 2] {
        let (coefficients, own) = self.split(at);
        let (low, high) = self.predictors(coefficients);
        self.likelihood.most_expected(&self.likelihood.slopes_at(own), low, high)
    }

    fn even_information(&self, at: &[f64]) -> Vec<f64> {
        let most = self.most_expected(at);
        let coding = self.coding();
        let square = |j: usize| {
            let mut unit = vec![0.0; self.coefficients()];
            unit[j] = 1.0;
            let (low, high) = self.range(at, &unit);
            // The mean square under a uniform law on the range. 1 for the intercept and for coded predictors.
            if coding[j] { 1.0 } else { (low * low + low * high + high * high) / 3.0 }
        };
        (0..self.coefficients()).map(|j| most[0] * square(j)).chain(self.own.then_some(most[1])).collect()
    }
}
