//! The queries about a linear regression's residuals at a public point: their score, clipped, and the mean of their clipped squares.
//!
//! Both are gradients in a frame. The slope along log sigma is `e²/s² - 1` at a sigma of s. A frame that keeps it alone, times 2 and
//! plus 1, releases the sum of `2 min(e²/s², 1) - 1`, because longer images are held to 1.

use super::allotment::Allotment;
use super::linear_releases::{ResidualStage, Sigma};
use super::moments_units::MomentsUnits;
use super::residual_tails::Tail;
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::target::Target;
use conclave_common::parameter::LEAST_MAGNITUDE;
use conclave_common::query::Query;
use conclave_privacy::mechanism::{NoiseScale, QueryKind};
use conclave_privacy::pass::{Frame, GRADIENT_SCALE};

/// A pending query for a score of residuals.
#[derive(Debug, Clone)]
pub(super) struct PendingResidual {
    pub(super) theta: Vec<f64>,
    /// Coefficients at that point, in the moments' units.
    at: Vec<f64>,
    /// Factor of the released sums.
    unit: f64,
    /// Mean excess that is allowed for.
    excess: f64,
    noise: NoiseScale,
}

/// A pending query for a mean of clipped squares.
#[derive(Debug, Clone)]
pub(super) struct PendingTail {
    pub(super) theta: Vec<f64>,
    /// The clip, in the moments' units.
    clip: f64,
    noise: NoiseScale,
}

/// A query at a point, before its noise is chosen.
struct Framed {
    theta: Vec<f64>,
    frame: Vec<f64>,
}

impl Framed {
    /// Builds the query with this share of the budget.
    fn ask(self, target: &Target, budget: &mut Allotment, share: f64) -> Result<Query, SamplerError> {
        let kind = QueryKind::Gradient { parameters: self.theta.len() as u32 };
        let noise = budget.take(&target.spec, target.model.as_ref(), kind, (&self.theta, &self.frame), share)?;
        Ok(Query { chain: 0, kind, from: self.theta, to: self.frame, noise })
    }
}

impl PendingResidual {
    /// Asks for the residuals at a point, in moments' units, times the coded predictors. The vector is at most as long as `clip`
    /// times the root of `most_squares`, the longest row. `excess` is the mean excess beyond the clip to allow for.
    ///
    /// # Errors
    /// The query has no price, or the budget is too small.
    pub(super) fn ask(
        (target, units, sigma): (&Target, &MomentsUnits, Sigma),
        (budget, share): (&mut Allotment, f64),
        mean: &[f64],
        (clip, excess, most_squares): (f64, f64, f64),
    ) -> Result<(Query, Self), SamplerError> {
        let (coefficients, (_, half)) = (units.coefficients, units.outcome);
        let theta = target.space.theta_inside(&target.spec, &units.plain(mean));
        let at = units.units(&target.space.coordinates(&theta));
        let order = theta.len();
        // The gradient is the residual over sigma², in units of the priors, times the record.
        let sigma = match sigma {
            Sigma::Known(sigma) => sigma * half,
            Sigma::Unknown => theta[order - 1],
        };
        let unit = clip * most_squares.sqrt();
        let weight = sigma * sigma / (half * unit);
        let weights: Vec<f64> = (0..order).map(|j| if j < coefficients { weight } else { 0.0 }).collect();
        let rows = units.coding.of_gradient(&Matrix::diagonal(&weights));
        let plain = |x: &f64| if x.abs() < LEAST_MAGNITUDE { 0.0 } else { *x };
        let mut frame: Vec<f64> = rows.entries().iter().map(plain).collect();
        frame.resize(Frame::length(order), 0.0);
        let query = Framed { theta: theta.clone(), frame }.ask(target, budget, share)?;
        let noise = query.noise;
        Ok((query, Self { theta, at: at[..coefficients].to_vec(), unit, excess, noise }))
    }

    /// Builds the stage from the totals over the parties.
    pub(super) fn stage(&self, totals: &[i128], parties: f64) -> ResidualStage {
        let order = self.at.len();
        let sd = self.unit * parties.sqrt() * self.noise.units() as f64 / GRADIENT_SCALE;
        ResidualStage {
            at: self.at.clone(),
            score: totals[..order].iter().map(|total| self.unit * (*total as f64 / GRADIENT_SCALE)).collect(),
            score_noise: Matrix::identity(order).scaled(sd * sd),
            excess: self.excess,
        }
    }
}

impl PendingTail {
    /// Asks for the mean of the squares, clipped near `clip`, of the residuals at a point; both are in the moments' units.
    ///
    /// # Errors
    /// The query has no price, or the budget is too small.
    pub(super) fn ask(
        (target, units): (&Target, &MomentsUnits),
        (budget, share): (&mut Allotment, f64),
        mean: &[f64],
        clip: f64,
    ) -> Result<(Query, Self), SamplerError> {
        let at: Vec<f64> = mean[..units.coefficients].iter().copied().chain([libm::log(clip)]).collect();
        let theta = target.space.theta_inside(&target.spec, &units.plain(&at));
        let order = theta.len();
        let clip = theta[order - 1] / units.outcome.1;
        let mut frame = vec![0.0; Frame::length(order)];
        frame[order * order - 1] = 2.0;
        frame[order * order + order - 1] = 1.0;
        let query = Framed { theta: theta.clone(), frame }.ask(target, budget, share)?;
        let noise = query.noise;
        Ok((query, Self { theta, clip, noise }))
    }

    /// Builds the number from the totals over the parties, from the public number of records, each of which counts.
    pub(super) fn tail(&self, totals: &[i128], parties: f64, records: f64) -> Tail {
        let released = totals.last().map_or(f64::NAN, |total| *total as f64 / GRADIENT_SCALE);
        let sd = parties.sqrt() * self.noise.units() as f64 / GRADIENT_SCALE;
        let half = 0.5 * self.clip * self.clip;
        Tail { clip: self.clip, mean: half * (released / records + 1.0), sd: half * sd / records }
    }
}
