//! What a run that infers from its releases says beside its draws.

use super::adequacy::{Adequacy, Figure};
use crate::sampler::matrix::Matrix;

/// The posterior given what was released, up to the prior: a density to draw from and where to begin.
pub(crate) struct Answer<'a> {
    /// A Gaussian fit's mean, in coordinates.
    pub(crate) mean: Vec<f64>,
    /// Its covariance.
    pub(crate) covariance: Matrix,
    /// The log likelihood of what was released, as a function of the coordinates.
    pub(crate) log_likelihood: Box<dyn Fn(&[f64]) -> f64 + 'a>,
}

/// One stage of a run: what was asked and what it taught.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// theta that the parties were asked about; empty where no point was.
    pub theta: Vec<f64>,
    /// The share of the job's budget that the stage took, of mu².
    pub share: f64,
    /// The posterior mean after it, on the scale of the priors.
    pub mean: Vec<f64>,
    /// The posterior sds after it, of the coordinates walked in.
    pub sd: Vec<f64>,
    /// Whether its release is what the draws are given.
    pub last: bool,
}

/// A figure of an adequacy check, and the most that it may be.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Its name in results.
    pub name: &'static str,
    /// What it came to.
    pub value: f64,
    /// The most that it may be.
    pub limit: f64,
}

/// What a run says beside its draws: how much of each parameter's variance is the noise's, and whether its release
/// suffices for an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Inference {
    /// What was asked, in order.
    pub stages: Vec<Stage>,
    /// Per coordinate, the share of its variance that is there because of the noise, in [0, 1]; `None` where what was
    /// released does not tell.
    pub noise_share: Vec<Option<f64>>,
    /// Per coordinate, what the posterior sd would be without noise, as far as the release tells.
    pub sd_data: Vec<f64>,
    /// The adequacy checks.
    pub checks: Vec<Check>,
    /// Why the answer is not adequate, in words; empty where it is.
    pub reasons: Vec<String>,
}

impl Inference {
    /// From the variances with and without noise; `definite` says whether the second are known.
    pub(crate) fn new(stages: Vec<Stage>, with: &[f64], without: &[f64], definite: bool) -> Self {
        let share = |(with, without): (&f64, &f64)| definite.then(|| (1.0 - without / with).clamp(0.0, 1.0));
        Self {
            stages,
            noise_share: with.iter().zip(without).map(share).collect(),
            sd_data: without.iter().map(|variance| variance.max(0.0).sqrt()).collect(),
            checks: Vec::new(),
            reasons: Vec::new(),
        }
    }

    /// With the checks of score stages.
    pub(crate) fn of_score_stages(mut self, adequacy: &Adequacy) -> Self {
        let check = |name, figure: Figure| Check { name, value: figure.value, limit: figure.limit };
        self.checks = vec![
            check("cubic", adequacy.cubic),
            check("rho_h", adequacy.rho),
            check("prior_share", adequacy.prior_share),
        ];
        self.reasons = adequacy.reasons();
        self
    }

    /// With a check of another kind.
    pub(crate) fn with_check(mut self, name: &'static str, value: f64, limit: f64, reason: Option<String>) -> Self {
        self.checks.push(Check { name, value, limit });
        self.reasons.extend(reason);
        self
    }

    /// Whether the answer is adequate.
    #[must_use]
    pub fn is_adequate(&self) -> bool {
        self.reasons.is_empty()
    }
}
