//! The strategy for linear regression: second moments once, then either a score of clipped residuals or second moments again,
//! whichever is more informative.

use super::allotment::Allotment;
use super::answer::{Answer, Inference, Stage};
use super::gaussian::{Fit, GaussianPrior, roots};
use super::linear::{CLIP, Linear, ResidualStage, SecondStage, Sigma};
use super::moments::{CLEAR, DETERMINED, Moments};
use super::moments_form::MomentsForm;
use super::moments_units::MomentsUnits;
use super::obstacle::Obstacle;
use super::refit::{RefitError, RetainedCoefficients};
use super::strategy::Strategy;
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::model::ScoreModel;
use conclave_common::parameter::LEAST_MAGNITUDE;
use conclave_common::query::PartyMetadata;
use conclave_common::query::{Query, Round};
use conclave_privacy::mechanism::{NoiseScale, QueryKind};
use conclave_privacy::pass::{Frame, GRADIENT_SCALE};

/// Share of the budget for the first release, if the job states none.
const FIRST: f64 = 0.25;

/// Effect of a clip on a mean, in posterior sds, above which a run warns.
const LEAST_MOVED: f64 = 0.1;

/// A pending query for a score of residuals.
#[derive(Debug, Clone)]
struct Residual {
    theta: Vec<f64>,
    /// Coefficients at that point, in the moments' units.
    at: Vec<f64>,
    /// Factor of the released sums.
    unit: f64,
    noise: NoiseScale,
}

/// Linear regression from its second moments.
#[derive(Clone)]
pub(crate) struct MomentsStrategy {
    pub(super) units: MomentsUnits,
    pub(super) sigma: Sigma,
    /// Prior in the moments' coordinates.
    pub(super) prior: GaussianPrior,
    pub(super) form: MomentsForm,
    pub(super) most_squares: f64,
    pub(super) first: f64,
    queries: Vec<(NoiseScale, f64)>,
    pending_residual: Option<Residual>,
    releases: Vec<Moments>,
    moments: Option<Moments>,
    /// The residual stage, with the theta of its query.
    residual: Option<(ResidualStage, Vec<f64>)>,
    /// Set if a score of residuals was released that does not apply to this model.
    without_residual: bool,
    stages: Vec<Stage>,
}

impl MomentsStrategy {
    /// Returns the strategy before its first round.
    ///
    /// # Errors
    /// The model has no moments.
    pub(crate) fn new(target: &Target, scores: &dyn ScoreModel, parties: &[PartyMetadata]) -> Result<Self, SamplerError> {
        let units = MomentsUnits::of(scores, target.space.dimension()).ok_or(SamplerError::NoScores)?;
        let form = MomentsForm::new(scores, parties);
        let sigma = units.sigma(&target.spec);
        if sigma == Sigma::Unknown && !form.has_count() {
            return Err(SamplerError::NoCount);
        }
        let first = target.spec.release.stages.as_ref().map_or(FIRST, |shares| shares[0]);
        Ok(Self {
            prior: units.prior(&GaussianPrior::of(&target.space)),
            units,
            sigma,
            form,
            most_squares: scores.most_squares() as f64,
            first,
            queries: Vec::new(),
            pending_residual: None,
            releases: Vec::new(),
            moments: None,
            residual: None,
            without_residual: false,
            stages: Vec::new(),
        })
    }

    fn linear(&self) -> Option<Linear<'_>> {
        Some(Linear {
            moments: self.moments.as_ref()?,
            residual: self.residual.as_ref().map(|(stage, _)| stage),
            sigma: self.sigma,
        })
    }

    fn fit(&self) -> Option<Fit> {
        Some(self.linear()?.fit(&self.prior))
    }

    fn ask_moments(&mut self, target: &Target, budget: &mut Allotment, share: f64) -> Result<Vec<Query>, SamplerError> {
        let kind = QueryKind::Moments { order: self.units.coefficients as u32 + 1 };
        let noise = budget.take(&target.spec, target.model.as_ref(), kind, (&[], &[]), share)?;
        self.queries.push((noise, share));
        Ok(vec![Query { chain: 0, kind, from: Vec::new(), to: Vec::new(), noise }])
    }

    /// Asks for the residuals at the fit's mean, times the coded predictors; the vector is at most as long as `clip` times the
    /// longest row.
    fn ask_residuals(
        &mut self,
        target: &Target,
        budget: &mut Allotment,
        (fit, clip, share): (&Fit, f64, f64),
    ) -> Result<Vec<Query>, SamplerError> {
        let spec = &target.spec;
        let (coefficients, (_, half)) = (self.units.coefficients, self.units.outcome);
        let theta = target.space.theta_inside(spec, &self.units.plain(&fit.mean));
        let at = self.units.units(&target.space.coordinates(&theta));
        let order = theta.len();
        // The gradient is the residual over sigma², in units of the priors, times the record.
        let sigma = match self.sigma {
            Sigma::Known(sigma) => sigma * half,
            Sigma::Unknown => theta[order - 1],
        };
        let unit = clip * self.most_squares.sqrt();
        let weight = sigma * sigma / (half * unit);
        let weights: Vec<f64> = (0..order).map(|j| if j < coefficients { weight } else { 0.0 }).collect();
        let rows = self.units.coding.of_gradient(&Matrix::diagonal(&weights));
        let plain = |x: &f64| if x.abs() < LEAST_MAGNITUDE { 0.0 } else { *x };
        let mut frame: Vec<f64> = rows.entries().iter().map(plain).collect();
        frame.resize(Frame::length(order), 0.0);
        let kind = QueryKind::Gradient { parameters: order as u32 };
        let noise = budget.take(spec, target.model.as_ref(), kind, (&theta, &frame), share)?;
        self.pending_residual = Some(Residual { theta: theta.clone(), at: at[..coefficients].to_vec(), unit, noise });
        self.queries.push((noise, share));
        Ok(vec![Query { chain: 0, kind, from: theta, to: frame, noise }])
    }

    /// Records a stage: the posterior after all releases so far, and the last release's share of the budget.
    fn note_stage(&mut self, target: &Target, share: f64, last: bool) {
        let Some(fit) = self.fit() else { return };
        let stage = Stage {
            theta: self.residual.as_ref().map(|(_, theta)| theta.clone()).unwrap_or_default(),
            share,
            mean: target.space.theta_inside(&target.spec, &self.units.plain(&fit.mean)),
            sd: roots(&self.units.plain_covariance(&fit.covariance)),
            last,
        };
        self.stages.push(stage);
    }

    /// Returns the largest effect of the residuals' clip on a mean, in posterior sds, as far as the releases show it; `None` if
    /// they show none.
    fn clip_bias(&self, fit: &Fit) -> Option<f64> {
        let moved = self.linear()?.likelihood().clip_bias()?;
        let sds = roots(&fit.covariance);
        Some(moved.iter().zip(&sds).map(|(moved, sd)| moved.abs() / sd).fold(0.0, f64::max)).filter(|most| *most > LEAST_MOVED)
    }

    fn note_moments(&mut self, released: Moments) {
        self.releases.push(released);
        self.moments = Moments::pooled(&self.releases);
    }
}

impl Strategy for MomentsStrategy {
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
        let Some((noise, share)) = self.queries.last().copied() else { return false };
        let totals = totals.components();
        match self.pending_residual.take() {
            None => self.note_moments(self.form.moments(totals, noise)),
            Some(Residual { theta, at, unit, noise }) => {
                let sums = totals[..self.units.coefficients].iter();
                let sd = unit * self.form.parties.sqrt() * noise.units() as f64 / GRADIENT_SCALE;
                let stage = ResidualStage {
                    at,
                    score: sums.map(|total| unit * (*total as f64 / GRADIENT_SCALE)).collect(),
                    score_noise: Matrix::identity(self.units.coefficients).scaled(sd * sd),
                };
                self.residual = Some((stage, theta));
            }
        }
        let last = self.queries.len() > 1 || self.first >= 1.0;
        self.note_stage(target, share, last);
        last
    }

    /// Judges the second release by the noise of the first. A score of residuals leaves the moments as they are; moments lower their
    /// noise, but not what half the limit, one and a half sds of it, admits.
    fn obstacle(&self, _target: &Target, budget: &Allotment) -> Option<Obstacle> {
        let (fit, moments) = (self.fit()?, self.moments.as_ref()?);
        let (least, limit) = moments.smallest(DETERMINED);
        match self.linear()?.second_stage(&fit, self.most_squares, self.first) {
            SecondStage::Score { .. } => (least < limit).then_some(Obstacle::Moments { least, limit }),
            SecondStage::Moments => {
                let limit_at_end = limit * (self.first / (self.first + budget.left())).sqrt();
                let least = least + 0.5 * limit;
                (least < limit_at_end).then_some(Obstacle::Moments { least, limit: limit_at_end })
            }
        }
    }

    fn answer<'a>(&'a self, _target: &'a Target) -> Option<Answer<'a>> {
        let fit = self.fit()?;
        let likelihood = self.linear()?.likelihood();
        Some(Answer {
            mean: self.units.plain(&fit.mean),
            covariance: self.units.plain_covariance(&fit.covariance),
            log_likelihood: Box::new(move |u| likelihood.log(&self.units.units(u))),
        })
    }

    fn inference(&self, _target: &Target) -> Option<Inference> {
        let (fit, moments) = (self.fit()?, self.moments.as_ref()?);
        let with = self.units.plain_covariance(&fit.covariance).diagonal_entries();
        let without = self.units.plain_covariance(&fit.without_noise).diagonal_entries();
        let shares = fit.covariance.diagonal_entries().into_iter().zip(&self.prior.precision).map(|(v, p)| v * p);
        let (least, limit) = moments.smallest(CLEAR);
        // Without clear moments the release does not determine the posterior's shape, and so not its width without noise.
        let clear = least >= limit;
        let mut inference = Inference::new(self.stages.clone(), &with, &without, fit.definite && clear)
            .with_prior_check(shares.fold(0.0, f64::max))
            .with_moments_check(moments.smallest(DETERMINED));
        if let Some(moved) = self.clip_bias(&fit) {
            inference.warnings.push(format!(
                "the second release limited residuals to {CLIP} of their estimated sds, and so moved a mean by about {moved:.1} posterior sds against \
                 the first release: the outcome has heavier tails than a normal law, and the intervals are widened by that"
            ));
        }
        if self.without_residual {
            inference.warnings.push(
                "the second release, a score of residuals at a point of the larger model, does not apply to this model and was left out: the \
                 posterior is based on the second moments only, and is wider than that of a separate job"
                    .to_owned(),
            );
        }
        Some(inference)
    }

    /// Restricts the moments and their noise to the remaining predictors. A score of residuals applies to the whole model only.
    fn refit(&self, target: &Target, retained: &RetainedCoefficients) -> Result<Box<dyn Strategy>, RefitError> {
        let scores = target.model.scores().ok_or(SamplerError::NoScores)?;
        let units = MomentsUnits::of(scores.as_ref(), target.space.dimension()).ok_or(SamplerError::NoScores)?;
        let mut strategy = Self {
            prior: units.prior(&GaussianPrior::of(&target.space)),
            units,
            releases: Vec::new(),
            moments: None,
            residual: None,
            without_residual: self.residual.is_some() && !retained.all,
            stages: Vec::new(),
            ..self.clone()
        };
        let rounds = self.releases.len() + usize::from(self.residual.is_some() && retained.all);
        let whole = self.stages.last().is_some_and(|stage| stage.last);
        for (round, (_, share)) in self.queries.iter().take(rounds).enumerate() {
            match self.releases.get(round) {
                Some(released) => strategy.note_moments(released.restricted(&retained.coefficients)),
                None => strategy.residual.clone_from(&self.residual),
            }
            strategy.note_stage(target, *share, whole && round + 1 == rounds);
        }
        Ok(Box::new(strategy))
    }
}
