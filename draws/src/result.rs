//! The JSON object of a finished run: posterior, privacy cost, warnings.

use std::path::Path;

use conclave_common::job::{Algorithm, Continuation, JobSpec};
use conclave_inference::diagnostics::{self, Summary};
pub use conclave_inference::sampler::Adequacy;
use conclave_inference::sampler::{RunReport, Stage};
use serde::Serialize;

pub use crate::figures::{Figures, Inadequate, NewParty, PosteriorRow, Ratio, Row, SurvivalCurve};
use crate::new_party::new_party;
pub use crate::outcome::{Outcome, PartyOutcome, StoppedBy};
pub use crate::parties::{AggregationRow, PartyRow};
use crate::ratios::ratios;
use crate::released::{budget_error, estimand};
use crate::survival::survival;
pub use crate::survival::{Quantiles, SurvivalPoint};
use crate::verdict::{self, Ended, Grade, Verdict};
use crate::zarr::DrawStore;

/// The JSON object of a finished run.
#[derive(Debug, Clone, Serialize)]
pub struct RunResult {
    /// UUID.
    pub job: String,
    /// The analyst's name for the job.
    pub name: String,
    /// The job whose chains this one continued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extends: Option<String>,
    /// The job whose releases these draws reuse, under another prior or with fewer predictors, without a query to any party.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refit_of: Option<String>,
    /// Algorithm.
    pub algorithm: &'static str,
    /// The reason for its choice by `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<&'static str>,
    /// The masked aggregation of answers; absent for answers without masks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregation: Option<AggregationRow>,
    /// Number of rounds, each over all chains.
    pub iterations: u64,
    /// Number of chains.
    pub chains: u32,
    /// Kept draws per chain.
    pub draws_per_chain: u64,
    /// Seconds from the first query to the last draw.
    pub seconds: f64,
    /// Acceptance rate of the kept draws.
    pub acceptance_rate: f64,
    /// The reason for the end.
    pub stopped_by: StoppedBy,
    /// The party whose budget ended the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_party: Option<String>,
    /// The verdict on the answer, and the next step where it is not fit to publish.
    pub verdict: Verdict,
    /// The figures of the answer; empty if it is not adequate.
    #[serde(flatten)]
    pub figures: Figures,
    /// All figures of an answer that is not adequate, none of which can be relied on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inadequate: Option<Inadequate>,
    /// The sections of the algorithm's own report; without estimates if the answer is not adequate.
    #[serde(flatten)]
    pub report: RunReport,
    /// Spending.
    pub parties: Vec<PartyRow>,
    /// Warnings about a budget that protects little.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub privacy_warnings: Vec<String>,
    /// The initial state of a job that continues this one; parameters in the order of `posterior`.
    pub continuation: Continuation,
    /// The Zarr store, on the machine that ran the chains.
    pub draws: Option<String>,
    /// The data that the posterior is conditioned on: `noisy_release` for a run that infers from few releases, whose intervals
    /// include the noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditional_on: Option<&'static str>,
    /// The verdict on the answer, the same for every algorithm.
    pub adequacy: Adequacy,
    /// The releases by stage, with the estimates after each; empty if the answer is not adequate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub releases: Vec<Stage>,
    /// `warnings` in sentences; `mcse_to_sd` and `budget_error`, the effect of too small a budget on the spread.
    #[serde(flatten)]
    pub diagnosis: diagnostics::Verdict,
}

impl RunResult {
    /// Returns the fit whose parameters the draws are of; `None` where no other is possible.
    pub(crate) fn estimand(&self) -> Option<&'static str> {
        let apart = self.inadequate.iter().flat_map(|inadequate| &inadequate.figures.posterior);
        self.figures.posterior.iter().chain(apart).find_map(|row| row.of.estimand)
    }

    /// Returns the object as JSON on one line.
    pub fn to_json(&self) -> String {
        // Serialising plain structs of numbers and strings can't fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Summarises a run. The computation is too slow for a thread that has to respond.
///
/// `job` is the run's id and `path` the location of its draws.
#[must_use]
pub fn build(spec: &JobSpec, job: &str, path: Option<&Path>, draws: &DrawStore, outcome: &Outcome) -> RunResult {
    let names = spec.draw_names();
    let samples: Vec<Vec<&[f64]>> = (0..names.len()).map(|i| draws.samples(i)).collect();
    let found = found(spec, &names, &samples, &outcome.report);
    let rows: Vec<(&str, Summary)> = found.posterior.iter().map(|row| (row.of.name.as_str(), row.of.summary)).collect();
    let adequacy = verdict::checked(outcome, &rows);
    let mut diagnosis = diagnosis(spec, outcome, &rows);
    diagnosis.warnings.splice(0..0, adequacy.reasons.iter().map(|reason| format!("this is not an adequate answer: {reason}.")));
    let draws_per_chain = draws.kept() as u64;
    let verdict = Verdict::of(&Ended { spec, job, outcome, adequacy: &adequacy, rows: &rows, draws: draws_per_chain });
    let mut report = outcome.report.clone();
    let mut releases = outcome.report.inference.iter().flat_map(|inference| inference.stages.iter().cloned()).collect();
    let (figures, inadequate) = match adequacy.adequate {
        true => (found.marked(verdict.grade > Grade::NotUsable), None),
        false => (Figures::default(), Some(Inadequate::take(found, &mut report, &mut releases))),
    };
    let units = |party: &PartyOutcome| party.metadata.and_then(|h| h.persons().or(h.records()));
    let privacy_warnings = spec.privacy.warnings(outcome.parties.iter().map(|party| (party.name.as_str(), units(party))));
    RunResult {
        privacy_warnings,
        job: job.to_owned(),
        name: spec.name.clone(),
        extends: spec.extends.clone(),
        refit_of: outcome.refit_of.clone(),
        algorithm: spec.algorithm.as_str(),
        chosen: spec.chosen,
        aggregation: AggregationRow::from_spec(spec),
        iterations: outcome.iterations,
        chains: spec.sampler.chains,
        draws_per_chain,
        seconds: outcome.seconds,
        acceptance_rate: draws.acceptance_rate(),
        stopped_by: outcome.stopped_by,
        budget_party: outcome.budget_party.clone(),
        verdict,
        diagnosis,
        conditional_on: outcome.report.inference.as_ref().map(|_| "noisy_release"),
        adequacy,
        releases,
        continuation: Continuation { radii: outcome.report.radii.clone(), states: last_states(&samples) },
        figures,
        inadequate,
        report,
        parties: outcome.parties.iter().map(|party| PartyRow::new(party, &spec.privacy.budget)).collect(),
        draws: path.map(|path| path.display().to_string()),
    }
}

/// Computes all figures from the draws, `[value][chain][draw]` of `names`.
fn found(spec: &JobSpec, names: &[String], samples: &[Vec<&[f64]>], report: &RunReport) -> Figures {
    let estimand = estimand(spec, report);
    let row = |(name, chains): (&String, &[&[f64]])| PosteriorRow { estimand, ..PosteriorRow::new(name, chains) };
    let rows = names.iter().zip(samples).map(|(name, chains)| row((name, chains.as_slice())));
    let posterior: Vec<PosteriorRow> = match &report.inference {
        Some(inference) => rows.zip(&inference.noise_share).map(|(row, share)| row.with_noise_share(*share)).collect(),
        None => rows.collect(),
    };
    let original = spec.in_original_units(samples);
    let original = names.iter().zip(&original).map(|(name, chains)| {
        let chains: Vec<&[f64]> = chains.iter().map(Vec::as_slice).collect();
        row((name, chains.as_slice()))
    });
    let original: Vec<PosteriorRow> = original.collect();
    let summaries: Vec<(&str, Summary)> = original.iter().map(|row| (row.name.as_str(), row.summary)).collect();
    Figures {
        posterior: Row::all(posterior),
        ratios: Row::all(ratios(spec, &summaries)),
        posterior_original: Row::all(original),
        new_party: Row::all(new_party(spec, samples)),
        survival: Row::all(survival(spec, samples)),
    }
}

/// Collects the warnings, the most serious first, and the words on the effect of the budget.
fn diagnosis(spec: &JobSpec, outcome: &Outcome, rows: &[(&str, Summary)]) -> diagnostics::Verdict {
    let by_budget = matches!(outcome.stopped_by, StoppedBy::Budget | StoppedBy::Futility);
    let mut diagnosis = diagnostics::verdict(rows, spec.sampler.chains, spec.sampler.wanted(), by_budget);
    if spec.algorithm == Algorithm::Ops {
        // The draws are independent, so a single chain needs no check of mixing.
        diagnosis.warnings.retain(|word| word != diagnostics::ONE_CHAIN);
    }
    // An active clip invalidates good diagnostics, so its warning comes first.
    diagnosis.warnings.splice(0..0, outcome.warnings.iter().cloned());
    if let Some(inference) = &outcome.report.inference {
        diagnosis.warnings.splice(0..0, inference.warnings.iter().cloned());
        diagnosis.budget_error = budget_error(inference);
    }
    diagnosis
}

/// Returns the last kept draw of each chain, as `[chain][parameter]`.
fn last_states(samples: &[Vec<&[f64]>]) -> Vec<Vec<f64>> {
    let chains = samples.first().map_or(0, Vec::len);
    (0..chains).map(|chain| samples.iter().filter_map(|parameter| parameter[chain].last().copied()).collect()).collect()
}
