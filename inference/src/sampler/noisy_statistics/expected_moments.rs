//! Expected error of second moments, and of the release after them, in a linear regression.
//!
//! The releases are constructed like the parties' would be, for assumed records: moments of an assumed design, with the noise
//! that the budget buys, the same ties, and the second release that would be chosen. A coordinate's error follows from the ratio
//! of the fit's width to its width without noise. The fit uses a flat prior, because the prior's information does not come from
//! the records.

use super::allotment::Allotment;
use super::design::{Case, FIFTH, predictor_moments};
use super::gaussian::{Fit, GaussianPrior};
use super::linear::SecondStage;
use super::linear_releases::{Linear, ResidualStage, Sigma};
use super::moments::{Moments, Records};
use super::moments_strategy::MomentsStrategy;
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::{Matrix, dot};
use crate::sampler::target::Target;
use conclave_common::schema::ModelSpec;
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::Frame;

/// Number of prior sds by which the best case may move a coefficient from the prior's mean towards 0.
const NEARER: f64 = 2.0;

/// Assumed properties of the records, in the moments' units and coded predictors.
struct Assumed {
    /// Sum of the predictors' second moments.
    among: Matrix,
    beta: Vec<f64>,
    sigma: f64,
    records: f64,
}

/// Returns the rms over the coordinates of the error of a posterior mean, in posterior sds without privacy; `records` is the
/// total number over the parties.
///
/// # Errors
/// The query has no price.
pub(crate) fn error(
    target: &Target,
    strategy: &MomentsStrategy,
    budget: &Allotment,
    records: f64,
    case: Case,
) -> Result<f64, SamplerError> {
    let assumed = Assumed::of(target, strategy, records, case);
    let order = strategy.form.released as u32;
    let moments = budget.whole_sd(&target.spec, target.model.as_ref(), QueryKind::Moments { order }, (&[], &[]))?;
    let sd = strategy.form.parties.sqrt() * moments;
    let first = assumed.moments(strategy, sd / strategy.first.sqrt());
    let decided = Linear { moments: &first, residual: None, squares: None, sigma: assumed.sigma_model(strategy) };
    let order = strategy.units.coefficients + usize::from(strategy.sigma == Sigma::Unknown);
    let flat = GaussianPrior::independent(vec![0.0; order], vec![0.0; order]);
    let fit = decided.fit(&flat);
    let (moments, residual) = match second_stage(strategy, decided, &fit, case) {
        Some(SecondStage::Score { clip }) => {
            let sd = residual_sd(target, strategy, budget, clip)?;
            let score_noise = Matrix::identity(strategy.units.coefficients).scaled(sd * sd);
            let stage = ResidualStage {
                at: assumed.beta.clone(),
                score: vec![0.0; strategy.units.coefficients],
                score_noise,
                excess: 0.0,
            };
            (first, Some(stage))
        }
        Some(SecondStage::Moments) => (assumed.moments(strategy, sd), None),
        None => (first, None),
    };
    // Sigma is estimated separately: its own noise would only obscure this comparison.
    let known = Linear { moments: &moments, residual: residual.as_ref(), squares: None, sigma: Sigma::Known(assumed.sigma) };
    let mut squares = coefficient_excesses(strategy, &known.fit(&flat));
    if strategy.sigma == Sigma::Unknown {
        squares.push(assumed.sigma_excess(&moments));
    }
    Ok((squares.iter().sum::<f64>() / squares.len() as f64).sqrt())
}

/// Returns the query after the first moments, if there is one. In the best case the predictors' moments are well above their
/// noise, whatever the assumed ones are.
fn second_stage(strategy: &MomentsStrategy, decided: Linear<'_>, fit: &Fit, case: Case) -> Option<SecondStage> {
    if strategy.first >= 1.0 {
        return None;
    }
    let clip = decided.worthwhile_clip(fit, strategy.most_squares, strategy.first);
    Some(match (case, clip) {
        (Case::Best, Some(clip)) => SecondStage::Score { clip },
        (Case::Best, None) => SecondStage::Moments,
        (Case::Worse, _) => decided.second_stage(fit, strategy.most_squares, strategy.first),
    })
}

impl Assumed {
    fn of(target: &Target, strategy: &MomentsStrategy, records: f64, case: Case) -> Self {
        let ModelSpec::Regression(regression) = &target.spec.model else {
            return Self {
                among: Matrix::identity(strategy.units.coefficients),
                beta: vec![0.0; strategy.units.coefficients],
                sigma: 1.0,
                records,
            };
        };
        let plain = predictor_moments(&regression.design, &target.spec.columns, case);
        let among = strategy.units.coding.moments(&plain).scaled(records);
        let coefficient = |(mean, precision): (&f64, &f64)| match case {
            Case::Best if *precision > 0.0 => mean.signum() * (mean.abs() - NEARER / precision.sqrt()).max(0.0),
            Case::Best => 0.0,
            Case::Worse => *mean,
        };
        let beta = strategy
            .prior
            .mean
            .iter()
            .zip(&strategy.prior.precision)
            .take(strategy.units.coefficients)
            .map(coefficient)
            .collect();
        Self { among, beta, sigma: scatter(target, strategy, case), records }
    }

    /// Returns the fit's knowledge of sigma.
    fn sigma_model(&self, strategy: &MomentsStrategy) -> Sigma {
        if strategy.sigma == Sigma::Unknown { Sigma::Unknown } else { Sigma::Known(self.sigma) }
    }

    /// Returns the records' moments with noise of this sd.
    fn moments(&self, strategy: &MomentsStrategy, sd: f64) -> Moments {
        let p = strategy.units.coefficients;
        let with_outcome = self.among.apply(&self.beta);
        let outcome = dot(&self.beta, &with_outcome) + self.records * self.sigma * self.sigma;
        let matrix = Matrix::from_fn(p + 1, |i, j| match (i == p, j == p) {
            (false, false) => self.among[(i, j)],
            (true, true) => outcome,
            _ => with_outcome[i.min(j)],
        });
        let records = if strategy.form.records.is_none() && strategy.form.intercept {
            Records::First
        } else {
            Records::Exact(self.records)
        };
        Moments { matrix, noise: strategy.form.noise(sd), records }
    }

    /// Returns the relative increase of the variance of log sigma that is due to noise.
    fn sigma_excess(&self, moments: &Moments) -> f64 {
        let w: Vec<f64> = self.beta.iter().map(|b| -b).chain([1.0]).collect();
        let variance = self.sigma * self.sigma;
        let mut noise = moments.noise.covariance(&w, &w).quadratic(&w);
        if moments.records == Records::First {
            let shared = dot(&w, &moments.noise.covariance_with_entry(&w, (0, 0)));
            noise += variance * variance * moments.noise.variance((0, 0)) - 2.0 * variance * shared;
        }
        // Relative to the variance of the sum of squares itself, 2 n sigma^4.
        0.5 * noise.max(0.0) / (self.records * variance * variance)
    }
}

/// Returns the residuals' sd in the moments' units: the known one; or the largest that the outcome's bounds allow, or a fifth of
/// it.
fn scatter(target: &Target, strategy: &MomentsStrategy, case: Case) -> f64 {
    if let Sigma::Known(sigma) = strategy.sigma {
        return sigma;
    }
    let half = strategy.units.outcome.1;
    let most = target.spec.support.last().map_or(1.0, |interval| (interval.max / half).min(1.0));
    let centre = target.spec.priors.last().map_or(1.0, |prior| prior.location() / half);
    match case {
        Case::Best => most,
        Case::Worse => centre.min(FIFTH * most).max(f64::MIN_POSITIVE),
    }
}

/// Returns the noise sd of a second release's scores of residuals clipped at `clip`, summed over the parties.
fn residual_sd(target: &Target, strategy: &MomentsStrategy, budget: &Allotment, clip: f64) -> Result<f64, SamplerError> {
    let theta = target.space.theta_inside(&target.spec, &target.space.location);
    let frame = vec![0.0; Frame::length(theta.len())];
    let whole = budget.whole_score_sd(&target.spec, target.model.as_ref(), (&theta, &frame))?;
    Ok(clip * strategy.most_squares.sqrt() * whole / (1.0 - strategy.first).sqrt())
}

/// Returns the relative increase of each coefficient's variance that is due to noise, for the model's own coefficients.
fn coefficient_excesses(strategy: &MomentsStrategy, fit: &Fit) -> Vec<f64> {
    let [with, without] =
        [&fit.covariance, &fit.without_noise].map(|coded| strategy.units.coding.plain_covariance(&grown(coded, strategy)));
    let pairs = with.diagonal_entries().into_iter().zip(without.diagonal_entries());
    pairs.take(strategy.units.coefficients).map(|(with, without)| (with / without - 1.0).max(0.0)).collect()
}

/// Extends a covariance of the coefficients to all coordinates, as the coding expects.
fn grown(coefficients: &Matrix, strategy: &MomentsStrategy) -> Matrix {
    let order = strategy.units.coefficients + usize::from(strategy.sigma == Sigma::Unknown);
    let inside = |i: usize| i < coefficients.order();
    Matrix::from_fn(order, |i, j| if inside(i) && inside(j) { coefficients[(i, j)] } else { 0.0 })
}
