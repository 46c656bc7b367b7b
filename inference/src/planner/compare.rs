//! Every algorithm that could answer a job, beside each other.

use super::outcome::{Plan, PlanError};
use super::penalty_error::penalty_error;
use super::prospect::prospect;
use crate::sampler;
use crate::sampler::{Case, ErrorSource, engine};
use conclave_common::job::{Algorithm, JobSpec};
use conclave_common::query::PartyMetadata;
use conclave_privacy::accounting::PrivacyFilter;

/// In the order of their rows.
const ALL: [Algorithm; 5] =
    [Algorithm::NoisyStatistics, Algorithm::Augmentation, Algorithm::Hmc, Algorithm::Penalty, Algorithm::PenaltyExpFamily];

/// What a chain's error is.
const CHAIN: &str = "as without privacy, but for this Monte Carlo error";

/// The same of chains without a test.
const APPROXIMATE: &str = "no test: as without privacy, but for a bias and this Monte Carlo error";

/// A figure in the best case and in a worse one; the same twice where it is known.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Range {
    /// Predictors even over their bounds, without correlation; records that vary as much as is declared.
    pub best: f64,
    /// Predictors that fill a fifth of their bounds; a fifth of the records with a 1, or another level than the first.
    pub worse: f64,
}

impl Range {
    fn of(best: f64, worse: f64) -> Self {
        Self { best, worse: worse.max(best) }
    }

    /// How many times as wide as without privacy an interval is with this error in it.
    fn factor(self) -> Self {
        let factor = |error: f64| (1.0 + error * error).sqrt();
        Self { best: factor(self.best), worse: factor(self.worse) }
    }
}

/// What to expect of a job by one algorithm.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct AlgorithmPlan {
    /// Its name.
    pub algorithm: &'static str,
    /// The error of a posterior mean in posterior sds without privacy, rms over the parameters: the noise's, or of a chain of ratios the
    /// Monte Carlo error that the budget leaves. Infinite (`null` in JSON) where the budget ends before a draw is kept; `None` where
    /// nothing can be told.
    pub expected_error: Option<Range>,
    /// How many times as wide as without privacy an interval is with that error in it.
    pub interval_factor: Option<Range>,
    /// Messages to every party, at most; `None` where that takes a guess of the posterior.
    pub rounds: Option<u64>,
    /// Whether the job would be refused before anything is asked.
    pub refused: bool,
    /// What else there is to say.
    pub note: String,
}

impl AlgorithmPlan {
    fn new(algorithm: Algorithm, error: Option<Range>, rounds: Option<u64>, note: &str) -> Self {
        Self {
            algorithm: algorithm.as_str(),
            expected_error: error,
            interval_factor: error.map(Range::factor),
            rounds,
            refused: false,
            note: note.to_owned(),
        }
    }

    fn refused(algorithm: Algorithm, why: &str) -> Self {
        Self { refused: true, ..Self::new(algorithm, None, None, why) }
    }
}

/// What to expect of a job by each algorithm that the model allows, from the number of records of each party. `plans` are those of
/// algorithms that propose, where there is a guess of the posterior to make them from.
///
/// # Errors
/// Another number of counts than of parties.
pub fn compare(spec: &JobSpec, records: &[u64], plans: &[(Algorithm, Plan)]) -> Result<Vec<AlgorithmPlan>, PlanError> {
    if records.len() != spec.parties.len() {
        return Err(PlanError::Guess(format!("{} record counts for {} parties", records.len(), spec.parties.len())));
    }
    let mut rows = Vec::new();
    // Those that nobody would choose for what they cost or leave out have a row where the job names them.
    let own = Some(spec.algorithm).filter(|own| !ALL.contains(own));
    for algorithm in ALL.into_iter().chain(own) {
        let Ok(spec) = spec.by(algorithm) else { continue };
        let plan = plans.iter().find(|(of, _)| *of == algorithm).map(|(_, plan)| plan);
        rows.push(match engine(algorithm).error_source {
            ErrorSource::Release { note, .. } => released(&spec, records, note),
            ErrorSource::Choices => chosen(&spec, records),
            ErrorSource::Ratios => of_chain(&spec, records, plan),
            ErrorSource::Gradients { approximate } => {
                let row = driven(&spec, records, plan);
                let note = if approximate && !row.refused { APPROXIMATE.to_owned() } else { row.note };
                AlgorithmPlan { note, ..row }
            }
            ErrorSource::Unknown { note } => AlgorithmPlan::new(algorithm, None, plan.map(|plan| plan.iterations), note),
        });
    }
    Ok(rows)
}

/// By one that releases once.
fn released(spec: &JobSpec, records: &[u64], note: &str) -> AlgorithmPlan {
    let algorithm = spec.algorithm;
    let parties = PartyMetadata::of_rows(records);
    let outlook = match sampler::outlook(spec, &parties) {
        Ok(Some(outlook)) => outlook,
        Ok(None) => return AlgorithmPlan::new(algorithm, None, None, ""),
        Err(error) => return AlgorithmPlan::refused(algorithm, &error.to_string()),
    };
    let refused = prospect(spec, &parties).is_some();
    let note = if refused { "no answer can be expected, so nothing is asked" } else { note };
    let range = Range::of(outlook.best, outlook.worse);
    AlgorithmPlan { refused, ..AlgorithmPlan::new(algorithm, Some(range), spec.most_rounds(), note) }
}

/// By draws of candidates, each of which is an independent draw of the posterior: the error of a mean of so many.
fn chosen(spec: &JobSpec, records: &[u64]) -> AlgorithmPlan {
    let row = |error, note: &str| AlgorithmPlan::new(spec.algorithm, error, None, note);
    let parties = PartyMetadata::of_rows(records);
    if let Err(error) = sampler::build(spec, &parties) {
        return AlgorithmPlan::refused(spec.algorithm, &error.to_string());
    }
    let price = parties.first().and_then(|party| sampler::foreseen_choice(spec, *party).ok().flatten());
    let (Some(price), Ok(filter)) = (price, PrivacyFilter::new(&spec.privacy.budget)) else {
        return row(None, "what a draw costs follows from what the search finds");
    };
    let left = (1.0 - spec.sampler.locate_share) * filter.limit_units() as f64;
    let draws = spec.sampler.draws.min((left / price.units.max(1) as f64) as u64).max(1);
    let error = (draws as f64).sqrt().recip();
    let note = format!(
        "{draws} of the posterior's draws, among {} candidates each, at mu {:.3} a draw or more: as wide as without privacy, but for this Monte Carlo error",
        price.candidates, price.mu
    );
    row(Some(Range::of(error, error)), &note)
}

/// By chains that gradients drive.
fn driven(spec: &JobSpec, records: &[u64], plan: Option<&Plan>) -> AlgorithmPlan {
    let parties = PartyMetadata::of_rows(records);
    if let Some(plan) = plan.filter(|_| prospect(spec, &parties).is_none()) {
        return of_plan(spec.algorithm, plan);
    }
    match sampler::outlook(spec, &parties) {
        Ok(Some(outlook)) => {
            let refused = prospect(spec, &parties).is_some();
            let note = if refused { "too few effective draws, so nothing is asked" } else { CHAIN };
            let row = AlgorithmPlan::new(spec.algorithm, Some(Range::of(outlook.best, outlook.worse)), None, note);
            AlgorithmPlan { refused, ..row }
        }
        Ok(None) => AlgorithmPlan::new(spec.algorithm, None, None, ""),
        Err(error) => AlgorithmPlan::refused(spec.algorithm, &error.to_string()),
    }
}

/// By a chain whose posterior is guessed.
fn of_plan(algorithm: Algorithm, plan: &Plan) -> AlgorithmPlan {
    let finite: Vec<f64> = plan.ess.iter().map(|row| row.ess).filter(|ess| ess.is_finite()).collect();
    let error = (finite.iter().map(|ess| ess.max(0.0).recip()).sum::<f64>() / finite.len().max(1) as f64).sqrt();
    let more = if plan.stopped_by == "draws" { ", which more draws would lessen" } else { "" };
    AlgorithmPlan::new(algorithm, Some(Range::of(error, error)), Some(plan.iterations), &format!("{CHAIN}{more}"))
}

/// By a chain of ratios.
fn of_chain(spec: &JobSpec, records: &[u64], plan: Option<&Plan>) -> AlgorithmPlan {
    let algorithm = spec.algorithm;
    if let Some(plan) = plan {
        return of_plan(algorithm, plan);
    }
    let refused = prospect(spec, &PartyMetadata::of_rows(records)).is_some();
    let records = records.iter().map(|n| *n as f64).sum();
    let of = |case| penalty_error(spec, records, case);
    match of(Case::Best).and_then(|best| Ok(Range::of(best, of(Case::Worse)?))) {
        Ok(range) if range.best.is_infinite() => {
            let row = AlgorithmPlan::new(algorithm, Some(range), None, "the budget ends before the first kept draw");
            AlgorithmPlan { refused, ..row }
        }
        Ok(range) => AlgorithmPlan::new(algorithm, Some(range), None, &format!("{CHAIN}; rounds take a guess")),
        Err(error) => AlgorithmPlan::refused(algorithm, &error.to_string()),
    }
}
