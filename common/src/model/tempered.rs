//! A model whose likelihood is raised to a power.
//!
//! Density of one record: `p(y | theta)^power`, with a known power in (0, 1], without unit. The resulting posterior is wider than
//! the model's own, and every ratio is smaller by the power, so a budget pays for more iterations. Source: Heikkilä et al.,
//! *Differentially private Markov chain Monte Carlo* (2019), sections 2.1 and 4.
//!
//! Parameters, columns and units are those of the model. Log ratio, public bound, public centre, natural
//! parameter, log normaliser and information are the model's times the power.

use super::Model;
use super::combinations::Combinations;
use super::exponential_family::{BoundedStatistic, ExponentialFamily};
use super::leverage::Leverage;
use super::linear_predictor::LinearPredictor;
use super::observed::ObservedForm;
use super::ratio_range::{RatioRange, outward};
use super::score::{Remainder, ScoreModel};
use conclave_privacy::pass::frame::Frame;
use conclave_privacy::pass::{BlockPass, ModelData};

/// A model and a power on its likelihood.
pub(super) struct Tempered {
    model: Box<dyn Model>,
    power: f64,
}

impl Tempered {
    pub(super) fn new(model: Box<dyn Model>, power: f64) -> Self {
        Self { model, power }
    }
}

impl Model for Tempered {
    fn parameter_names(&self) -> &[String] {
        self.model.parameter_names()
    }

    fn ratios(&self, from: &[f64], to: &[f64]) -> RatioRange {
        self.model.ratios(from, to).times(self.power)
    }

    // The next three are rounded outward in addition to the model's own rounding. The charged sensitivity of a query must not
    // change between versions.

    fn bound(&self, from: &[f64], to: &[f64]) -> f64 {
        outward(self.power * self.model.bound(from, to))
    }

    fn centre(&self, from: &[f64], to: &[f64]) -> f64 {
        self.power * self.model.centre(from, to)
    }

    fn half_range(&self, from: &[f64], to: &[f64]) -> f64 {
        // The second term covers the rounding of the centre, which may be far from 0.
        outward(self.power * self.model.half_range(from, to)) + f64::EPSILON * self.centre(from, to).abs()
    }

    fn exponential_family(&self) -> Option<&dyn ExponentialFamily> {
        self.model.exponential_family().map(|_| self as &dyn ExponentialFamily)
    }

    fn scores(&self) -> Option<Box<dyn ScoreModel + '_>> {
        self.model.scores().map(|scores| Box::new(TemperedScores { scores, power: self.power }) as Box<dyn ScoreModel>)
    }

    fn information_bound(&self) -> Vec<f64> {
        self.model.information_bound().into_iter().map(|information| self.power * information).collect()
    }

    fn ratio_kernel(&self, pass: BlockPass<'_>) {
        self.model.ratio_kernel(pass.tempered(self.power));
    }

    fn log_likelihood(&self, data: &ModelData, theta: &[f64]) -> f64 {
        self.power * self.model.log_likelihood(data, theta)
    }

    fn to_original(&self, theta: &[f64]) -> Vec<f64> {
        self.model.to_original(theta)
    }
}

/// [`Model::exponential_family`] returns this only if the model is an exponential family.
impl BoundedStatistic for Tempered {
    fn ranges(&self) -> Vec<(f64, f64)> {
        self.family().ranges()
    }

    fn statistic_kernel(&self, component: usize, pass: BlockPass<'_>) {
        self.family().statistic_kernel(component, pass);
    }
}

impl ExponentialFamily for Tempered {
    fn natural(&self, theta: &[f64]) -> Vec<f64> {
        self.family().natural(theta).into_iter().map(|phi| self.power * phi).collect()
    }

    fn log_normaliser(&self, theta: &[f64]) -> f64 {
        self.power * self.family().log_normaliser(theta)
    }
}

impl Tempered {
    fn family(&self) -> &dyn ExponentialFamily {
        self.model.exponential_family().unwrap_or_else(|| unreachable!("only exponential families get here"))
    }
}

/// The model's scores, with gradients and information multiplied by the power. Moments are unchanged.
struct TemperedScores<'a> {
    scores: Box<dyn ScoreModel + 'a>,
    power: f64,
}

impl TemperedScores<'_> {
    /// Returns the numbers of the frame with its rows multiplied by the power.
    fn scaled(&self, frame: Frame<'_>) -> Vec<f64> {
        let rows = (0..frame.parameters()).flat_map(|k| frame.row(k).iter().map(|weight| self.power * weight));
        rows.chain(frame.shift().iter().copied()).collect()
    }
}

impl ScoreModel for TemperedScores<'_> {
    fn design(&self) -> Option<&LinearPredictor> {
        self.scores.design()
    }

    fn coefficients(&self) -> usize {
        self.scores.coefficients()
    }

    fn parameters(&self) -> usize {
        self.scores.parameters()
    }

    fn most_squares(&self) -> u64 {
        self.scores.most_squares()
    }

    fn cells(&self) -> Option<&Combinations> {
        self.scores.cells()
    }

    fn gradient_kernel(&self, at: &[f64], frame: Frame<'_>, pass: BlockPass<'_>) {
        let numbers = self.scaled(frame);
        self.scores.gradient_kernel(at, Frame::new(&numbers, frame.parameters()).unwrap_or(frame), pass);
    }

    fn remainder_bound(&self, points: [&[f64]; 3], leverage: Option<&Leverage<'_>>) -> Option<f64> {
        let plain = || self.scores.remainder_bound(points, None).map(|bound| self.power * bound);
        if leverage.is_some() { None } else { plain() }
    }

    fn remainder_kernel(&self, step: &Remainder<'_>, pass: BlockPass<'_>) {
        let numbers = self.scaled(step.frame);
        let frame = Frame::new(&numbers, step.frame.parameters()).unwrap_or(step.frame);
        self.scores.remainder_kernel(&Remainder { frame, power: self.power * step.power, ..*step }, pass);
    }

    fn vector_rounding(&self, step: &Remainder<'_>) -> f64 {
        let numbers = self.scaled(step.frame);
        let frame = Frame::new(&numbers, step.frame.parameters()).unwrap_or(step.frame);
        self.scores.vector_rounding(&Remainder { frame, ..*step })
    }

    fn curvature_kernel(&self, at: &[f64], scales: [f64; 2], pass: BlockPass<'_>) {
        self.scores.curvature_kernel(at, scales.map(|scale| scale / self.power), pass);
    }

    fn moments_kernel(&self, pass: BlockPass<'_>) {
        self.scores.moments_kernel(pass);
    }

    fn moments_outcome(&self) -> Option<(f64, f64)> {
        self.scores.moments_outcome()
    }

    fn range(&self, at: &[f64], direction: &[f64]) -> (f64, f64) {
        self.scores.range(at, direction)
    }

    fn even_information(&self, at: &[f64]) -> Vec<f64> {
        self.scores.even_information(at).into_iter().map(|information| self.power * information).collect()
    }

    fn extreme_gradients(&self, at: &[f64]) -> Option<Vec<Vec<f64>>> {
        let scaled = |gradient: Vec<f64>| gradient.into_iter().map(|part| self.power * part).collect();
        Some(self.scores.extreme_gradients(at)?.into_iter().map(scaled).collect())
    }

    fn reach(&self, at: &[f64], image: &dyn Fn(&[f64]) -> Vec<f64>) -> Option<f64> {
        let scaled = |gradient: &[f64]| image(&gradient.iter().map(|part| self.power * part).collect::<Vec<f64>>());
        self.scores.reach(at, &scaled)
    }

    fn widened(&self, at: &[f64], frame: Frame<'_>) -> f64 {
        let numbers = self.scaled(frame);
        self.scores.widened(at, Frame::new(&numbers, frame.parameters()).unwrap_or(frame))
    }

    fn gradient_bound(&self, at: &[f64]) -> [f64; 2] {
        self.scores.gradient_bound(at).map(|bound| self.power * bound)
    }

    fn most_information(&self, at: &[f64]) -> [f64; 2] {
        self.scores.most_information(at).map(|information| self.power * information)
    }

    /// The scores and the information are multiplied by the same power.
    fn observed(&self, at: &[f64]) -> ObservedForm {
        self.scores.observed(at)
    }

    fn most_expected(&self, at: &[f64]) -> [f64; 2] {
        self.scores.most_expected(at).map(|information| self.power * information)
    }
}
