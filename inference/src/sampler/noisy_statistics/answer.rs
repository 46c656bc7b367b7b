//! What a run that infers from its releases says beside its draws.

use super::adequacy::{Adequacy, Figure};
use crate::sampler::matrix::Matrix;
use conclave_common::job::JobSpec;
use conclave_common::parameter::Constraint;

/// Most that a posterior variance may be of the prior's where what was released determines the likelihood without an approximation.
const PRIOR_LIMIT: f64 = 0.25;

/// The posterior given what was released, up to the prior: a density to draw from and where to begin.
pub(crate) struct Answer<'a> {
    /// A Gaussian fit's mean, in coordinates.
    pub(crate) mean: Vec<f64>,
    /// Its covariance.
    pub(crate) covariance: Matrix,
    /// The log likelihood of what was released, as a function of the coordinates.
    pub(crate) log_likelihood: LogDensity<'a>,
}

/// A log density in the coordinates walked in.
pub(crate) type LogDensity<'a> = Box<dyn Fn(&[f64]) -> f64 + 'a>;

/// One stage of a run: what was asked and what it taught.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
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

impl Stage {
    /// Per parameter of a job, whether a stage's sd is that of the parameter's logarithm: scores and moments are of the coordinates
    /// walked in, a family's statistic is of the parameters themselves.
    #[must_use]
    pub fn sds_of_logarithms(spec: &JobSpec) -> Vec<bool> {
        let in_coordinates = spec.build_model().scores().is_some();
        spec.model.constraints().into_iter().map(|constraint| in_coordinates && constraint == Constraint::Positive).collect()
    }
}

/// A figure of an adequacy check, and the most that it may be.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Check {
    /// Its name in results.
    #[serde(skip)]
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
    /// Per parameter, the share of its variance that is there because of the noise, in [0, 1]; `None` where what was
    /// released does not tell.
    pub noise_share: Vec<Option<f64>>,
    /// The adequacy checks.
    pub checks: Vec<Check>,
    /// Why the answer is not adequate, in words; empty where it is.
    pub reasons: Vec<String>,
    /// What a reader should know of an answer that is adequate all the same.
    pub warnings: Vec<String>,
}

impl Inference {
    /// From each parameter's variance with and without noise; `definite` says whether the second are known.
    pub(crate) fn new(stages: Vec<Stage>, with: &[f64], without: &[f64], definite: bool) -> Self {
        let share = |(with, without): (&f64, &f64)| definite.then(|| (1.0 - without / with).clamp(0.0, 1.0));
        let noise_share = with.iter().zip(without).map(share).collect();
        Self { stages, noise_share, checks: Vec::new(), reasons: Vec::new(), warnings: Vec::new() }
    }

    /// With the checks of score stages.
    pub(crate) fn of_score_stages(mut self, adequacy: &Adequacy) -> Self {
        let check = |name, figure: Figure| Check { name, value: figure.value, limit: figure.limit };
        self.checks =
            vec![check("cubic", adequacy.cubic), check("rho_h", adequacy.rho), check("prior_share", adequacy.prior_share)];
        self.reasons = adequacy.reasons();
        self
    }

    /// With the check that the posterior's variances are not the prior's.
    pub(crate) fn of_prior(mut self, share: f64) -> Self {
        let figure = Figure { value: share, limit: PRIOR_LIMIT };
        self.checks.push(Check { name: "prior_share", value: share, limit: PRIOR_LIMIT });
        if !figure.holds() {
            self.reasons.push(format!(
                "the release hardly says more than the prior: the share of a prior variance that is left is {share:.2}, and \
                 {PRIOR_LIMIT} is the most"
            ));
        }
        self
    }

    /// Notes that the run ended before its last stage: its answer is that of the stages there were.
    pub(crate) fn end_early(&mut self) {
        if let Some(last) = self.stages.last_mut() {
            last.last = true;
        }
        self.warnings.push(
            "the run ended before its last stage: the posterior is given the stages that were released, and wider than the whole budget \
             would have made it"
                .to_owned(),
        );
    }

    /// Whether the answer is adequate.
    #[must_use]
    pub fn is_adequate(&self) -> bool {
        self.reasons.is_empty()
    }
}
