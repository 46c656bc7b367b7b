//! The job specification: an analyst's request to the data owners, with every `"auto"` resolved.

use std::collections::BTreeMap;

use super::aggregation::Aggregation;
use super::algorithm::Algorithm;
use super::error::JobError;
use super::privacy_spec::{PrivacySpec, ReleaseSpec};
use super::sampler_spec::{HmcTest, Locate, SamplerSpec};
use super::sites::Sites;
use super::weights::Weights;
use crate::model::{self, BuildOptions, Model, OutcomeTable, TableLaw, TimesTable};
use crate::parameter::{Interval, Prior, Transform};
use crate::schema::{ColumnSpec, Design, ModelSpec};
use crate::settings::{positive, within};
use conclave_privacy::accounting::{Adjacency, Honest, MOST_RELATIVE_SENSITIVITY, PrivacyUnit, SamplingProbability};
use conclave_privacy::mechanism::{NoiseScale, QueryKind};

/// A valid job, in which every `"auto"` that is a public constant is resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSpec {
    /// The analyst's name for the job.
    pub name: String,
    /// Id of the job whose chains this one continues.
    pub extends: Option<String>,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The reason for the algorithm, if the job left the choice to `auto`.
    pub chosen: Option<&'static str>,
    /// Names of the parties, at least one, each once.
    pub parties: Vec<String>,
    /// The statistical model.
    pub model: ModelSpec,
    /// The power on its likelihood, in (0, 1]; 1 leaves it unchanged.
    pub power: f64,
    /// True if the job's priors were raised to the same power; `priors` holds the raised ones.
    pub power_prior: bool,
    /// Whether records with unusual predictors or residuals count less.
    pub weights: Weights,
    /// True if the exposure or offset of a count is declared to be fixed by design, so that it does not depend on the outcome.
    pub exposure_fixed: bool,
    /// True if parties may hold unusable rows, which count and contribute exactly zero. See [`JobSpec::spares_inert_rows`].
    pub incomplete_rows: bool,
    /// Public bounds by column name.
    pub columns: BTreeMap<String, ColumnSpec>,
    /// One prior per parameter, in the model's order.
    pub priors: Vec<Prior>,
    /// The parameter box, part of the prior; one interval per parameter.
    pub support: Vec<Interval>,
    /// The parameters that each party has of its own; `None` if all parties share every parameter.
    pub sites: Option<Sites>,
    /// The settings of the chains.
    pub sampler: SamplerSpec,
    /// The job's budget at each party, and its noise.
    pub privacy: PrivacySpec,
    /// The opening of the parties' answers.
    pub aggregation: Aggregation,
    /// The use of the budget by a job that releases once; the defaults for any other.
    pub release: ReleaseSpec,
    /// The analyst's guesses about the data. Only the planner reads them.
    pub plan: Option<PlanSpec>,
    /// The analyst's words on the study, for the owners who decide on the job. Nothing else depends on them.
    pub study: StudySpec,
}

crate::settings! {
    /// `[study]`: what the analyst states to the owners.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct StudySpec {
        /// The purpose for which the records are to be used.
        purpose: Option<String>,
        /// The address at which an owner reaches the analyst.
        contact: Option<String>,
    }
}

/// `[plan]`: guesses of facts that are unknown before a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlanSpec {
    /// Records per party, in the job's order.
    pub records: Option<Vec<u64>>,
    /// The posterior of each parameter in the model's order, on the scale of the priors.
    pub posterior: Option<Vec<Moments>>,
    /// The posterior correlations, `(one, other, correlation)` by indices in the model's order. Pairs that are not listed are
    /// uncorrelated. `None` if the analyst states nothing.
    pub correlations: Option<Vec<(usize, usize, f64)>>,
}

crate::settings! {
    /// A guess of one parameter's posterior.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Moments {
        /// Mean.
        mean: f64 => within(f64::MIN..=f64::MAX),
        /// Standard deviation.
        sd: f64 => positive,
    }
}

impl JobSpec {
    /// Checks that the job uses no setting that only earlier jobs may have.
    ///
    /// # Errors
    /// Rotated moves: axes estimated from few warm-up draws sent chains far from the posterior, at the price of long moves.
    /// Earlier jobs with rotation are still replayed. Samples whose noise protects a record too little: no owner opens their
    /// blocks. Messages that a party cannot take.
    pub fn check_new(&self) -> Result<(), JobError> {
        self.check_messages()?;
        // A person is at least one row.
        let relative = self.relative_sensitivity_of_ratios(PrivacyUnit::row(Adjacency::AddRemove));
        if let Some(relative) = relative.filter(|relative| *relative > MOST_RELATIVE_SENSITIVITY) {
            let message = format!(
                "sensitivity of a log ratio over a sample is {relative:.3} times its noise of {:.4}, above the limit of \
                 {MOST_RELATIVE_SENSITIVITY}: give clip = {:.4} or less, or raise sampler.batch and leave noise_sd at \"auto\"",
                self.privacy.noise.sd(),
                (MOST_RELATIVE_SENSITIVITY * self.privacy.noise.sd() * 1e4).floor() * 1e-4
            );
            return Err(JobError::new("privacy.clip", message));
        }
        if !self.sampler.rotate {
            return Ok(());
        }
        let message = "moves can no longer be rotated, since axes estimated from few draws can send chains far from the posterior: leave it out, and \
                       give correlated predictors more draws or an algorithm that releases once (algorithm = \"auto\")";
        Err(JobError::new("sampler.proposal.rotate", message))
    }

    /// Returns whether the number of chains is derived from the parties' budgets once these are public. This holds for a job
    /// whose chains are driven by gradients over all records and whose file leaves the number open. `chains` is then the maximum,
    /// and [`settled`](conclave_inference::sampler::settled) contains the number.
    #[must_use]
    pub fn plans_chains(&self) -> bool {
        let SamplerSpec { chains_named, starts, until, batch, .. } = &self.sampler;
        let open = !chains_named && starts.is_none() && until.is_none();
        // Blocks are divided from the releases of all chains.
        open && self.algorithm.follows_gradients() && *batch == SamplingProbability::ONE
    }

    /// Returns the number of parties whose noise protects each party in an opened value.
    #[must_use]
    pub fn honest(&self) -> Honest {
        self.aggregation.honest(self.parties.len())
    }

    /// Returns one party's noise scale and the number of honest parties, from which a price is computed.
    #[must_use]
    pub fn protected(&self, noise: NoiseScale) -> (NoiseScale, Honest) {
        (noise, self.honest())
    }

    /// Returns the number of parameters.
    pub fn dimension(&self) -> usize {
        self.priors.len()
    }

    /// Builds the statistical model, with its kernels and public bounds.
    #[must_use]
    pub fn build_model(&self) -> Box<dyn Model> {
        let options = BuildOptions {
            power: self.power,
            incomplete_rows: self.incomplete_rows,
            clipped: self.privacy.clip.is_some(),
            by_cells: self.release.table == Some(true),
            imputes_records: self.algorithm == Algorithm::Augmentation,
        };
        model::build(&self.model, &self.columns, options)
    }

    /// Returns whether an unusable row contributes exactly zero to every query of the job. The job must permit incomplete rows,
    /// or a column's levels must admit a value that is not a level.
    #[must_use]
    pub fn spares_inert_rows(&self) -> bool {
        let has_levels = |name: &str| matches!(self.columns.get(name), Some(ColumnSpec::Levels(_)));
        self.incomplete_rows
            || match &self.model {
                // The sum of levels alone is read as that of usable rows.
                ModelSpec::Multinomial { .. } => self.algorithm != Algorithm::NoisyStatistics,
                ModelSpec::NaiveBayes { .. } | ModelSpec::LifeTable(_) => true,
                ModelSpec::Regression(_) | ModelSpec::PiecewiseExponential(_) => {
                    self.model.design().into_iter().flat_map(Design::columns).any(has_levels)
                }
                _ => false,
            }
    }

    /// Returns whether the model's sufficient statistic includes the number of usable rows, if rows may be incomplete.
    pub(crate) fn statistic_spares_inert_rows(&self) -> bool {
        matches!(
            self.model,
            ModelSpec::Multinomial { .. } | ModelSpec::NaiveBayes { .. } | ModelSpec::LifeTable(_) | ModelSpec::Regression(_)
        )
    }

    /// Returns the transforms between the parameters and the chains' unconstrained values.
    pub fn transform(&self) -> Transform {
        Transform::new(&self.model.constraints())
    }

    /// Returns whether a chain of ratios, or a choice, finds the mode by gradients.
    #[must_use]
    pub fn locates_by_gradients(&self) -> bool {
        self.algorithm.takes("locate") && self.sampler.locate == Locate::Gradients
    }

    /// Returns whether the chains are those of DP-HMC: gradients without friction, and a test on the whole log ratio.
    #[must_use]
    pub fn runs_dp_hmc(&self) -> bool {
        self.algorithm == Algorithm::Hmc && matches!(self.sampler.hmc.test, HmcTest::Ratio { .. })
    }

    /// Returns whether chains without a test end in penalty sweeps, whose states are the draws.
    #[must_use]
    pub fn is_polished(&self) -> bool {
        self.algorithm.is_unadjusted() && self.sampler.stochastic.polish > 0
    }

    /// Returns the share of the budget (as mu²) for the search that gradient-driven chains begin with: a twentieth unless the job
    /// states it.
    #[must_use]
    pub fn gradient_search_share(&self) -> f64 {
        self.sampler.hmc.locate_share.or(self.sampler.stochastic.locate_share).unwrap_or(0.05)
    }

    /// Returns the largest share of the budget (as mu²) for the posterior sample at which the job's chains start; `None` if they
    /// start elsewhere.
    #[must_use]
    pub fn start_share(&self) -> Option<f64> {
        self.sampler.stochastic.start_share.filter(|_| self.algorithm.is_unadjusted())
    }

    /// Returns the number of draws per chain that the job requests: those of the sweeps, if the chains end in sweeps.
    #[must_use]
    pub fn draws_asked(&self) -> u64 {
        let sweeps = self.sampler.stochastic.polish;
        if self.is_polished() { sweeps.saturating_mul(self.dimension() as u64) } else { self.sampler.draws }
    }

    /// Returns the kinds of release that the job uses, by the words of [`QueryKind::release`].
    #[must_use]
    pub fn releases(&self) -> Vec<&'static str> {
        (self.algorithm.declaration().releases)(self)
    }

    /// Returns whether the job's chains may weight records by their predictors.
    #[must_use]
    pub fn weighs_chains(&self) -> bool {
        self.weights != Weights::Never && matches!(self.algorithm, Algorithm::Hmc | Algorithm::Penalty)
    }

    /// Returns whether the job uses queries of this kind.
    #[must_use]
    pub fn asks(&self, kind: QueryKind) -> bool {
        let of_a_stage = matches!(kind, QueryKind::Gradient { .. } | QueryKind::Curvature { .. });
        let of_a_step = match kind {
            QueryKind::Ratio if self.runs_dp_hmc() || self.is_polished() => return true,
            QueryKind::Remainder { .. } => self.sampler.hmc.test == HmcTest::Remainder,
            QueryKind::Choice { .. } => !self.algorithm.is_unadjusted() || self.start_share().is_some(),
            _ => true,
        };
        let sampled = !(kind.is_sampled() || kind == QueryKind::SecondMoment) || self.privacy.blocks.is_some();
        let of_a_frame = self.weighs_chains() && matches!(kind, QueryKind::Table { .. });
        sampled && of_a_step && self.algorithm.asks(kind) || self.locates_by_gradients() && of_a_stage || of_a_frame
    }

    /// Returns the table of the model's outcome and predictors, if a job that releases once uses it and nothing else: where
    /// `release.table` says so. Without that key, a logistic regression uses a table that is small, unless the job has settings of
    /// stages.
    #[must_use]
    pub fn outcome_table(&self, model: &dyn Model) -> Option<OutcomeTable> {
        let ReleaseSpec { stages, curvature_share, table, .. } = &self.release;
        match table {
            _ if self.algorithm != Algorithm::NoisyStatistics || self.sites.is_some() => None,
            Some(asked) => asked.then(|| model.outcome_table(usize::MAX)).flatten(),
            // A table is an answer of the plain fit.
            None if stages.is_some() || curvature_share.is_some() || self.weights == Weights::Always => None,
            None => {
                let most = ReleaseSpec::CELLS_PER_COEFFICIENT * model.parameter_names().len() + 1;
                model.outcome_table(most).filter(|table| table.law() == TableLaw::Logistic)
            }
        }
    }

    /// Returns whether a job that releases once queries one table and nothing else, by `release.table` or by its own choice.
    #[must_use]
    pub fn is_by_table(&self, model: &dyn Model) -> bool {
        let by_cells = model.scores().is_some_and(|scores| scores.cells().is_some());
        by_cells || self.outcome_table(model).is_some()
    }

    /// Returns whether the job infers from a few releases instead of chains of queries.
    #[must_use]
    pub fn releases_once(&self) -> bool {
        self.algorithm == Algorithm::NoisyStatistics
    }

    /// Returns the histogram of times from which the score stages start, if `release.table` asks for it.
    #[must_use]
    pub fn times_table(&self, model: &dyn Model) -> Option<TimesTable> {
        let asked = self.algorithm == Algorithm::NoisyStatistics && self.release.table == Some(true);
        asked.then(|| model.times_table()).flatten()
    }

    /// Returns the maximum number of rounds of a job that releases once; `None` for jobs with repeated rounds.
    #[must_use]
    pub fn most_rounds(&self) -> Option<u64> {
        (self.algorithm.declaration().most_rounds)(self)
    }

    /// Returns whether `theta` lies inside the parameter box.
    pub fn in_support(&self, theta: &[f64]) -> bool {
        theta.len() == self.support.len() && theta.iter().zip(&self.support).all(|(x, s)| s.contains(*x))
    }

    /// Returns whether `theta` lies inside the parameter box extended by half its width at either end, on the unconstrained
    /// scale. The midpoint of a step, where a gradient is evaluated, may lie there.
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

    /// Returns the log prior density up to a constant.
    pub fn log_prior(&self, theta: &[f64]) -> f64 {
        theta.iter().zip(&self.priors).map(|(x, p)| p.log_density(*x)).sum()
    }
}
