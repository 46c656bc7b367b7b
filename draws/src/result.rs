//! The JSON object of a finished run: posterior, privacy cost, warnings.

use std::path::Path;

use conclave_common::job::{Algorithm, Continuation, JobSpec};
use conclave_inference::diagnostics;
use conclave_inference::diagnostics::Summary;
pub use conclave_inference::sampler::Adequacy;
use conclave_inference::sampler::{RunReport, Stage};
use serde::Serialize;

pub use crate::new_party::NewParty;
use crate::new_party::new_party;
pub use crate::outcome::{Outcome, PartyOutcome, StoppedBy};
pub use crate::ratios::Ratio;
use crate::ratios::ratios;
use crate::released::{budget_error, estimand};
use crate::survival::survival;
pub use crate::survival::{Quantiles, SurvivalCurve, SurvivalPoint};
use crate::verdict::{self, Ended, Verdict};
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
    /// The figures of an answer that is not adequate, none of which can be relied on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inadequate: Option<Figures>,
    /// The sections of the algorithm's own report.
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
    /// The releases by stage, with the estimates after each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub releases: Vec<Stage>,
    /// `warnings` in sentences; `mcse_to_sd` and `budget_error`, the effect of too small a budget on the spread.
    #[serde(flatten)]
    pub diagnosis: diagnostics::Verdict,
}

/// The figures of an answer.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Figures {
    /// The posterior on the scale that priors are declared on.
    pub posterior: Vec<PosteriorRow>,
    /// The posterior in the data's own units.
    pub posterior_original: Vec<PosteriorRow>,
    /// Odds, rate or hazard ratios per unit of each predictor, in the data's own units; none for other models.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<Ratio>,
    /// Predictions of the parameters that vary by party, at a party that is not in the job.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub new_party: Vec<NewParty>,
    /// Survival curves of a survival model with predictors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub survival: Vec<SurvivalCurve>,
}

/// The aggregation of masked answers, and the noise that protects each party.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AggregationRow {
    /// `secure`: only the sum over the parties was unmasked.
    pub mode: &'static str,
    /// Maximum number of other parties that may collude with the coordinator.
    pub colluders: u32,
    /// Number of parties whose noise then protects each party, which divides its charges.
    pub honest: u32,
    /// Number of parties in the sum.
    pub parties: u32,
}

impl AggregationRow {
    /// Returns the aggregation of a job; `None` for answers without masks.
    #[must_use]
    pub fn from_spec(spec: &JobSpec) -> Option<Self> {
        let secure = spec.aggregation.secure()?;
        let parties = u32::try_from(spec.parties.len()).unwrap_or(u32::MAX);
        Some(Self { mode: "secure", colluders: secure.colluders, honest: spec.honest().get(), parties })
    }
}

/// One parameter's summary. Undefined numbers (R-hat of too few draws) are `null`.
#[derive(Debug, Clone, Serialize)]
pub struct PosteriorRow {
    /// The parameter.
    pub name: String,
    /// Its figures.
    #[serde(flatten)]
    pub summary: Summary,
    /// The fit whose parameter it is: `plain`, or `weighted` where records with unusual predictors or residuals count less. Only for a
    /// run that infers from few releases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimand: Option<&'static str>,
    /// The fraction of its variance due to the noise; `null` if the releases do not determine it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_share: Option<Option<f64>>,
    /// Its sd without the noise; `null` as above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sd_data: Option<Option<f64>>,
}

/// The job's cost at one party.
#[derive(Debug, Clone, Serialize)]
pub struct PartyRow {
    /// Name.
    pub name: String,
    /// Record count; `null` if it is not public.
    pub records: Option<u64>,
    /// Number of persons, if persons are protected and their number is public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persons: Option<u64>,
    /// The unit of privacy of the party's guarantee.
    pub protects: String,
    /// Number of releases of this job: one per chain and round, including `locate` and warm-up.
    pub queries: u64,
    /// Epsilon of this job by Gaussian differential privacy.
    pub epsilon_spent: f64,
    /// The delta of the job's guarantee, including the part reserved for blocks.
    pub delta: f64,
    /// The job's budget.
    pub epsilon_budget: f64,
    /// Mu squared of this job.
    pub mu_squared_spent: f64,
    /// Epsilon of this job by zero-concentrated differential privacy.
    pub epsilon_zcdp: f64,
}

impl RunResult {
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
    let rows = names.iter().zip(&samples).map(|(name, chains)| PosteriorRow::new(name, chains));
    let estimand = estimand(spec, &outcome.report);
    let rows = rows.map(|row| PosteriorRow { estimand, ..row });
    let posterior: Vec<PosteriorRow> = match &outcome.report.inference {
        Some(inference) => rows.zip(&inference.noise_share).map(|(row, share)| row.with_noise_share(*share)).collect(),
        None => rows.collect(),
    };
    let original = spec.in_original_units(&samples);
    let posterior_original = names.iter().zip(&original).map(|(name, chains)| {
        let chains: Vec<&[f64]> = chains.iter().map(Vec::as_slice).collect();
        PosteriorRow { estimand, ..PosteriorRow::new(name, &chains) }
    });
    let posterior_original: Vec<PosteriorRow> = posterior_original.collect();
    let of_original: Vec<(&str, Summary)> = posterior_original.iter().map(|row| (row.name.as_str(), row.summary)).collect();
    let ratios = ratios(spec, &of_original);
    let rows: Vec<(&str, Summary)> = posterior.iter().map(|row| (row.name.as_str(), row.summary)).collect();
    let mut diagnosis = diagnostics::verdict(
        &rows,
        spec.sampler.chains,
        spec.sampler.wanted(),
        matches!(outcome.stopped_by, StoppedBy::Budget | StoppedBy::Futility),
    );
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
    let adequacy = verdict::checked(outcome, &rows);
    diagnosis.warnings.splice(0..0, adequacy.reasons.iter().map(|reason| format!("this is not an adequate answer: {reason}.")));
    let draws_per_chain = draws.kept() as u64;
    let verdict = Verdict::of(&Ended { spec, job, outcome, adequacy: &adequacy, rows: &rows, draws: draws_per_chain });
    let new_party = new_party(spec, &samples);
    let survival = survival(spec, &samples);
    let found = Figures { posterior, posterior_original, ratios, new_party, survival };
    let (figures, inadequate) = if adequacy.adequate { (found, None) } else { (Figures::default(), Some(found)) };
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
        releases: outcome.report.inference.iter().flat_map(|inference| inference.stages.iter().cloned()).collect(),
        continuation: Continuation { radii: outcome.report.radii.clone(), states: last_states(&samples) },
        figures,
        inadequate,
        report: outcome.report.clone(),
        parties: parties.collect(),
        draws: path.map(|path| path.display().to_string()),
    }
}

/// Returns the last kept draw of each chain, as `[chain][parameter]`.
fn last_states(samples: &[Vec<&[f64]>]) -> Vec<Vec<f64>> {
    let chains = samples.first().map_or(0, Vec::len);
    (0..chains).map(|chain| samples.iter().filter_map(|parameter| parameter[chain].last().copied()).collect()).collect()
}

impl PosteriorRow {
    fn new(name: &str, chains: &[&[f64]]) -> Self {
        let draws = chains.iter().map(|chain| chain.len()).sum();
        let summary = diagnostics::summarise(chains).published(draws);
        Self { name: name.to_owned(), summary, estimand: None, noise_share: None, sd_data: None }
    }

    fn with_noise_share(self, share: Option<f64>) -> Self {
        let sd_data = share.map(|share| self.summary.sd * (1.0 - share).sqrt());
        Self { noise_share: Some(share), sd_data: Some(sd_data), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Antithetic chains have an effective sample size beyond their length.
    #[test]
    fn the_effective_sample_size_is_capped_by_the_draws() {
        let swing: Vec<f64> = (0..200).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 } + 0.01 * f64::from(i * 37 % 101)).collect();
        assert!(diagnostics::ess_bulk(&[&swing, &swing]) > 400.0);
        let row = PosteriorRow::new("x", &[&swing, &swing]);
        assert!(row.summary.ess_bulk <= 400.0 && row.summary.ess_tail <= 400.0 && row.summary.mcse_mean > 0.0);
    }

    /// With few effective draws the Monte Carlo error of an sd is no figure.
    #[test]
    fn an_error_of_the_sd_needs_effective_draws() {
        let draws = |count: u32| -> Vec<f64> { (0..count).map(|i| f64::from(i * 7919 % 1009)).collect() };
        let error = |count: u32| PosteriorRow::new("x", &[&draws(count), &draws(count)]).summary.mcse_sd;
        assert!(error(20).is_nan() && error(200) > 0.0);
    }

    #[test]
    fn an_undefined_number_is_null() {
        let json = serde_json::to_value(PosteriorRow::new("age", &[&[1.0, 1.0], &[1.0, 1.0]])).unwrap_or_default();
        assert!(json["rhat"].is_null() && json["mcse_mean"].is_null() && json["ess_q5"].is_null());
        assert_eq!((&json["name"], &json["mean"]), (&"age".into(), &1.0.into()));
    }
}
