//! Forecasts without a guess of the posterior, from bounds, priors and record counts alone: a comparison of all algorithms that can
//! run a job, and the range of a chain's results.

use super::outcome::{Plan, PlanError};
use super::plan::plan;
use super::prospect::{penalty_error, prospect};
use super::stand_in::Guess;
use crate::sampler;
use crate::sampler::{Case, ErrorSource, beforehand, engine};
use conclave_common::job::{Algorithm, JobSpec};
use conclave_common::query::PartyMetadata;
use conclave_privacy::accounting::PrivacyFilter;

/// Algorithms in the order of their rows.
const ALL: [Algorithm; 5] =
    [Algorithm::NoisyStatistics, Algorithm::Augmentation, Algorithm::Hmc, Algorithm::Penalty, Algorithm::PenaltyExpFamily];

const CHAIN: &str = "as without privacy, except for this Monte Carlo error";

const APPROXIMATE: &str = "no acceptance test: as without privacy, except for a bias and this Monte Carlo error";

/// Margin of a range for what the assumptions about records leave out, as a factor on the error in the worse case: correlated
/// predictors, rare outcomes, steep slopes, bounds much wider than the records.
///
/// In 84 cells of real data with an answer, the error was above the best case in all and below three times the worse case in 80;
/// it was below the worse case itself in 47.
pub const MARGIN: f64 = 3.0;

/// A figure in the best case and in a worse one; both are equal if it is known.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Range {
    /// Best case: predictors are spread evenly over their bounds without correlation, and records have the declared variation.
    pub best: f64,
    /// Worse case: predictors fill a fifth of their bounds, and a fifth of the records have a 1, or a level other than the first.
    /// Errors have a margin of [`MARGIN`].
    pub worse: f64,
}

impl Range {
    fn of(best: f64, worse: f64) -> Self {
        Self { best, worse: worse.max(best) }
    }

    /// Returns the range of the errors in two cases, with its margin for real data.
    fn of_cases(best: f64, worse: f64) -> Self {
        Self { best, worse: MARGIN * worse.max(best) }
    }

    /// Returns the ratio of an interval's width with this error to its width without privacy.
    fn factor(self) -> Self {
        let factor = |error: f64| (1.0 + error * error).sqrt();
        Self { best: factor(self.best), worse: factor(self.worse) }
    }
}

/// Forecast for a job under one algorithm.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct AlgorithmPlan {
    /// Name of the algorithm.
    pub algorithm: &'static str,
    /// Error of a posterior mean in posterior sds without privacy, rms over the parameters. For a chain of ratios it is the Monte
    /// Carlo error that the budget leaves, for other algorithms the error from the noise. Infinite (`null` in JSON) if the budget
    /// ends before a draw is kept; `None` if it cannot be computed.
    pub expected_error: Option<Range>,
    /// Ratio of an interval's width with that error to its width without privacy.
    pub interval_factor: Option<Range>,
    /// Largest number of messages to every party; `None` if that requires a guess of the posterior.
    pub rounds: Option<u64>,
    /// True if the job would be refused before any query.
    pub refused: bool,
    /// Further remark.
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

/// Returns the forecast of each algorithm that the model allows, from the number of records of each party. `plans` holds the
/// plans of algorithms that propose moves, if a guess of the posterior is available.
///
/// # Errors
/// A number of counts that differs from the number of parties.
pub fn compare(spec: &JobSpec, records: &[u64], plans: &[(Algorithm, Plan)]) -> Result<Vec<AlgorithmPlan>, PlanError> {
    if records.len() != spec.parties.len() {
        return Err(PlanError::Guess(format!("{} record counts for {} parties", records.len(), spec.parties.len())));
    }
    let mut rows = Vec::new();
    // Algorithms omitted from `ALL` because of their cost or limitations have a row only if the job names them.
    let own = Some(spec.algorithm).filter(|own| !ALL.contains(own));
    for algorithm in ALL.into_iter().chain(own) {
        let Ok(spec) = spec.by(algorithm) else { continue };
        let plan = plans.iter().find(|(of, _)| *of == algorithm).map(|(_, plan)| plan);
        rows.push(match engine(algorithm).error_source {
            ErrorSource::Release { note, .. } => {
                let refusal = "no usable answer can be expected, so nothing is queried";
                expected(&spec, records, spec.most_rounds(), [note, refusal])
            }
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

/// Forecast from the expected error before any query; `rounds` and the notes are those of the algorithm, and of a refused job.
fn expected(spec: &JobSpec, records: &[u64], rounds: Option<u64>, [note, refusal]: [&str; 2]) -> AlgorithmPlan {
    let parties = PartyMetadata::of_rows(records);
    match sampler::outlook(spec, &parties) {
        Ok(Some(outlook)) => {
            let refused = prospect(spec, &parties).is_some();
            let range = Range::of_cases(outlook.best, outlook.worse);
            let small = if refused { Vec::new() } else { sampler::small_parties(spec, &parties) };
            let note = match (refused, small.is_empty()) {
                (true, _) => refusal.to_owned(),
                (_, true) => note.to_owned(),
                _ => format!("{note}; the own values of {} will rest on the other parties", small.join(", ")),
            };
            AlgorithmPlan { refused, ..AlgorithmPlan::new(spec.algorithm, Some(range), rounds, &note) }
        }
        Ok(None) => AlgorithmPlan::new(spec.algorithm, None, None, ""),
        Err(error) => AlgorithmPlan::refused(spec.algorithm, &error.to_string()),
    }
}

/// Forecast for draws of candidates, each an independent draw of the posterior: the error of the mean of that number of draws.
fn chosen(spec: &JobSpec, records: &[u64]) -> AlgorithmPlan {
    let row = |error, note: &str| AlgorithmPlan::new(spec.algorithm, error, None, note);
    let parties = PartyMetadata::of_rows(records);
    if let Err(error) = sampler::build(spec, &parties) {
        return AlgorithmPlan::refused(spec.algorithm, &error.to_string());
    }
    let price = parties.first().and_then(|party| sampler::foreseen_choice(spec, *party).ok().flatten());
    let (Some(price), Ok(filter)) = (price, PrivacyFilter::new(&spec.privacy.budget)) else {
        return row(None, "the cost of a draw depends on the result of the search");
    };
    let left = (1.0 - spec.sampler.locate_share) * filter.limit_units() as f64;
    let draws = spec.sampler.draws.min((left / price.units.max(1) as f64) as u64).max(1);
    let error = (draws as f64).sqrt().recip();
    let note = format!(
        "{draws} draws of the posterior, each among {} candidates, at a mu of at least {:.3} per draw: as wide as without privacy, except for this Monte Carlo error",
        price.candidates, price.mu
    );
    row(Some(Range::of(error, error)), &note)
}

fn driven(spec: &JobSpec, records: &[u64], plan: Option<&Plan>) -> AlgorithmPlan {
    match plan.filter(|_| prospect(spec, &PartyMetadata::of_rows(records)).is_none()) {
        Some(plan) => of_plan(spec.algorithm, plan),
        None => expected(spec, records, None, [CHAIN, "too few effective draws, so nothing is queried"]),
    }
}

fn of_plan(algorithm: Algorithm, plan: &Plan) -> AlgorithmPlan {
    let finite: Vec<f64> = plan.ess.iter().map(|row| row.ess).filter(|ess| ess.is_finite()).collect();
    let error = (finite.iter().map(|ess| ess.max(0.0).recip()).sum::<f64>() / finite.len().max(1) as f64).sqrt();
    let more = if plan.stopped_by == "draws" { ", which more draws would reduce" } else { "" };
    AlgorithmPlan::new(algorithm, Some(Range::of(error, error)), Some(plan.iterations), &format!("{CHAIN}{more}"))
}

fn of_chain(spec: &JobSpec, records: &[u64], plan: Option<&Plan>) -> AlgorithmPlan {
    let algorithm = spec.algorithm;
    if let Some(plan) = plan {
        return of_plan(algorithm, plan);
    }
    let refused = prospect(spec, &PartyMetadata::of_rows(records)).is_some();
    let records = records.iter().map(|n| *n as f64).sum();
    let of = |case| penalty_error(spec, records, case);
    match of(Case::Best).and_then(|best| Ok(Range::of_cases(best, of(Case::Worse)?))) {
        Ok(range) if range.best.is_infinite() => {
            let row = AlgorithmPlan::new(algorithm, Some(range), None, "the budget ends before the first kept draw");
            AlgorithmPlan { refused, ..row }
        }
        Ok(range) => AlgorithmPlan::new(algorithm, Some(range), None, &format!("{CHAIN}; rounds need a guess of the posterior")),
        Err(error) => AlgorithmPlan::refused(algorithm, &error.to_string()),
    }
}

/// Forecast for a chain without a guess of the posterior.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct ChainRange {
    /// Rounds of the forecast run, over all chains together.
    pub rounds: Range,
    /// Kept draws per chain.
    pub draws: Range,
    /// Effective draws of the parameter with the fewest.
    pub effective: Range,
}

/// Plans a job with a chain from the posterior that its bounds and priors imply, with independent parameters.
///
/// # Errors
/// The errors of [`plan`].
pub fn range(spec: &JobSpec, records: &[u64]) -> Result<ChainRange, PlanError> {
    let (best, worse) = (of(spec, records, Case::Best)?, of(spec, records, Case::Worse)?);
    let between = |figure: fn(&Plan) -> f64| {
        let (best, worse) = (figure(&best), figure(&worse));
        Range { best: best.max(worse), worse: worse.min(best) }
    };
    Ok(ChainRange {
        rounds: between(|plan| plan.iterations as f64),
        draws: between(|plan| plan.draws as f64),
        // The margin of an error, for the number of draws that causes it.
        effective: Range { best: least(&best).max(least(&worse)), worse: least(&best).min(least(&worse)) / (MARGIN * MARGIN) },
    })
}

/// Returns the plan at the position with the most effective draws.
fn of(spec: &JobSpec, records: &[u64], case: Case) -> Result<Plan, PlanError> {
    let total = records.iter().map(|n| *n as f64).sum();
    let mut found: Option<Plan> = None;
    for place in beforehand(spec, total, case) {
        let next = plan(spec, &Guess::around(spec, records.to_vec(), &place.theta, &place.sd))?;
        if found.as_ref().is_none_or(|plan| least(plan) < least(&next)) {
            found = Some(next);
        }
    }
    found.ok_or_else(|| PlanError::Guess("the bounds and priors give no information about the posterior".to_owned()))
}

fn least(plan: &Plan) -> f64 {
    plan.ess.iter().map(|row| row.ess).filter(|ess| ess.is_finite()).fold(f64::INFINITY, f64::min)
}
