//! A rehearsal's run: the sampler sends queries, the parties of this process answer, and the draws are kept.

use std::borrow::Cow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use conclave_common::job::JobSpec;
use conclave_common::query::Phase;
use conclave_draws::attributes;
use conclave_draws::result::{self, Outcome, PartyOutcome, RunResult, StoppedBy};
use conclave_draws::spent::Spent;
use conclave_draws::zarr::DrawStore;
use conclave_inference::planner;
use conclave_inference::planner::Guess;
use conclave_inference::rehearsal::{Answer, Rehearsal};
use conclave_inference::sampler;
use conclave_inference::sampler::{Next, Sampler, SamplerError, Totals};
use conclave_predict::Level;
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::pass::ModelData;
use conclave_proto::error::{ErrorCode, Fault};
use rand_chacha::ChaCha20Rng;
use serde::Serialize;

use crate::faults::{input, internal};
use crate::interval;

/// Id of a rehearsal, unknown to any coordinator.
const JOB: &str = "rehearsal";

/// A rehearsal's object: that of a finished run, and the input of a plan.
#[derive(Serialize)]
pub(crate) struct Rehearsed {
    #[serde(flatten)]
    result: RunResult,
    /// Record counts, and the posterior's mean and covariance.
    plan: Guess,
    #[serde(skip)]
    draws: DrawStore,
}

impl Rehearsed {
    /// Returns the object as JSON, with intervals of another level than 90% where one is named.
    ///
    /// # Errors
    /// An object that is no JSON.
    pub(crate) fn json(&self, spec: &JobSpec, level: Option<Level>) -> Result<String, Fault> {
        let failed = |e: serde_json::Error| internal(e.to_string());
        let Some(level) = level else { return serde_json::to_string(self).map_err(failed) };
        let mut object = serde_json::to_value(self).map_err(failed)?;
        interval::of_store(&mut object, spec, &self.draws, level);
        Ok(object.to_string())
    }
}

/// A rehearsal in progress.
struct Run<'a> {
    /// The job, with its number of chains settled.
    spec: Cow<'a, JobSpec>,
    parties: Rehearsal<ChaCha20Rng>,
    sampler: Box<dyn Sampler>,
    draws: DrawStore,
    began: Instant,
    iterations: u64,
}

/// The state of a rehearsal after a round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RehearsalState {
    /// The phase of the last round.
    pub(crate) phase: Phase,
    /// Rounds so far.
    pub(crate) rounds: u64,
    /// Draws kept of each chain.
    pub(crate) draws: u64,
    /// Draws of each chain that end the run.
    pub(crate) draws_asked: u64,
}

/// The reason for a run's end, and the party whose budget ended it.
type Stopped = (StoppedBy, Option<String>);

/// Runs a job to its end on these shards, or until `stop` is set. `observe` is given the state after every round.
///
/// # Errors
/// A job that the shards or the budget do not fit; a run without a draw; a store that cannot be written.
pub(crate) fn rehearse(
    spec: &JobSpec,
    shards: Vec<(ModelData, PrivacyUnit)>,
    rng: ChaCha20Rng,
    out: Option<&Path>,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(&RehearsalState),
) -> Result<Rehearsed, Fault> {
    let records: Vec<u64> = shards.iter().map(|(data, _)| data.records()).collect();
    let mut run = Run::new(spec, shards, rng, out)?;
    let stopped = run.rounds(stop, observe)?;
    let outcome = run.outcome(stopped);
    if run.draws.kept() == 0 {
        return Err(Run::without_draws(&outcome));
    }
    let Run { spec, draws: mut kept, .. } = run;
    let result = result::build(&spec, JOB, out, &kept, &outcome);
    if let Some(out) = out {
        kept.finish(&spec, &attributes::at_end(&spec, JOB, &result)).map_err(|e| written(out, &e))?;
    }
    let plan = moments(&kept, spec.model.parameter_names().len(), records);
    Ok(Rehearsed { result, plan, draws: kept })
}

impl<'a> Run<'a> {
    fn new(
        spec: &'a JobSpec,
        shards: Vec<(ModelData, PrivacyUnit)>,
        rng: ChaCha20Rng,
        out: Option<&Path>,
    ) -> Result<Self, Fault> {
        let parties = Rehearsal::new(spec, shards, rng).map_err(|e| input(e.to_string()))?;
        let metadata = parties.metadata();
        let spec = sampler::settled(spec, &metadata);
        let sampler = sampler::build(&spec, &metadata).map_err(unfit)?;
        if let Some(futility) = planner::prospect(&spec, &metadata) {
            return Err(Fault::new(ErrorCode::Budget, futility.to_string()));
        }
        let (names, chains) = (spec.draw_names(), spec.sampler.chains as usize);
        let draws = match out {
            Some(out) => {
                DrawStore::create(out, chains, &names, &attributes::at_start(&spec, JOB)).map_err(|e| written(out, &e))?
            }
            None => DrawStore::in_memory(Path::new(""), chains, &names),
        };
        Ok(Self { spec, parties, sampler, draws, began: Instant::now(), iterations: 0 })
    }

    /// Runs round after round, and keeps the draws.
    fn rounds(&mut self, stop: &AtomicBool, observe: &mut dyn FnMut(&RehearsalState)) -> Result<Stopped, Fault> {
        let stopped = self.rounds_until_end(stop, observe)?;
        if matches!(stopped.0, StoppedBy::Cancelled | StoppedBy::Budget | StoppedBy::Futility) {
            // As in a real run: draws are made from what is released, if the algorithm makes any.
            self.sampler.conclude().map_err(unfit)?;
            self.keep_draws();
        }
        Ok(stopped)
    }

    fn rounds_until_end(&mut self, stop: &AtomicBool, observe: &mut dyn FnMut(&RehearsalState)) -> Result<Stopped, Fault> {
        let draws_asked = self.spec.draws_asked();
        let stopped = loop {
            if !self.free_draws(stop)? {
                break (StoppedBy::Cancelled, None);
            }
            let round = match self.sampler.next_round() {
                Ok(Next::Ask(round)) => round,
                Ok(Next::Done) => {
                    self.keep_draws();
                    break (StoppedBy::regular_end(&self.spec, self.draws.kept() as u64, self.sampler.ended_by_budget()), None);
                }
                // As in a real run: the draws are kept and marked.
                Ok(Next::Stopped(_)) => break (StoppedBy::Clip, None),
                Err(other) => return Err(unfit(other)),
            };
            if stop.load(Ordering::Relaxed) {
                break (StoppedBy::Cancelled, None);
            }
            match self.parties.answer(&round).map_err(|e| input(e.to_string()))? {
                Answer::Released(releases) => {
                    let totals = Totals::of(&round, &releases);
                    totals.and_then(|totals| self.sampler.absorb(&totals)).map_err(unfit)?;
                }
                Answer::Refused { party, .. } => break (StoppedBy::Budget, Some(self.spec.parties[party].clone())),
            }
            self.iterations += 1;
            self.keep_draws();
            if self.sampler.futility().is_some() && !self.ended()? {
                break (StoppedBy::Futility, None);
            }
            let (rounds, draws) = (self.iterations, self.draws.kept() as u64);
            observe(&RehearsalState { phase: round.phase, rounds, draws, draws_asked });
        };
        // Draws decided without a query, at the edge of the parameter box, count too.
        self.keep_draws();
        Ok(stopped)
    }

    /// Makes the draws that need no query, slice by slice; returns false if `stop` was set meanwhile.
    fn free_draws(&mut self, stop: &AtomicBool) -> Result<bool, Fault> {
        while self.sampler.work().map_err(unfit)? {
            self.keep_draws();
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn keep_draws(&mut self) {
        self.sampler.take_draws().into_iter().for_each(|draw| self.draws.push(&draw.into()));
    }

    fn outcome(&self, (stopped_by, budget_party): Stopped) -> Outcome {
        let spent = self.parties.spent().into_iter().map(|(queries, units)| Spent { queries, units });
        let parties = self.spec.parties.iter().zip(self.parties.metadata()).zip(spent);
        let forecast = self.sampler.futility().filter(|_| stopped_by == StoppedBy::Futility);
        let warnings = self.sampler.warnings().into_iter().chain(forecast.map(|forecast| forecast.word(&self.spec)));
        Outcome {
            stopped_by,
            budget_party,
            iterations: self.iterations,
            seconds: self.began.elapsed().as_secs_f64(),
            refit_of: None,
            warnings: warnings.collect(),
            report: self.sampler.report(),
            parties: parties
                .map(|((name, metadata), spent)| PartyOutcome { name: name.clone(), metadata: Some(metadata), spent })
                .collect(),
        }
    }

    /// Returns true if the sampler has no further query.
    fn ended(&mut self) -> Result<bool, Fault> {
        Ok(self.sampler.next_round().map_err(unfit)?.as_round().is_none())
    }

    /// Returns the fault of a run that kept no draw.
    fn without_draws(outcome: &Outcome) -> Fault {
        let stopped_by = outcome.stopped_by;
        // A clip that stops the chains is the first warning.
        if let Some(reason) = outcome.warnings.first().filter(|_| stopped_by == StoppedBy::Clip) {
            return input(reason.clone());
        }
        let remedy = "raise the job's epsilon, or shorten its warm-up; `conclave plan` shows the rounds that a budget affords";
        let code = if stopped_by == StoppedBy::Budget { ErrorCode::Budget } else { ErrorCode::InvalidInput };
        Fault::new(code, "not one draw was kept").with_remedy(remedy)
    }
}

/// Computes the posterior mean and covariance of the kept draws.
fn moments(draws: &DrawStore, parameters: usize, records: Vec<u64>) -> Guess {
    let columns: Vec<Vec<f64>> = (0..parameters).map(|i| draws.samples(i).concat()).collect();
    let count = columns.first().map_or(0, Vec::len) as f64;
    let mean: Vec<f64> = columns.iter().map(|c| c.iter().sum::<f64>() / count).collect();
    let covariance = |i: usize, j: usize| {
        let products = columns[i].iter().zip(&columns[j]).map(|(x, y)| (x - mean[i]) * (y - mean[j]));
        products.sum::<f64>() / (count - 1.0).max(1.0)
    };
    let covariance = (0..parameters).map(|i| (0..parameters).map(|j| covariance(i, j)).collect()).collect();
    Guess { records, mean, covariance }
}

fn written(path: &Path, error: &std::io::Error) -> Fault {
    Fault::of_file(path, "be written", error)
}

/// Converts a sampler's refusal to a fault: of the budget, or of the user's input.
fn unfit(error: SamplerError) -> Fault {
    let code = if error.is_of_budget() { ErrorCode::Budget } else { ErrorCode::InvalidInput };
    Fault::new(code, error.to_string())
}
