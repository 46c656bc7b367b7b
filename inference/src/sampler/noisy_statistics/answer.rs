//! The report of a run that infers from its releases, beside its draws.

use super::adequacy::{Figure, ScoreChecks};
use crate::sampler::matrix::Matrix;
use conclave_common::job::JobSpec;
use conclave_common::parameter::Constraint;

/// Largest ratio of posterior to prior variance where the releases determine the likelihood without an approximation.
const PRIOR_LIMIT: f64 = 0.25;

/// Largest share of a linear regression's residuals beyond two and a half of their sds, or beyond a multiple of that. A normal law has
/// 1.2 %, a t law with three degrees of freedom 2 %.
const CLIPPED_LIMIT: f64 = 0.05;

/// Largest ratio of a parameter's posterior sd to that without noise. Wider intervals are honest and say nothing of the records, and
/// the least noise in the information misstates them.
pub(crate) const WIDER_LIMIT: f64 = 10.0;
/// Largest ratio of the width of the draws to that of the Gaussian fit.
const SPREAD_LIMIT: f64 = 4.0;
/// Largest reported ratio.
const MOST_WIDER: f64 = 1e6;

/// The start of the reason for which a release is too weak beside the prior.
pub(crate) const ADDS_LITTLE: &str = "the release adds little to the prior";

/// The posterior given the releases, up to the prior: a density to draw from and a starting point.
pub(crate) struct Answer<'a> {
    /// Mean of a Gaussian fit, in coordinates.
    pub(crate) mean: Vec<f64>,
    /// Covariance of that fit.
    pub(crate) covariance: Matrix,
    /// Log likelihood of the releases, as a function of the coordinates.
    pub(crate) log_likelihood: LogDensity<'a>,
}

/// A log density in the walk's coordinates.
pub(crate) type LogDensity<'a> = Box<dyn Fn(&[f64]) -> f64 + 'a>;

/// One stage of a run: its query and the posterior after it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Stage {
    /// The point theta of the query; empty for a query without a point.
    pub theta: Vec<f64>,
    /// Share of the job's budget that the stage cost, of mu².
    pub share: f64,
    /// Posterior mean after the stage, on the scale of the priors.
    pub mean: Vec<f64>,
    /// Posterior sds after the stage, of the walk's coordinates.
    pub sd: Vec<f64>,
    /// Set if the draws are conditioned on this stage's release.
    pub last: bool,
}

impl Stage {
    /// Returns, per parameter of a job, whether a stage's sd is that of the parameter's logarithm. Scores and moments are in the
    /// walk's coordinates; a family's statistic is in the parameters themselves.
    #[must_use]
    pub fn sds_of_logarithms(spec: &JobSpec) -> Vec<bool> {
        let in_coordinates = spec.build_model().scores().is_some();
        spec.model.constraints().into_iter().map(|constraint| in_coordinates && constraint == Constraint::Positive).collect()
    }
}

/// A figure of an adequacy check, and its limit.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Check {
    /// Its name in results.
    #[serde(skip)]
    pub name: &'static str,
    /// The figure.
    pub value: f64,
    /// Largest value that passes the check.
    pub limit: f64,
}

/// The report of a run beside its draws: the share of each parameter's variance that is due to noise, and whether the release is
/// an adequate basis for the posterior.
#[derive(Debug, Clone, PartialEq)]
pub struct Inference {
    /// Stages, in order.
    pub stages: Vec<Stage>,
    /// Per parameter, the share of its variance that is due to the noise, in [0, 1]; `None` if the releases do not determine it.
    pub noise_share: Vec<Option<f64>>,
    /// The adequacy checks.
    pub checks: Vec<Check>,
    /// Reasons why the answer is not adequate; empty if it is.
    pub reasons: Vec<String>,
    /// Warnings about an answer that is adequate all the same.
    pub warnings: Vec<String>,
    /// The weights of the records, if the answer is that of a weighted fit.
    pub weighted: Option<Weighted>,
}

/// The weights of a weighted fit.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Weighted {
    /// Squared length, in mean ones, from which on a record's predictors lower its weight.
    pub radius: f64,
    /// Residual, in sds, beyond which it counts as this; absent for chains, which limit no residual.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
    /// Share of the records with a weight below 1.
    pub share_cut: f64,
    /// Mean weight.
    pub mean_weight: f64,
    /// Posterior sds by which an unweighted answer typically differs where the model does not hold.
    pub shift: f64,
    /// Posterior sds by which the limit on a count's residuals moves the answer, by the numbers of records in the tails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip_bias: Option<f64>,
    /// Predicted noise of an unweighted answer at this budget, or Monte Carlo error of unweighted chains, in posterior sds.
    pub plain_noise: f64,
    /// The published T of the last score, by rows: with `r = |T x| sqrt(I)` a record has the weight `min(1, 1/r, trace/r²)`. Its columns
    /// are the coefficients', of predictors scaled so that their declared bounds are -1 and 1. Empty for chains, whose queries state it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub frame: Vec<Vec<f64>>,
    /// The point at which `I`, a record's information about its linear predictor, is taken: the coefficients on the model's scale, then
    /// sigma of a linear regression.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<f64>,
    /// R, the limit of a weight times its squared length.
    pub trace: f64,
    /// True for a binary outcome, whose clip is a weight by the predictors too.
    #[serde(skip)]
    pub binary: bool,
}

impl Weighted {
    /// States what the answer is an answer to.
    pub(crate) fn words(&self) -> String {
        let Some(clip) = self.clip else { return self.words_of_chains() };
        let beyond = match self.binary {
            true => {
                let rare = 100.0 / (1.0 + clip * clip);
                format!("so do records that are predicted an outcome with a probability below {rare:.0} %")
            }
            false => format!("residuals beyond {clip} sds count as {clip}"),
        };
        format!(
            "weighted answer: {:.0} % of the records, with unusual predictors, count less (mean weight {:.2}), and {beyond}. The interval is for this weighted fit. If the model holds, both fits estimate the same coefficients. If not, a plain \
             fit may lie outside: typically by about {:.1} sds, more if it hangs on a few records, which no private analysis can show. For the \
             plain fit: weights = \"never\", about {:.1} sds of noise, or more budget",
            100.0 * self.share_cut,
            self.mean_weight,
            self.shift,
            self.plain_noise
        )
    }

    /// States what the draws of weighted chains are draws from.
    fn words_of_chains(&self) -> String {
        format!(
            "weighted posterior: about {:.0} % of the records, with unusual predictors, count less (mean weight {:.2}). The draws follow the \
             posterior in which the likelihood of a record has its weight as a power, for the frame that the search released. If the model \
             holds, both posteriors are about the same coefficients. If not, the plain one may lie outside: typically by about {:.1} sds, more \
             if it hangs on a few records, which no private analysis can show. For the plain posterior: weights = \"never\", with a Monte Carlo \
             error of about {:.1} sds, or more budget",
            100.0 * self.share_cut,
            self.mean_weight,
            self.shift,
            self.plain_noise
        )
    }
}

impl Inference {
    /// Largest noise of a weighted fit's information relative to the information: 2 admits intervals that are too narrow.
    const WEIGHTED_RHO: f64 = 1.0;
    /// The same for a binary outcome: among answers that an information with large noise calls adequate are those for which it is far
    /// too large.
    const WEIGHTED_RHO_OF_BINARY: f64 = 0.75;
    /// Largest ratio of an interval of a weighted fit to that without noise.
    pub(crate) const MOST_WEIGHTED_WIDTH: f64 = 4.0;
    /// Largest move of a weighted answer by the limit on a count's residuals, in posterior sds.
    pub(crate) const MOST_CLIP_BIAS: f64 = 1.0;

    /// Returns the largest noise of a weighted fit's information relative to the information.
    pub(crate) fn most_weighted_rho(binary: bool) -> f64 {
        if binary { Self::WEIGHTED_RHO_OF_BINARY } else { Self::WEIGHTED_RHO }
    }

    /// Builds the report from each parameter's variance with and without noise; `definite` says whether the latter is known.
    pub(crate) fn new(stages: Vec<Stage>, with: &[f64], without: &[f64], definite: bool) -> Self {
        let share = |(with, without): (&f64, &f64)| definite.then(|| (1.0 - without / with).clamp(0.0, 1.0));
        let noise_share = with.iter().zip(without).map(share).collect();
        Self { stages, noise_share, checks: Vec::new(), reasons: Vec::new(), warnings: Vec::new(), weighted: None }
    }

    /// Adds the checks of score stages.
    pub(crate) fn with_score_checks(mut self, adequacy: &ScoreChecks) -> Self {
        let check = |name, figure: Figure| Check { name, value: figure.value, limit: figure.limit };
        self.checks =
            vec![check("cubic", adequacy.cubic), check("rho_h", adequacy.rho), check("prior_share", adequacy.prior_share)];
        self.checks.extend(adequacy.own.map(|figure| check("own_information", figure)));
        self.checks.extend(adequacy.leverage.map(|figure| check("leverage", figure)));
        self.checks.extend(adequacy.own_width.map(|figure| check("own_sd", figure)));
        self.reasons = adequacy.reasons();
        self
    }

    /// Adds the check that the posterior's variances are smaller than the prior's.
    pub(crate) fn with_prior_check(mut self, share: f64) -> Self {
        let figure = Figure { value: share, limit: PRIOR_LIMIT };
        self.checks.push(Check { name: "prior_share", value: share, limit: PRIOR_LIMIT });
        if !figure.holds() {
            self.reasons.push(format!(
                "{ADDS_LITTLE}: a posterior variance is {share:.2} times the prior's, above the limit of \
                 {PRIOR_LIMIT}"
            ));
        }
        self
    }

    /// Adds the checks of a weighted fit: the noise of its information, the prior's share of its variances, the width of its
    /// intervals, the sd of the logarithm of the family's own parameter, if it has one, and what an information that changes with the
    /// coefficients leaves out.
    pub(crate) fn with_weighted_checks(mut self, rho: f64, prior_share: f64, own_sd: Option<f64>, cubic: Option<f64>) -> Self {
        /// Largest ratio of a posterior variance to the prior's.
        const PRIOR: f64 = 0.1;
        /// Largest remainder of the quadratic of a binary outcome.
        const CUBIC: f64 = 1.0;
        /// Largest sd of the logarithm of the own parameter.
        const OWN_SD: f64 = 0.25;
        const MOST: f64 = 1e6;
        // The own parameter has a limit of its own.
        let coefficients = self.noise_share.len() - usize::from(own_sd.is_some());
        let known: Option<f64> = self.noise_share[..coefficients].iter().copied().reduce(|a, b| Some(a?.max(b?))).flatten();
        let wider = known.map_or(MOST, |share| (1.0 - share).sqrt().recip().min(MOST));
        let rho = if (0.0..=MOST).contains(&rho) { rho } else { MOST };
        let most_rho = Self::most_weighted_rho(cubic.is_some());
        let of_own = match cubic {
            Some(_) => "the dispersion is known too poorly: the sd of its logarithm is",
            None => "the residuals' sd is known too poorly: the sd of its logarithm is",
        };
        let own = own_sd.map(|sd| ("own_sd", sd, OWN_SD, of_own));
        let checks = [
            (
                "rho_h",
                rho,
                most_rho,
                "the noise hides the least known direction of the parameters: the ratio of its sd to the information is",
            ),
            (
                "prior_share",
                prior_share,
                PRIOR,
                // Words of [`ADDS_LITTLE`].
                "the release adds little to the prior: the ratio of a posterior variance to the prior's is",
            ),
            (
                "wider",
                wider,
                Self::MOST_WEIGHTED_WIDTH,
                "the noise makes the intervals too wide: the ratio of a width to that of the records alone is",
            ),
        ];
        let cubic = cubic.map(|value| {
            ("cubic", value, CUBIC, "the last query was too far from the answer: the remainder of the quadratic there is")
        });
        for (name, value, limit, text) in checks.into_iter().chain(own).chain(cubic) {
            self.checks.push(Check { name, value, limit });
            if value.is_nan() || value > limit {
                self.reasons.push(format!("{text} {value:.2}, above the limit of {limit}"));
            }
        }
        self
    }

    /// Adds the check that the last step of the logarithm of a dispersion is short: a weighted fit's information is that at the
    /// dispersion before it.
    pub(crate) fn with_dispersion_check(mut self, value: f64) -> Self {
        const STEP: f64 = 0.35;
        self.checks.push(Check { name: "dispersion_step", value, limit: STEP });
        if value.is_nan() || value > STEP {
            self.reasons.push(format!(
                "the last query was too far from the dispersion: the step of its logarithm is {value:.2}, above the limit of {STEP}"
            ));
        }
        self
    }

    /// Adds the check that the tails of a count are not much heavier than the model's: by how many posterior sds the clip moves the answer.
    pub(crate) fn with_tails_check(mut self, value: f64, clip: f64) -> Self {
        let limit = Self::MOST_CLIP_BIAS;
        self.checks.push(Check { name: "clip_bias", value, limit });
        if value.is_nan() || value > limit {
            self.reasons.push(format!(
                "the counts' tails are heavier than the model's: the limit of {clip} sds on a residual moves the answer by about {value:.1} \
                 posterior sds, above the limit of {limit}"
            ));
        }
        self
    }

    /// Adds the check that the intervals have the order of magnitude of those without noise, where these are known.
    pub(crate) fn with_width_check(mut self) -> Self {
        let known: Option<f64> = self.noise_share.iter().copied().reduce(|a, b| Some(a?.max(b?))).flatten();
        let Some(share) = known else { return self };
        let value = (1.0 - share).sqrt().recip().min(MOST_WIDER);
        self.checks.push(Check { name: "wider", value, limit: WIDER_LIMIT });
        if value > WIDER_LIMIT {
            self.reasons.push(format!(
                "the noise makes an interval {value:.0} times as wide as the records alone, above the limit of {WIDER_LIMIT}"
            ));
        }
        self
    }

    /// Adds the check of score stages that the draws have the width of the Gaussian fit, by which the other checks judge.
    pub(crate) fn with_spread(mut self, value: f64) -> Self {
        if self.checks.iter().all(|check| check.name != "rho_h") {
            return self;
        }
        let value = if value.is_finite() { value } else { MOST_WIDER };
        self.checks.push(Check { name: "spread", value, limit: SPREAD_LIMIT });
        if value > SPREAD_LIMIT {
            self.reasons.push(format!(
                "the noise of the information gives the posterior tails: its interval is {value:.1} times that of the Gaussian by which it is \
                 judged, above the limit of {SPREAD_LIMIT}"
            ));
        }
        self
    }

    /// Takes the check against the prior from the same releases under another prior, if the release adds more to that one. A
    /// release that determined a vague prior's posterior is no worse beside an informative one.
    pub(crate) fn with_prior_check_of(mut self, other: &Self) -> Self {
        let check = |of: &Self| of.checks.iter().position(|check| check.name == "prior_share");
        if let (Some(own), Some(others)) = (check(&self), check(other))
            && other.checks[others].value < self.checks[own].value
        {
            self.checks[own] = other.checks[others];
            self.reasons.retain(|reason| !reason.starts_with(ADDS_LITTLE));
            self.reasons.extend(other.reasons.iter().filter(|reason| reason.starts_with(ADDS_LITTLE)).cloned());
        }
        self
    }

    /// Adds the check that the noise of second moments leaves the predictors' least known direction clear, or that of counts by
    /// combination every count that matters.
    pub(crate) fn with_moments_check(mut self, (least, limit): (f64, f64), by_cells: bool) -> Self {
        /// Largest reported ratio, where the least eigenvalue is released as 0 or less.
        const MOST: f64 = 1e6;
        let ratio = limit / least;
        let value = if (0.0..=MOST).contains(&ratio) { ratio } else { MOST };
        self.checks.push(Check { name: "moments_noise", value, limit: 1.0 });
        if value > 1.0 && by_cells {
            self.reasons.push(format!(
                "statistics_too_noisy: the noise of the counts is {value:.1} times the most at which they determine the posterior's shape"
            ));
        } else if value > 1.0 {
            self.reasons.push(format!(
                "statistics_too_noisy: the least eigenvalue of the predictors' moments is {least:.3e}, below {limit:.3e}, three sds of its noise, so the \
                 releases do not determine the posterior's shape"
            ));
        }
        self
    }

    /// Adds the share of the residuals that lie beyond the lower of two clips, and its check.
    pub(crate) fn with_clipped_share(mut self, share: f64) -> Self {
        self.checks.push(Check { name: "clipped_share", value: share, limit: CLIPPED_LIMIT });
        if share > CLIPPED_LIMIT {
            self.reasons.push(format!(
                "{:.1} % of the residuals lie far outside a normal law, above the limit of {} %: the sum of squares is that of a few records, \
                 and the limit on a record's contribution withholds it",
                100.0 * share,
                100.0 * CLIPPED_LIMIT
            ));
        }
        self
    }

    /// Records that the run ended before its last stage: its answer is based on the stages released so far.
    pub(crate) fn end_early(&mut self) {
        if let Some(last) = self.stages.last_mut() {
            last.last = true;
        }
        self.warnings.push(
            "the run ended before its last stage: the posterior is based on the stages released so far, and is wider than with the whole \
             budget"
                .to_owned(),
        );
    }

    /// Returns true if the answer is adequate.
    #[must_use]
    pub fn is_adequate(&self) -> bool {
        self.reasons.is_empty()
    }
}
