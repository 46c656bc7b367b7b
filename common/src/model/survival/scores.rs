//! The scores and the information of a piecewise exponential model.

use super::intervals::Hazards;
use super::kernels::{Information, Score};
use super::piecewise::PiecewiseModel;
use crate::model::observed::ObservedForm;
use crate::model::score::ScoreModel;
use conclave_privacy::pass::BlockPass;
use conclave_privacy::pass::frame::Frame;

/// The scores of a piecewise exponential model: the log hazards are the first parameters, the coefficients follow.
pub(super) struct SurvivalScores<'a> {
    pub(super) model: &'a PiecewiseModel,
}

impl SurvivalScores<'_> {
    /// Returns the log hazards and the coefficients.
    pub(super) fn split<'t>(&self, at: &'t [f64]) -> (&'t [f64], &'t [f64]) {
        assert_eq!(at.len(), self.parameters(), "one value per parameter");
        at.split_at(self.model.intervals.count())
    }

    fn hazards<'t>(&'t self, at: &'t [f64]) -> Hazards<'t> {
        self.model.hazards(self.split(at), self.model.cap)
    }

    /// Returns the greatest weight of a record in the information.
    fn most_weight(&self) -> f64 {
        // A record's share of the scale, which is rounded, is at most 1.
        0.5 * (1.0 + self.model.cap) * (1.0 + 1.0 / 4096.0)
    }
}

impl ScoreModel for SurvivalScores<'_> {
    fn coefficients(&self) -> usize {
        self.model.intervals.count() + self.model.predictor.len() - 1
    }

    fn intercepts(&self) -> usize {
        self.model.intervals.count()
    }

    /// One interval's unit vector has length 1, as an intercept's predictor.
    fn most_squares(&self) -> u64 {
        self.model.predictor.most_squares()
    }

    fn gradient_kernel(&self, at: &[f64], frame: Frame<'_>, pass: BlockPass<'_>) {
        self.model.check(pass.columns());
        pass.vectors(&Score::new(self.hazards(at), frame));
    }

    fn curvature_kernel(&self, at: &[f64], scales: [f64; 2], pass: BlockPass<'_>) {
        self.model.check(pass.columns());
        let predictors = self.model.predictor.coded().split_off(1);
        let information = Information { hazards: self.hazards(at), predictors, scale: scales[0] };
        pass.trace(&information, self.coefficients(), &information.places());
    }

    fn coding(&self) -> Vec<bool> {
        let of_predictors = self.model.predictor.coding().into_iter().skip(1);
        std::iter::repeat_n(false, self.model.intervals.count()).chain(of_predictors).collect()
    }

    fn leaves_out(&self) -> bool {
        self.model.predictor.spares_inert()
    }

    /// Two intervals' unit vectors are never both nonzero.
    fn never_together(&self, j: usize, k: usize) -> bool {
        let intervals = self.model.intervals.count();
        j != k && j < intervals && k < intervals
    }

    fn range(&self, _at: &[f64], direction: &[f64]) -> (f64, f64) {
        let (log_hazards, coefficients) = self.split(direction);
        let (low, high) = self.model.predictor.range(&[&[0.0], coefficients].concat(), 0.0, None);
        let ends = log_hazards.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(*x), h.max(*x)));
        (ends.0 + low, ends.1 + high)
    }

    fn extreme_gradients(&self, at: &[f64]) -> Option<Vec<Vec<f64>>> {
        self.extremes(at)
    }

    /// The part in the log hazards is at most that of an event after the whole capped follow-up in another interval.
    fn gradient_bound(&self, _at: &[f64]) -> [f64; 2] {
        let (cap, squares) = (self.model.cap, self.most_squares() as f64 - 1.0);
        [(1.0 + cap * cap + cap.max(1.0).powi(2) * squares).sqrt(), 0.0]
    }

    fn most_information(&self, _at: &[f64]) -> [f64; 2] {
        [self.most_weight(), 1.0]
    }

    fn observed(&self, _at: &[f64]) -> ObservedForm {
        ObservedForm::BothEnds { intervals: self.model.intervals.count() }
    }

    /// If records are followed for half of each interval, up to the cap.
    fn even_information(&self, at: &[f64]) -> Vec<f64> {
        let (log_hazards, coefficients) = self.split(at);
        let ends = self.model.intervals.ends.windows(2);
        let mut left = self.model.cap;
        let of_interval = |(log, ends): (&f64, &[f64])| {
            let hazard = (0.5 * libm::exp(log.min(80.0)) * (ends[1] - ends[0])).min(left);
            left -= hazard;
            hazard
        };
        let of_intervals: Vec<f64> = log_hazards.iter().zip(ends).map(of_interval).collect();
        let total: f64 = of_intervals.iter().sum();
        let coding = self.model.predictor.coding();
        let square = |j: usize| {
            let (low, high) = self.model.predictor.feature_range(j + 1);
            if coding[j + 1] { 1.0 } else { (low * low + low * high + high * high) / 3.0 }
        };
        let of_coefficients: Vec<f64> = (0..coefficients.len()).map(|j| total * square(j)).collect();
        [of_intervals, of_coefficients].concat()
    }
}
