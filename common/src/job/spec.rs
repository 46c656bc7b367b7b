//! A job specification holds what an analyst asks of the data owners, every `"auto"` resolved.

use std::collections::BTreeMap;

use super::aggregation::Aggregation;
use super::algorithms::Algorithm;
use super::error::JobError;
use super::privacy_spec::{PrivacySpec, ReleaseSpec};
use super::sampler_spec::{HmcTest, Locate, SamplerSpec};
use crate::model::{self, Model, OutcomeTable};
use crate::parameter::{Interval, Prior, Transform};
use crate::schema::{ColumnSpec, ModelSpec};
use conclave_privacy::accounting::{Adjacency, Honest, MOST_RELATIVE_SENSITIVITY, PrivacyUnit, SamplingProbability};
use conclave_privacy::mechanism::{NoiseScale, QueryKind};

/// A valid job; every `"auto"` that is a public constant is resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSpec {
    /// The analyst's name for the job.
    pub name: String,
    /// Id of the job whose chains this one continues.
    pub extends: Option<String>,
    /// Which algorithm runs.
    pub algorithm: Algorithm,
    /// Why it is that one, where the job left the choice to `auto`.
    pub chosen: Option<&'static str>,
    /// Names of the parties, at least one, each once.
    pub parties: Vec<String>,
    /// The statistical model.
    pub model: ModelSpec,
    /// The power on its likelihood, in (0, 1]; 1 leaves it as it is.
    pub power: f64,
    /// Whether parties may hold rows that can't be used: they count, and add exactly nothing. See [`JobSpec::spares_inert_rows`].
    pub incomplete_rows: bool,
    /// Public bounds by column name.
    pub columns: BTreeMap<String, ColumnSpec>,
    /// One prior per parameter, in the model's order.
    pub priors: Vec<Prior>,
    /// The parameter box, part of the prior; one interval per parameter.
    pub support: Vec<Interval>,
    /// How the chains run.
    pub sampler: SamplerSpec,
    /// What the job may spend at each party, and how it is noised.
    pub privacy: PrivacySpec,
    /// How the parties' answers are opened.
    pub aggregation: Aggregation,
    /// How a job that releases once spreads its budget; the defaults for any other.
    pub release: ReleaseSpec,
    /// What the analyst guesses of the data. Only the planner reads it.
    pub plan: Option<PlanSpec>,
}

/// `[plan]`: guesses of what can't be known before a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlanSpec {
    /// Records per party, in the job's order.
    pub records: Option<Vec<u64>>,
    /// The posterior, per parameter in the model's order, on the scale that priors are declared on.
    pub posterior: Option<Vec<Moments>>,
    /// How its parameters go together, `(one, other, correlation)` by their places in the model's order; pairs that are not named do not.
    /// `None` where the analyst says nothing of it.
    pub correlations: Option<Vec<(usize, usize, f64)>>,
}

/// A guess of one parameter's posterior.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// Mean.
    pub mean: f64,
    /// Standard deviation, above 0.
    pub sd: f64,
}

impl JobSpec {
    /// Checks that the job asks for nothing that only jobs of before may have.
    ///
    /// # Errors
    /// Turned moves: what few draws of a warm-up say of correlations sent chains away from the posterior, at the price of long moves. A job
    /// that was submitted with them is replayed with them. Samples whose noise hides too little of a record: no owner opens their blocks.
    pub fn check_new(&self) -> Result<(), JobError> {
        // A person is no less than a row.
        let relative = self.relative_sensitivity_of_ratios(PrivacyUnit::row(Adjacency::AddRemove));
        if let Some(relative) = relative.filter(|relative| *relative > MOST_RELATIVE_SENSITIVITY) {
            let message = format!(
                "moves a log ratio over a sample by {relative:.3} times its noise, which is {:.4}, and a sample hides next to nothing beyond \
                 {MOST_RELATIVE_SENSITIVITY}: give clip = {:.4} or less, or raise sampler.batch and leave noise_sd at \"auto\"",
                self.privacy.noise.sd(),
                (MOST_RELATIVE_SENSITIVITY * self.privacy.noise.sd() * 1e4).floor() * 1e-4
            );
            return Err(JobError::new("privacy.clip", message));
        }
        if !self.sampler.rotate {
            return Ok(());
        }
        let message = "moves are not turned any more, as chains that learn how from few draws can end far from the posterior: leave it out, and \
                       give correlated predictors more draws or an algorithm that releases once (algorithm = \"auto\")";
        Err(JobError::new("sampler.proposal.rotate", message))
    }

    /// Whether the number of chains follows from what the parties' budgets hold, once that is public: a job whose chains gradients of all
    /// records drive, that leaves it open. Then `chains` is the most there can be; [`settled`](conclave_inference::sampler::settled) has the number.
    #[must_use]
    pub fn plans_chains(&self) -> bool {
        let SamplerSpec { chains_named, starts, until, batch, .. } = &self.sampler;
        let open = !chains_named && starts.is_none() && until.is_none();
        // Blocks are cut from the releases of all chains.
        open && self.algorithm.follows_gradients() && *batch == SamplingProbability::ONE
    }

    /// How many parties' noise protects each party in what is opened.
    #[must_use]
    pub fn honest(&self) -> Honest {
        self.aggregation.honest(self.parties.len())
    }

    /// The noise of one party's release, and how many parties' noise of that scale protects it: what a price is made of.
    #[must_use]
    pub fn protected(&self, noise: NoiseScale) -> (NoiseScale, Honest) {
        (noise, self.honest())
    }

    /// Number of parameters.
    pub fn dimension(&self) -> usize {
        self.priors.len()
    }

    /// The statistical model: its kernels and public bounds.
    #[must_use]
    pub fn build_model(&self) -> Box<dyn Model> {
        model::build(&self.model, &self.columns, self.power, (self.incomplete_rows, self.privacy.clip.is_some()))
    }

    /// Whether a row that can't be used adds exactly nothing to whatever the job asks for: it says that rows may be incomplete, or a
    /// column's levels leave room for a value that is none of them.
    #[must_use]
    pub fn spares_inert_rows(&self) -> bool {
        let has_levels = |name: &str| matches!(self.columns.get(name), Some(ColumnSpec::Levels(_)));
        self.incomplete_rows
            || match &self.model {
                // A sum of levels alone is read as that of so many usable rows.
                ModelSpec::Multinomial { .. } => self.algorithm != Algorithm::NoisyStatistics,
                ModelSpec::NaiveBayes { .. } => true,
                ModelSpec::Regression(regression) => regression.design.columns().any(has_levels),
                _ => false,
            }
    }

    /// Whether the model's sufficient statistic itself tells how many rows could be used, where rows may be incomplete.
    pub(crate) fn statistic_spares_inert_rows(&self) -> bool {
        matches!(self.model, ModelSpec::Multinomial { .. } | ModelSpec::NaiveBayes { .. } | ModelSpec::Regression(_))
    }

    /// The transforms between the parameters and the unconstrained values that the chains walk in.
    pub fn transform(&self) -> Transform {
        Transform::new(&self.model.constraints())
    }

    /// Whether it is a chain of ratios, or a choice, that finds the mode by gradients.
    #[must_use]
    pub fn locates_by_gradients(&self) -> bool {
        self.algorithm.takes("locate") && self.sampler.locate == Locate::Gradients
    }

    /// Whether its chains are those of DP-HMC: gradients without friction, and a test on the whole log ratio.
    #[must_use]
    pub fn runs_dp_hmc(&self) -> bool {
        self.algorithm == Algorithm::Hmc && matches!(self.sampler.hmc.test, HmcTest::Ratio { .. })
    }

    /// Whether chains without a test end in penalty sweeps, which the draws are of.
    #[must_use]
    pub fn is_polished(&self) -> bool {
        self.algorithm.is_unadjusted() && self.sampler.stochastic.polish > 0
    }

    /// Draws of each chain that the job asks for: those of the sweeps, where sweeps end its chains.
    #[must_use]
    pub fn draws_asked(&self) -> u64 {
        let sweeps = self.sampler.stochastic.polish;
        if self.is_polished() { sweeps.saturating_mul(self.dimension() as u64) } else { self.sampler.draws }
    }

    /// The kinds of release that the job asks its parties for, by the words of [`QueryKind::release`].
    #[must_use]
    pub fn releases(&self) -> Vec<&'static str> {
        (self.algorithm.declaration().releases)(self)
    }

    /// Whether the job asks parties for queries of this kind.
    #[must_use]
    pub fn asks(&self, kind: QueryKind) -> bool {
        let of_a_stage = matches!(kind, QueryKind::Gradient { .. } | QueryKind::Curvature { .. });
        let of_a_step = match kind {
            QueryKind::Ratio if self.runs_dp_hmc() || self.is_polished() => return true,
            QueryKind::Remainder { .. } => self.sampler.hmc.test == HmcTest::Remainder,
            _ => true,
        };
        let sampled = !(kind.is_sampled() || kind == QueryKind::SecondMoment) || self.privacy.blocks.is_some();
        sampled && of_a_step && self.algorithm.asks(kind) || self.locates_by_gradients() && of_a_stage
    }

    /// The table of its model's outcome and predictors, where a job that releases once asks for it, and for nothing else. Stages are of
    /// scores: a job that says something of them has them.
    #[must_use]
    pub fn outcome_table(&self, model: &dyn Model) -> Option<OutcomeTable> {
        let stages = self.release.stages.is_some() || self.release.curvature_share.is_some();
        let asked = self.algorithm == Algorithm::NoisyStatistics && !stages;
        asked.then(|| model.outcome_table()).flatten()
    }

    /// The most rounds in which a job that releases once asks its parties; `None` for jobs that ask round after round.
    #[must_use]
    pub fn most_rounds(&self) -> Option<u64> {
        (self.algorithm.declaration().most_rounds)(self)
    }

    /// Whether `theta` lies inside the parameter box.
    pub fn in_support(&self, theta: &[f64]) -> bool {
        theta.len() == self.support.len() && theta.iter().zip(&self.support).all(|(x, s)| s.contains(*x))
    }

    /// Whether `theta` lies inside the parameter box made wider by half its width at either end, on the unconstrained scale: where the
    /// middle of a step may lie, of which a gradient is asked.
    #[must_use]
    pub fn in_wider_support(&self, theta: &[f64]) -> bool {
        let transform = self.transform();
        let boxes = transform.unconstrained_box(&self.support);
        let inside = |(u, box_): (&f64, &Interval)| {
            let more = 0.5 * (box_.max - box_.min);
            u.is_finite() && *u >= box_.min - more && *u <= box_.max + more
        };
        theta.len() == self.support.len()
            && theta.iter().all(|x| x.is_finite())
            && transform.unconstrain(theta).iter().zip(&boxes).all(inside)
    }

    /// Log prior density up to a constant.
    pub fn log_prior(&self, theta: &[f64]) -> f64 {
        theta.iter().zip(&self.priors).map(|(x, p)| p.log_density(*x)).sum()
    }
}
