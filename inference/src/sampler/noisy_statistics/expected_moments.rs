//! The error that second moments, and what is asked after them, can be expected to leave in a linear regression.
//!
//! The releases are put together as the parties' would be, of records that nobody has seen: moments of an assumed design,
//! with the noise that the budget buys, the same ties, and the second release that would be chosen. The error of a
//! coordinate follows from how much wider the fit is than it would be without noise. No prior helps: what it says is no answer of
//! the records'.

use super::allotment::Allotment;
use super::design::{Case, FIFTH, predictor_moments};
use super::gaussian::{Fit, GaussianPrior};
use super::linear::{Linear, ResidualStage, SecondStage, Sigma};
use super::moments::{Moments, Records};
use super::moments_noise::MomentsNoise;
use super::moments_way::MomentsWay;
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::{Matrix, dot};
use crate::sampler::target::Target;
use conclave_common::schema::ModelSpec;
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::Frame;

/// Prior sds within which the best case may have the coefficients nearer to 0 than the prior's mean.
const NEARER: f64 = 2.0;

/// What is assumed of the records, in the moments' units and coded predictors.
struct Assumed {
    /// The predictors' second moments, summed.
    among: Matrix,
    beta: Vec<f64>,
    sigma: f64,
    records: f64,
}

/// The rms over the coordinates of the error of a posterior mean, in posterior sds without privacy, of so many records of
/// all parties.
///
/// # Errors
/// A query without a price.
pub(crate) fn error(
    target: &Target,
    way: &MomentsWay,
    budget: &Allotment,
    records: f64,
    case: Case,
) -> Result<f64, SamplerError> {
    let assumed = Assumed::of(target, way, records, case);
    let order = way.units.coefficients as u32 + 1;
    let moments = budget.whole_sd(&target.spec, target.model.as_ref(), QueryKind::Moments { order }, (&[], &[]))?;
    let sd = way.form.parties.sqrt() * moments;
    let first = assumed.moments(way, sd / way.first.sqrt());
    let decided = Linear { moments: &first, residual: None, sigma: assumed.given(way) };
    let order = way.units.coefficients + usize::from(way.sigma == Sigma::Unknown);
    let flat = GaussianPrior { mean: vec![0.0; order], precision: vec![0.0; order] };
    let fit = decided.fit(&flat);
    let (moments, residual) = match second_stage(way, decided, &fit, case) {
        Some(SecondStage::Score { clip }) => {
            let sd = residual_sd(target, way, budget, clip)?;
            let score_noise = Matrix::identity(way.units.coefficients).scaled(sd * sd);
            let stage = ResidualStage { at: assumed.beta.clone(), score: vec![0.0; way.units.coefficients], score_noise };
            (first, Some(stage))
        }
        Some(SecondStage::Moments) => (assumed.moments(way, sd), None),
        None => (first, None),
    };
    // Scatter is found apart: its own noise would only blur what is asked here.
    let known = Linear { moments: &moments, residual: residual.as_ref(), sigma: Sigma::Known(assumed.sigma) };
    let mut squares = of_coefficients(way, &known.fit(&flat));
    if way.sigma == Sigma::Unknown {
        squares.push(assumed.of_sigma(&moments));
    }
    Ok((squares.iter().sum::<f64>() / squares.len() as f64).sqrt())
}

/// What is asked after the first moments, where anything is. In the best case the predictors' moments are clear of their noise, whatever
/// the assumed ones are.
fn second_stage(way: &MomentsWay, decided: Linear<'_>, fit: &Fit, case: Case) -> Option<SecondStage> {
    if way.first >= 1.0 {
        return None;
    }
    let clip = decided.clip_that_pays(fit, way.most_squares, way.first);
    Some(match (case, clip) {
        (Case::Best, Some(clip)) => SecondStage::Score { clip },
        (Case::Best, None) => SecondStage::Moments,
        (Case::Worse, _) => decided.second_stage(fit, way.most_squares, way.first),
    })
}

impl Assumed {
    fn of(target: &Target, way: &MomentsWay, records: f64, case: Case) -> Self {
        let ModelSpec::Regression(regression) = &target.spec.model else {
            return Self {
                among: Matrix::identity(way.units.coefficients),
                beta: vec![0.0; way.units.coefficients],
                sigma: 1.0,
                records,
            };
        };
        let plain = predictor_moments(&regression.design, &target.spec.columns, case);
        let among = way.units.coding.moments(&plain).scaled(records);
        let coefficient = |(mean, precision): (&f64, &f64)| match case {
            Case::Best if *precision > 0.0 => mean.signum() * (mean.abs() - NEARER / precision.sqrt()).max(0.0),
            Case::Best => 0.0,
            Case::Worse => *mean,
        };
        let beta = way.prior.mean.iter().zip(&way.prior.precision).take(way.units.coefficients).map(coefficient).collect();
        Self { among, beta, sigma: scatter(target, way, case), records }
    }

    /// What the fit is to know of sigma.
    fn given(&self, way: &MomentsWay) -> Sigma {
        if way.sigma == Sigma::Unknown { Sigma::Unknown } else { Sigma::Known(self.sigma) }
    }

    /// The moments of the records, with noise of this sd.
    fn moments(&self, way: &MomentsWay, sd: f64) -> Moments {
        let p = way.units.coefficients;
        let with_outcome = self.among.apply(&self.beta);
        let outcome = dot(&self.beta, &with_outcome) + self.records * self.sigma * self.sigma;
        let matrix = Matrix::from_fn(p + 1, |i, j| match (i == p, j == p) {
            (false, false) => self.among[(i, j)],
            (true, true) => outcome,
            _ => with_outcome[i.min(j)],
        });
        let records =
            if way.form.records.is_none() && way.form.intercept { Records::First } else { Records::Exact(self.records) };
        Moments { matrix, noise: MomentsNoise::new(p + 1, sd, &way.form.ties), records }
    }

    /// How much larger the variance of sigma's logarithm is than without noise, less 1.
    fn of_sigma(&self, moments: &Moments) -> f64 {
        let w: Vec<f64> = self.beta.iter().map(|b| -b).chain([1.0]).collect();
        let variance = self.sigma * self.sigma;
        let mut noise = moments.noise.covariance(&w, &w).quadratic(&w);
        if moments.records == Records::First {
            let shared = dot(&w, &moments.noise.covariance_with_entry(&w, (0, 0)));
            noise += variance * variance * moments.noise.variance((0, 0)) - 2.0 * variance * shared;
        }
        // Over that of the sum of squares' own, 2 n sigma^4.
        0.5 * noise.max(0.0) / (self.records * variance * variance)
    }
}

/// The residuals' sd, in the moments' units: known; or the most that outcomes within their bounds have, or a fifth of it.
fn scatter(target: &Target, way: &MomentsWay, case: Case) -> f64 {
    if let Sigma::Known(sigma) = way.sigma {
        return sigma;
    }
    let half = way.units.outcome.1;
    let most = target.spec.support.last().map_or(1.0, |interval| (interval.max / half).min(1.0));
    let centre = target.spec.priors.last().map_or(1.0, |prior| prior.location() / half);
    match case {
        Case::Best => most,
        Case::Worse => centre.min(FIFTH * most).max(f64::MIN_POSITIVE),
    }
}

/// The noise of a second release's scores of residuals clipped at `clip`, summed over the parties.
fn residual_sd(target: &Target, way: &MomentsWay, budget: &Allotment, clip: f64) -> Result<f64, SamplerError> {
    let theta = target.space.theta_inside(&target.spec, &target.space.location);
    let frame = vec![0.0; Frame::length(theta.len())];
    let whole = budget.whole_score_sd(&target.spec, target.model.as_ref(), (&theta, &frame))?;
    Ok(clip * way.most_squares.sqrt() * whole / (1.0 - way.first).sqrt())
}

/// How much larger each coefficient's variance is than without noise, less 1; of the model's own coefficients.
fn of_coefficients(way: &MomentsWay, fit: &Fit) -> Vec<f64> {
    let [with, without] =
        [&fit.covariance, &fit.without_noise].map(|coded| way.units.coding.plain_covariance(&grown(coded, way)));
    let pairs = with.diagonal_entries().into_iter().zip(without.diagonal_entries());
    pairs.take(way.units.coefficients).map(|(with, without)| (with / without - 1.0).max(0.0)).collect()
}

/// The covariance of the coefficients as one of all coordinates, which the coding is of.
fn grown(coefficients: &Matrix, way: &MomentsWay) -> Matrix {
    let order = way.units.coefficients + usize::from(way.sigma == Sigma::Unknown);
    let inside = |i: usize| i < coefficients.order();
    Matrix::from_fn(order, |i, j| if inside(i) && inside(j) { coefficients[(i, j)] } else { 0.0 })
}
