//! The way of linear regression: second moments once, and then either a score of clipped residuals or second moments
//! again, whichever says more.

use super::allotment::Allotment;
use super::answer::{Answer, Inference, Stage};
use super::coding::Coding;
use super::gaussian::{Fit, GaussianPrior, roots};
use super::linear::{Linear, ResidualStage, SecondStage, Sigma};
use super::moments::{Moments, Records};
use super::moments_noise::{MomentsNoise, Tie};
use super::scores::triangle;
use super::way::Way;
use crate::accounting::{Adjacency, PrivacyUnit};
use crate::mechanism::{NoiseScale, QueryKind};
use crate::model::{Frame, GRADIENT_SCALE, ScoreModel};
use crate::parameter::LEAST_MAGNITUDE;
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::party_metadata::PartyMetadata;
use crate::sampler::round::{Query, Round};
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use crate::schema::{Family, ModelSpec};

/// The first release's share of the budget, where the job names none.
const FIRST: f64 = 0.25;

/// What a residual score was asked with.
#[derive(Debug, Clone)]
struct Residual {
    at: Vec<f64>,
    /// What the sums are multiplied by.
    unit: f64,
    noise: NoiseScale,
}

/// Linear regression by its moments.
pub(crate) struct MomentsWay {
    pub(super) coding: Coding,
    /// Centre and half width of the moments' outcome.
    pub(super) outcome: (f64, f64),
    pub(super) coefficients: usize,
    pub(super) sigma: Sigma,
    /// Whether the first coefficient is an intercept: the first entry of the moments is then the number of records.
    pub(super) intercept: bool,
    /// Of moments' coordinates.
    pub(super) prior: GaussianPrior,
    pub(super) ties: Vec<Tie>,
    /// Records of all parties, where each of them counts in every sum.
    pub(super) records: Option<f64>,
    pub(super) parties: f64,
    pub(super) most_squares: f64,
    pub(super) first: f64,
    asked: Vec<(NoiseScale, f64)>,
    residual_asked: Option<Residual>,
    releases: Vec<Moments>,
    moments: Option<Moments>,
    residual: Option<ResidualStage>,
    stages: Vec<Stage>,
}

impl MomentsWay {
    /// The way at its start.
    ///
    /// # Errors
    /// A model without moments.
    pub(crate) fn new(target: &Target, scores: &dyn ScoreModel, parties: &[PartyMetadata]) -> Result<Self, SamplerError> {
        let outcome = scores.moments_outcome().ok_or(SamplerError::NoScores)?;
        let (coded, order, coefficients) = (scores.coding(), target.space.dimension(), scores.coefficients());
        let coding = Coding::new(&coded, order);
        let plain = GaussianPrior { mean: target.space.location.clone(), precision: target.space.precision.clone() };
        let prior = in_units(&coding.prior(&plain), coefficients, outcome);
        let is_row = |party: &PartyMetadata| party.unit() == PrivacyUnit::row(Adjacency::Replace);
        let known: Option<f64> = parties.iter().map(|party| party.records().map(|n| n as f64)).sum();
        let records = known.filter(|_| parties.iter().all(is_row) && !scores.leaves_out());
        let sigma = sigma(target, outcome.1);
        let intercept = scores.has_intercept();
        if sigma == Sigma::Unknown && records.is_none() && !intercept {
            return Err(SamplerError::NoCount);
        }
        let first = target.spec.release.stages.as_ref().map_or(FIRST, |shares| shares[0]);
        Ok(Self {
            sigma,
            ties: ties(scores, &coded, records.is_some()),
            parties: parties.len() as f64,
            most_squares: scores.most_squares() as f64,
            coding,
            outcome,
            coefficients,
            prior,
            records,
            first,
            intercept,
            asked: Vec::new(),
            residual_asked: None,
            releases: Vec::new(),
            moments: None,
            residual: None,
            stages: Vec::new(),
        })
    }

    fn linear(&self) -> Option<Linear<'_>> {
        Some(Linear { moments: self.moments.as_ref()?, residual: self.residual.as_ref(), sigma: self.sigma })
    }

    fn fit(&self) -> Option<Fit> {
        Some(self.linear()?.fit(&self.prior))
    }

    /// Moments' coordinates of the model's.
    fn units(&self, u: &[f64]) -> Vec<f64> {
        let mut coded = self.coding.coded(u);
        into_units(&mut coded, self.coefficients, self.outcome);
        coded
    }

    /// And back.
    fn plain(&self, units: &[f64]) -> Vec<f64> {
        let (centre, half) = self.outcome;
        let mut coded: Vec<f64> = units.to_vec();
        let (coefficients, own) = coded.split_at_mut(self.coefficients);
        coefficients.iter_mut().for_each(|b| *b *= half);
        if let Some(intercept) = coefficients.first_mut().filter(|_| centre != 0.0) {
            *intercept += centre;
        }
        own.iter_mut().for_each(|log_sigma| *log_sigma += libm::log(half));
        self.coding.plain(&coded)
    }

    fn plain_covariance(&self, units: &Matrix) -> Matrix {
        let (_, half) = self.outcome;
        let scale = |j: usize| if j < self.coefficients { half } else { 1.0 };
        self.coding.plain_covariance(&Matrix::from_fn(units.order(), |i, j| scale(i) * scale(j) * units[(i, j)]))
    }

    fn ask_moments(&mut self, target: &Target, budget: &mut Allotment, share: f64) -> Result<Vec<Query>, SamplerError> {
        let kind = QueryKind::Moments { order: self.coefficients as u32 + 1 };
        let noise = budget.take(&target.spec, target.model.as_ref(), kind, (&[], &[]), share)?;
        self.asked.push((noise, share));
        Ok(vec![Query { chain: 0, kind, from: Vec::new(), to: Vec::new(), noise }])
    }

    /// Residuals at the fit's mean, times the coded predictors, as long a vector as `clip` times the longest row.
    fn ask_residuals(
        &mut self,
        target: &Target,
        budget: &mut Allotment,
        (fit, clip, share): (&Fit, f64, f64),
    ) -> Result<Vec<Query>, SamplerError> {
        let spec = &target.spec;
        let theta = target.space.theta_inside(spec, &self.plain(&fit.mean));
        let at = self.units(&target.space.coordinates(&theta));
        let order = theta.len();
        // The gradient is the residual over sigma², in units of the priors, times the record.
        let sigma = match self.sigma {
            Sigma::Known(sigma) => sigma * self.outcome.1,
            Sigma::Unknown => theta[order - 1],
        };
        let unit = clip * self.most_squares.sqrt();
        let weight = sigma * sigma / (self.outcome.1 * unit);
        let weights: Vec<f64> = (0..order).map(|j| if j < self.coefficients { weight } else { 0.0 }).collect();
        let rows = self.coding.of_gradient(&Matrix::diagonal(&weights));
        let plain = |x: &f64| if x.abs() < LEAST_MAGNITUDE { 0.0 } else { *x };
        let mut frame: Vec<f64> = rows.entries().iter().map(plain).collect();
        frame.resize(Frame::length(order), 0.0);
        let kind = QueryKind::Gradient { parameters: order as u32 };
        let noise = budget.take(spec, target.model.as_ref(), kind, (&theta, &frame), share)?;
        self.residual_asked = Some(Residual { at: at[..self.coefficients].to_vec(), unit, noise });
        self.asked.push((noise, share));
        Ok(vec![Query { chain: 0, kind, from: theta, to: frame, noise }])
    }

    fn released_moments(&self, totals: &[i128], noise: NoiseScale) -> Moments {
        let order = self.coefficients + 1;
        let mut matrix = triangle(order, totals, |_| 1.0);
        for tie in &self.ties {
            let ((i, j), value) = match *tie {
                // The count where both are the first, else predictors that are never together.
                Tie::Known { at } => (at, if at == (0, 0) { self.records.unwrap_or(0.0) } else { 0.0 }),
                Tie::Same { at, source } => (at, matrix[source]),
            };
            matrix[(i, j)] = value;
            matrix[(j, i)] = value;
        }
        let records = match self.records {
            Some(records) => Records::Exact(records),
            None if self.intercept => Records::First,
            // Nobody asks for it: sigma is known.
            None => Records::Exact(1.0),
        };
        Moments { matrix, noise: MomentsNoise::new(order, self.parties.sqrt() * noise.sd(), &self.ties), records }
    }
}

impl Way for MomentsWay {
    fn ask(&mut self, target: &Target, budget: &mut Allotment) -> Result<Vec<Query>, SamplerError> {
        let Some(fit) = self.fit() else {
            let share = if self.first >= 1.0 { budget.left() } else { self.first };
            return self.ask_moments(target, budget, share);
        };
        let share = budget.left();
        let second =
            self.linear().map_or(SecondStage::Moments, |linear| linear.second_stage(&fit, self.most_squares, self.first));
        match second {
            SecondStage::Score { clip } => self.ask_residuals(target, budget, (&fit, clip, share)),
            SecondStage::Moments => self.ask_moments(target, budget, share),
        }
    }

    fn absorb(&mut self, target: &Target, _round: &Round, totals: &Totals, _budget: &Allotment) -> bool {
        let Some((noise, share)) = self.asked.last().copied() else { return false };
        let totals = totals.components();
        match self.residual_asked.take() {
            None => {
                self.releases.push(self.released_moments(totals, noise));
                self.moments = Moments::pooled(&self.releases);
            }
            Some(Residual { at, unit, noise }) => {
                let sums = totals[..self.coefficients].iter();
                let sd = unit * self.parties.sqrt() * noise.units() as f64 / GRADIENT_SCALE;
                self.residual = Some(ResidualStage {
                    at,
                    score: sums.map(|total| unit * (*total as f64 / GRADIENT_SCALE)).collect(),
                    score_noise: Matrix::identity(self.coefficients).scaled(sd * sd),
                });
            }
        }
        let last = self.asked.len() > 1 || self.first >= 1.0;
        if let Some(fit) = self.fit() {
            let theta = |units: &[f64]| target.space.theta_inside(&target.spec, &self.plain(units));
            let asked_at = self.residual.as_ref().map(|stage| stage.at.iter().chain(&fit.mean[self.coefficients..]).copied());
            let stage = Stage {
                theta: asked_at.map_or_else(Vec::new, |at| theta(&at.collect::<Vec<_>>())),
                share,
                mean: theta(&fit.mean),
                sd: roots(&self.plain_covariance(&fit.covariance)),
                last,
            };
            self.stages.push(stage);
        }
        last
    }

    fn answer<'a>(&'a self, _target: &'a Target) -> Option<Answer<'a>> {
        let fit = self.fit()?;
        let likelihood = self.linear()?.likelihood();
        Some(Answer {
            mean: self.plain(&fit.mean),
            covariance: self.plain_covariance(&fit.covariance),
            log_likelihood: Box::new(move |u| likelihood.log(&self.units(u))),
        })
    }

    fn inference(&self, _target: &Target) -> Option<Inference> {
        let (fit, moments) = (self.fit()?, self.moments.as_ref()?);
        let with = self.plain_covariance(&fit.covariance).diagonal_entries();
        let without = self.plain_covariance(&fit.without_noise).diagonal_entries();
        let shares = fit.covariance.diagonal_entries().into_iter().zip(&self.prior.precision).map(|(v, p)| v * p);
        let mut inference =
            Inference::new(self.stages.clone(), &with, &without, fit.definite).of_prior(shares.fold(0.0, f64::max));
        let (least, limit) = moments.smallest();
        if least < limit {
            inference.warnings.push(format!(
                "statistics_too_noisy: the least eigenvalue of the predictors' moments is {least:.3e}, and below {limit:.3e} the posterior is \
                 not near a Gaussian"
            ));
        }
        Some(inference)
    }
}

/// A prior of coded coordinates in the moments' units.
fn in_units(coded: &GaussianPrior, coefficients: usize, outcome: (f64, f64)) -> GaussianPrior {
    let mut mean = coded.mean.clone();
    into_units(&mut mean, coefficients, outcome);
    let scale = |(j, precision): (usize, &f64)| if j < coefficients { outcome.1 * outcome.1 * precision } else { *precision };
    GaussianPrior { mean, precision: coded.precision.iter().enumerate().map(scale).collect() }
}

fn into_units(coded: &mut [f64], coefficients: usize, (centre, half): (f64, f64)) {
    let (coefficients, own) = coded.split_at_mut(coefficients);
    if let Some(intercept) = coefficients.first_mut().filter(|_| centre != 0.0) {
        *intercept -= centre;
    }
    coefficients.iter_mut().for_each(|b| *b /= half);
    own.iter_mut().for_each(|log_sigma| *log_sigma -= libm::log(half));
}

/// What is known of the residuals' sd, in the moments' units.
fn sigma(target: &Target, half: f64) -> Sigma {
    let ModelSpec::Regression(regression) = &target.spec.model else { return Sigma::Unknown };
    let width = target.spec.columns.get(&regression.outcome).map_or(1.0, crate::schema::ColumnSpec::half_width);
    match regression.family {
        Family::Linear { sd: Some(sd) } => Sigma::Known(sd / width / half),
        _ => Sigma::Unknown,
    }
}

/// The entries whose value follows: the count and the squares of what is -1 or 1, where every record counts; those
/// squares and an indicator's as functions of other entries; products of what is never together.
fn ties(scores: &dyn ScoreModel, coded: &[bool], counted: bool) -> Vec<Tie> {
    let mut ties = Vec::new();
    let intercept = scores.has_intercept();
    if counted && intercept {
        ties.push(Tie::Known { at: (0, 0) });
    }
    for (j, is_coded) in coded.iter().enumerate() {
        if *is_coded {
            ties.push(Tie::Same { at: (j, j), source: (0, 0) });
        } else if intercept && j > 0 && scores.is_indicator(j) {
            ties.push(Tie::Same { at: (j, j), source: (0, j) });
        }
        for k in j + 1..coded.len() {
            if scores.never_together(j, k) {
                ties.push(Tie::Known { at: (j, k) });
            }
        }
    }
    ties
}
