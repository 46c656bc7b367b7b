//! The finished run's object: posterior, spending, warnings.

use std::path::Path;

use conclave_common::job::{Algorithm, Continuation, JobSpec};
use conclave_common::model;
use conclave_common::query::PartyMetadata;
use conclave_inference::diagnostics;
use conclave_inference::diagnostics::{Summary, Verdict};
use conclave_inference::sampler::{RunReport, Stage};
use serde::Serialize;

pub use crate::ratios::Ratio;
use crate::ratios::ratios;
pub use crate::released::Adequacy;
use crate::released::budget_error;
use crate::spent::Spent;
use crate::zarr::DrawStore;

/// What ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StoppedBy {
    /// All draws are made.
    Draws,
    /// A party's budget.
    Budget,
    /// The analyst.
    Cancelled,
    /// A party's owner, by withdrawing the consent or by a limit.
    Policy,
    /// The clip watch: an explicit clip cuts too many records' ratios.
    Clip,
    /// Everything that the run asks for once is released.
    Released,
    /// The draws have come to what the job wants of them, before all were made.
    Until,
    /// A forecast: with the whole budget the draws would have been of no use.
    Hopeless,
    /// Something went wrong, which the job's error tells; what was drawn before is as good as any.
    Failure,
}

impl StoppedBy {
    /// What ended a run that came to its own end, with so many kept draws of a chain; by a budget where the sampler says so.
    #[must_use]
    pub fn itself(spec: &JobSpec, kept: u64, by_budget: bool) -> Self {
        match spec.sampler.until {
            _ if by_budget => Self::Budget,
            _ if !spec.algorithm.proposes() => Self::Released,
            Some(_) if kept < spec.sampler.draws => Self::Until,
            _ => Self::Draws,
        }
    }
}

/// What the driver knows at the end, besides the draws.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What ended the run.
    pub stopped_by: StoppedBy,
    /// The party whose budget did.
    pub budget_party: Option<String>,
    /// Rounds over all chains together.
    pub iterations: u64,
    /// From the first query to the last draw.
    pub seconds: f64,
    /// The job whose releases the draws are made of, where nothing was asked for them.
    pub refit_of: Option<String>,
    /// What the run has shown, beyond what the draws do.
    pub warnings: Vec<String>,
    /// What the algorithm states beside the draws.
    pub report: RunReport,
    /// Parties in the job's order.
    pub parties: Vec<PartyOutcome>,
}

/// A party's share in the outcome.
#[derive(Debug, Clone)]
pub struct PartyOutcome {
    /// Name.
    pub name: String,
    /// What it holds; `None` where it never opened the job.
    pub metadata: Option<PartyMetadata>,
    /// What the job has spent there.
    pub spent: Spent,
}

/// The JSON object of a finished run.
#[derive(Debug, Clone, Serialize)]
pub struct RunResult {
    /// UUID.
    pub job: String,
    /// The analyst's name for it.
    pub name: String,
    /// The job whose chains this one continued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extends: Option<String>,
    /// The job whose releases these draws are made of, under another prior or with fewer predictors: no party was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refit_of: Option<String>,
    /// Algorithm.
    pub algorithm: &'static str,
    /// Why it was chosen, where the job left that to `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<&'static str>,
    /// How the parties' answers were opened; absent where each was opened by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregation: Option<AggregationRow>,
    /// Rounds over all chains together.
    pub iterations: u64,
    /// Chains.
    pub chains: u32,
    /// Kept draws per chain.
    pub draws_per_chain: u64,
    /// From the first query to the last draw.
    pub seconds: f64,
    /// Of the kept draws.
    pub acceptance_rate: f64,
    /// What ended the run.
    pub stopped_by: StoppedBy,
    /// The party whose budget did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_party: Option<String>,
    /// On the scale that priors are declared on.
    pub posterior: Vec<PosteriorRow>,
    /// In the data's own units.
    pub posterior_original: Vec<PosteriorRow>,
    /// Odds or rate ratios per unit of each predictor, in the data's own units; none of another model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<Ratio>,
    /// The sections of the algorithm's own report.
    #[serde(flatten)]
    pub report: RunReport,
    /// Spending.
    pub parties: Vec<PartyRow>,
    /// What a job that continues this one begins with; parameters in the order of `posterior`.
    pub continuation: Continuation,
    /// The Zarr store, on the machine that ran the chains.
    pub draws: Option<String>,
    /// What the posterior is given: `noisy_release` for a run that infers from what was released once, whose interval is as wide as
    /// the noise makes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditional_on: Option<&'static str>,
    /// Whether the release suffices for an answer, and the figures that say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adequacy: Option<Adequacy>,
    /// What was asked of the parties, stage by stage, and what each taught.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub releases: Vec<Stage>,
    /// `warnings`, what to beware of in sentences; `mcse_to_sd` and `budget_error`, what too little budget adds to the spread.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// How answers were opened that left masked, and whose noise protects whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AggregationRow {
    /// `secure`: the sum over the parties alone was opened.
    pub mode: &'static str,
    /// How many of the other parties may work with the coordinator.
    pub colluders: u32,
    /// How many parties' noise then protects each of them: it is charged by so much less.
    pub honest: u32,
    /// Parties in the sum.
    pub parties: u32,
}

impl AggregationRow {
    /// Of a job whose answers leave masked.
    #[must_use]
    pub fn of(spec: &JobSpec) -> Option<Self> {
        let secure = spec.aggregation.secure()?;
        let parties = u32::try_from(spec.parties.len()).unwrap_or(u32::MAX);
        Some(Self { mode: "secure", colluders: secure.colluders, honest: spec.honest().get(), parties })
    }
}

/// One parameter's summary. Numbers that don't exist (R-hat of too few draws) are `null`.
#[derive(Debug, Clone, Serialize)]
pub struct PosteriorRow {
    /// The parameter.
    pub name: String,
    /// Its figures.
    #[serde(flatten)]
    pub summary: Summary,
    /// The share of its variance that is there because of the noise; `null` where what was released does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_share: Option<Option<f64>>,
    /// What its sd would be without the noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sd_data: Option<f64>,
}

/// One party's spending.
#[derive(Debug, Clone, Serialize)]
pub struct PartyRow {
    /// Name.
    pub name: String,
    /// Cleaned record count; `null` where it is not public.
    pub records: Option<u64>,
    /// Number of persons, where persons are protected and it is public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persons: Option<u64>,
    /// What the party's guarantee protects.
    pub protects: String,
    /// Releases of this job: one per chain and round, `locate` and warm-up included.
    pub queries: u64,
    /// Of this job, by Gaussian differential privacy.
    pub epsilon_spent: f64,
    /// The delta of what the job was promised, with what it set aside for blocks.
    pub delta: f64,
    /// The most that the job may spend.
    pub epsilon_budget: f64,
    /// Mu squared of this job.
    pub mu_squared_spent: f64,
    /// `epsilon_spent` by zero-concentrated differential privacy.
    pub epsilon_zcdp: f64,
}

impl RunResult {
    /// The object as JSON on one line.
    pub fn to_json(&self) -> String {
        // Plain structs of numbers and strings: serialising them can't fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Summarises a run. Takes a moment: not for a thread that has to answer.
///
/// `job` is the run's id and `path` where its draws are.
#[must_use]
pub fn build(spec: &JobSpec, job: &str, path: Option<&Path>, draws: &DrawStore, outcome: &Outcome) -> RunResult {
    let model = spec.build_model();
    let names = model.parameter_names();
    let samples: Vec<Vec<&[f64]>> = (0..names.len()).map(|i| draws.samples(i)).collect();
    let rows = names.iter().zip(&samples).map(|(name, chains)| PosteriorRow::new(name, chains));
    let posterior: Vec<PosteriorRow> = match &outcome.report.inference {
        Some(inference) => rows.zip(&inference.noise_share).map(|(row, share)| row.with_noise_share(*share)).collect(),
        None => rows.collect(),
    };
    let original = model::in_original_units(model.as_ref(), &samples);
    let posterior_original = names.iter().zip(&original).map(|(name, chains)| {
        let chains: Vec<&[f64]> = chains.iter().map(Vec::as_slice).collect();
        PosteriorRow::new(name, &chains)
    });
    let posterior_original: Vec<PosteriorRow> = posterior_original.collect();
    let of_original: Vec<(&str, Summary)> = posterior_original.iter().map(|row| (row.name.as_str(), row.summary)).collect();
    let ratios = ratios(spec, &of_original);
    let rows: Vec<(&str, Summary)> = posterior.iter().map(|row| (row.name.as_str(), row.summary)).collect();
    let mut verdict = diagnostics::verdict(
        &rows,
        spec.sampler.chains,
        spec.sampler.wanted(),
        matches!(outcome.stopped_by, StoppedBy::Budget | StoppedBy::Hopeless),
    );
    if spec.algorithm == Algorithm::Ops {
        // Independent, each as good as the next: there is nothing to mix.
        verdict.warnings.retain(|word| word != diagnostics::ONE_CHAIN);
    }
    // A clip that bites makes good diagnostics worthless, so it is said first.
    verdict.warnings.splice(0..0, outcome.warnings.iter().cloned());
    if let Some(inference) = &outcome.report.inference {
        verdict.warnings.splice(0..0, inference.warnings.iter().cloned());
        verdict
            .warnings
            .splice(0..0, inference.reasons.iter().map(|reason| format!("this is not an adequate answer: {reason}.")));
        verdict.budget_error = budget_error(inference);
    }
    let budget = &spec.privacy.budget;
    let parties = outcome.parties.iter().map(|party| PartyRow {
        name: party.name.clone(),
        records: party.metadata.and_then(|h| h.records()),
        persons: party.metadata.and_then(|h| h.persons()),
        protects: party.metadata.map(|h| h.unit()).unwrap_or_default().to_string(),
        queries: party.spent.queries,
        epsilon_spent: party.spent.epsilon(budget),
        delta: budget.promised_delta(),
        epsilon_budget: budget.epsilon,
        mu_squared_spent: party.spent.mu_squared(),
        epsilon_zcdp: party.spent.epsilon_zcdp(budget),
    });
    RunResult {
        job: job.to_owned(),
        name: spec.name.clone(),
        extends: spec.extends.clone(),
        refit_of: outcome.refit_of.clone(),
        algorithm: spec.algorithm.as_str(),
        chosen: spec.chosen,
        aggregation: AggregationRow::of(spec),
        iterations: outcome.iterations,
        chains: spec.sampler.chains,
        draws_per_chain: draws.kept() as u64,
        seconds: outcome.seconds,
        acceptance_rate: draws.acceptance_rate(),
        stopped_by: outcome.stopped_by,
        budget_party: outcome.budget_party.clone(),
        verdict,
        conditional_on: outcome.report.inference.as_ref().map(|_| "noisy_release"),
        adequacy: outcome.report.inference.as_ref().map(Adequacy::of),
        releases: outcome.report.inference.iter().flat_map(|inference| inference.stages.iter().cloned()).collect(),
        continuation: Continuation { radii: outcome.report.radii.clone(), states: last_states(&samples) },
        posterior,
        ratios,
        posterior_original,
        report: outcome.report.clone(),
        parties: parties.collect(),
        draws: path.map(|path| path.display().to_string()),
    }
}

/// The last kept draw of each chain, as `[chain][parameter]`.
fn last_states(samples: &[Vec<&[f64]>]) -> Vec<Vec<f64>> {
    let chains = samples.first().map_or(0, Vec::len);
    (0..chains).map(|chain| samples.iter().filter_map(|parameter| parameter[chain].last().copied()).collect()).collect()
}

impl PosteriorRow {
    fn new(name: &str, chains: &[&[f64]]) -> Self {
        let draws = chains.iter().map(|chain| chain.len()).sum();
        let summary = diagnostics::summarise(chains).told(draws);
        Self { name: name.to_owned(), summary, noise_share: None, sd_data: None }
    }

    fn with_noise_share(self, share: Option<f64>) -> Self {
        let sd_data = share.map(|share| self.summary.sd * (1.0 - share).sqrt());
        Self { noise_share: Some(share), sd_data, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chains that alternate have an effective sample size beyond their length.
    #[test]
    fn no_more_draws_are_told_than_there_are() {
        let swing: Vec<f64> = (0..200).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 } + 0.01 * f64::from(i * 37 % 101)).collect();
        assert!(diagnostics::ess_bulk(&[&swing, &swing]) > 400.0);
        let row = PosteriorRow::new("x", &[&swing, &swing]);
        assert!(row.summary.ess_bulk <= 400.0 && row.summary.ess_tail <= 400.0 && row.summary.mcse_mean > 0.0);
    }

    #[test]
    fn a_number_that_does_not_exist_is_null() {
        let json = serde_json::to_value(PosteriorRow::new("age", &[&[1.0, 1.0], &[1.0, 1.0]])).unwrap_or_default();
        assert!(json["rhat"].is_null() && json["mcse_mean"].is_null() && json["ess_q5"].is_null());
        assert_eq!((&json["name"], &json["mean"]), (&"age".into(), &1.0.into()));
    }
}
