//! The chains of one job: sampler, iteration log, spending and draws, kept in step.

use std::sync::Arc;
use std::time::{Duration, Instant};

use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_common::query::{Draw, PartyMetadata, Phase, Round};
use conclave_draws::spent::Spent;
use conclave_draws::zarr::DrawStore;
use conclave_inference::planner;
use conclave_inference::sampler;
use conclave_inference::sampler::{Next, ReplayError, RunReport, Sampler, SamplerError, Totals};
use conclave_privacy::accounting::PrivacyFilter;
use conclave_proto::error::{ErrorCode, Fault};
use tokio::runtime::{Handle, RuntimeFlavor};

use super::attributes;
use super::draw_writer::DrawWriter;
use super::job::Job;
use super::round_terms::RoundTerms;
use super::spending::Spending;
use super::stop::StopReason;
use crate::store::{LoggedRound, Store, StoreError};

/// The running chains of a job.
pub(super) struct Chain {
    job: Arc<Job>,
    store: Store,
    model: Box<dyn Model>,
    sampler: Box<dyn Sampler>,
    /// The current round, or the run's end.
    next: Next,
    writer: DrawWriter,
    spending: Spending,
    /// Maximum charge of the job at one party, in units of 2^-48 of mu².
    limit_units: u64,
    rounds: u64,
    /// Kept draws of all chains.
    kept: u64,
    clock: Clock,
}

/// Sampling time: from the first query to the last draw, continued from the log after a restart.
#[derive(Debug, Default)]
struct Clock {
    before: Duration,
    started: Option<Instant>,
}

impl Clock {
    fn start(&mut self) {
        self.started.get_or_insert_with(Instant::now);
    }

    fn elapsed(&self) -> Duration {
        self.before + self.started.map(|s| s.elapsed()).unwrap_or_default()
    }
}

/// A sampler replayed to the end of the log; created on a thread that may block.
struct Replayed {
    model: Box<dyn Model>,
    sampler: Box<dyn Sampler>,
    draws: DrawStore,
    spending: Spending,
    rounds: u64,
    kept: u64,
    before: Duration,
}

impl Chain {
    /// Starts the chains, or continues them from the log.
    ///
    /// # Errors
    /// A log that does not fit the job, a draws folder that can't be written.
    pub(super) async fn start(job: Arc<Job>, store: Store, parties: Vec<PartyMetadata>) -> Result<Self, StopReason> {
        let (for_replay, its_store) = (Arc::clone(&job), store.clone());
        let (replayed, next) = tokio::task::spawn_blocking(move || replay(&for_replay, &its_store, &parties))
            .await
            .map_err(|e| stopped(format!("the replay of the iteration log failed: {e}")))??;
        if replayed.rounds > 0 {
            tracing::info!(job = %job.id, rounds = replayed.rounds, "continued from the iteration log");
        }
        Ok(Self {
            writer: DrawWriter::start(replayed.draws, store.clone(), job.live.clone()),
            // If no ledger can be kept for the budget, every party refuses the job.
            limit_units: PrivacyFilter::new(&job.spec.privacy.budget).map_or(u64::MAX, |filter| filter.limit_units()),
            job,
            store,
            model: replayed.model,
            sampler: replayed.sampler,
            next,
            spending: replayed.spending,
            rounds: replayed.rounds,
            kept: replayed.kept,
            clock: Clock { before: replayed.before, started: None },
        })
    }

    /// The current round, or the run's end.
    pub(super) fn next(&self) -> &Next {
        &self.next
    }

    /// Starts the sampling clock if it is not running yet.
    pub(super) fn start_clock(&mut self) {
        self.clock.start();
    }

    /// Logs and absorbs a complete round, and prepares the next one. [`Self::settle`] does the work that can wait until the next
    /// queries are sent.
    ///
    /// # Errors
    /// A store that can't be written; a round that the sampler can't make.
    pub(super) fn absorb(&mut self, iteration: u64, releases: &[Vec<i64>]) -> Result<Unsettled, StopReason> {
        let elapsed = self.clock.elapsed().as_micros() as u64;
        self.store.log_round(&self.job.id, iteration, elapsed, releases).map_err(store_stopped)?;
        let asked = std::mem::replace(&mut self.next, Next::Done).round();
        let round = asked.as_ref().ok_or_else(|| stopped(SamplerError::NoRound.to_string()))?;
        let totals = Totals::of(round, releases);
        let sampler = &mut self.sampler;
        let take = || {
            totals.and_then(|totals| sampler.absorb(&totals)).map_err(refused)?;
            sampler.next_round().map_err(unfit)
        };
        // An algorithm without proposals makes all its draws here, which may take a while: other jobs' tasks move to other
        // threads.
        let alone = self.job.spec.algorithm.proposes() || Handle::current().runtime_flavor() != RuntimeFlavor::MultiThread;
        self.next = if alone { take()? } else { tokio::task::block_in_place(take)? };
        self.rounds += 1;
        Ok(Unsettled(asked))
    }

    /// Adds the charges of an absorbed round and writes its draws; returns the number of kept draws.
    ///
    /// # Errors
    /// A draws folder that can't be written; a charge that can't be computed.
    pub(super) fn settle(&mut self, unsettled: Unsettled) -> Result<u64, StopReason> {
        if let Some(round) = unsettled.0 {
            self.spending.add(&round, self.model.as_ref(), &self.job.spec).map_err(stopped)?;
        }
        let draws = self.sampler.take_draws();
        let kept = count_kept(&draws);
        self.kept += kept;
        self.writer.push(draws);
        match self.writer.failed() {
            // The cause comes with the end of the writer.
            true => Err(StopReason::Unwritten(Fault::new(ErrorCode::Internal, "the draws can't be written"))),
            false => Ok(kept),
        }
    }

    /// Terms of the current round's queries.
    pub(super) fn terms(&self) -> RoundTerms {
        let (accounts, of_party) = (self.spending.accounts(), self.spending.of_party());
        let terms = |round| RoundTerms::of(round, self.model.as_ref(), &self.job.spec, accounts, of_party);
        self.next.as_round().map(terms).unwrap_or_default()
    }

    /// Cost of the current round to a party that has answered it.
    pub(super) fn unfinished_cost(&self, party: usize) -> Spent {
        let cost = |round| self.spending.cost(party, round, self.model.as_ref(), &self.job.spec);
        self.next.as_round().map(cost).and_then(Result::ok).unwrap_or_default()
    }

    /// The party to ask first when the job's budget is nearly exhausted.
    pub(super) fn party_with_least_budget(&self) -> Option<usize> {
        self.spending.party_with_least_budget(self.limit_units)
    }

    /// Charges of a party for absorbed rounds.
    pub(super) fn spent(&self, party: usize) -> Spent {
        self.spending.of(party).1
    }

    pub(super) fn rounds(&self) -> u64 {
        self.rounds
    }

    pub(super) fn kept(&self) -> u64 {
        self.kept / u64::from(self.job.spec.sampler.chains)
    }

    /// Warnings for the analyst, about an explicit clip and from the sampler.
    pub(super) fn warnings(&self) -> Vec<String> {
        self.sampler.warnings()
    }

    /// Returns what the algorithm states beside its draws.
    pub(super) fn report(&self) -> RunReport {
        self.sampler.report()
    }

    /// The reason why the run is futile, if it is.
    pub(super) fn futility(&self) -> Option<String> {
        self.sampler.futility().map(|forecast| forecast.word(&self.job.spec))
    }

    /// Makes the draws that the releases so far allow, if the run ends before all planned releases.
    ///
    /// # Errors
    /// The sampler can make no draws.
    pub(super) fn conclude(&mut self) -> Result<(), StopReason> {
        self.sampler.conclude().map_err(unfit)?;
        let draws = self.sampler.take_draws();
        self.kept += count_kept(&draws);
        self.writer.push(draws);
        Ok(())
    }

    /// Returns true if the chains ended by the budget as planned.
    pub(super) fn ended_by_budget(&self) -> bool {
        self.sampler.ended_by_budget()
    }

    pub(super) fn phase(&self) -> Phase {
        self.sampler.phase()
    }

    pub(super) fn acceptance_rate(&self) -> f64 {
        self.sampler.acceptance_rate().unwrap_or_default()
    }

    pub(super) fn seconds(&self) -> f64 {
        self.clock.elapsed().as_secs_f64()
    }

    /// Writes the remaining draws.
    ///
    /// # Errors
    /// A draws folder that can't be written.
    pub(super) async fn finish(self) -> Result<DrawStore, Fault> {
        self.writer.close().await.map_err(|e| self.job.draws_fault(&e))
    }
}

/// An absorbed round whose charges are not added yet.
#[must_use]
pub(super) struct Unsettled(Option<Round>);

fn count_kept(draws: &[Draw]) -> u64 {
    draws.iter().filter(|d| !d.warmup).count() as u64
}

/// Replays the log; returns the chains at its end and the next round.
fn replay(job: &Job, store: &Store, parties: &[PartyMetadata]) -> Result<(Replayed, Next), StopReason> {
    let spec: &JobSpec = &job.spec;
    let model = spec.build_model();
    let chains = spec.sampler.chains as usize;
    // Left by an end that was not stored: the log decides.
    match std::fs::remove_file(job.packed_path()) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(StopReason::Unwritten(job.draws_fault(&e))),
        _ => {}
    }
    let draws = DrawStore::create(&job.draws, chains, &spec.draw_names(), &attributes::at_start(job))
        .map_err(|e| StopReason::Unwritten(job.draws_fault(&e)))?;
    let sampler = sampler::build(spec, parties).map_err(unfit)?;
    let mut replayed = Replayed {
        model,
        sampler,
        draws,
        spending: Spending::new(parties, spec.sites.is_some()),
        rounds: 0,
        kept: 0,
        before: Duration::ZERO,
    };
    store.replay(&job.id, spec.parties.len(), |logged| replayed.step(job, &logged))?;
    if replayed.rounds == 0
        && let Some(futility) = planner::prospect(spec, parties)
    {
        return Err(StopReason::Failed(Fault::new(ErrorCode::Budget, futility.to_string())));
    }
    let next = replayed.sampler.next_round().map_err(unfit)?;
    replayed.take_draws(job);
    replayed.draws.flush().map_err(|e| StopReason::Unwritten(job.draws_fault(&e)))?;
    Ok((replayed, next))
}

impl Replayed {
    fn step(&mut self, job: &Job, logged: &LoggedRound) -> Result<(), StopReason> {
        let round = self.sampler.replay(logged.iteration, &logged.releases).map_err(|error| match error {
            ReplayError::Asking(error) => unfit(error),
            // The same error as when the round was absorbed.
            ReplayError::Releases(error) if error.is_of_budget() => unfit(error),
            odd => stopped(format!(
                "the iteration log of job {} does not fit the job ({odd}): was it written by another version?",
                job.id
            )),
        })?;
        self.spending.add(&round, self.model.as_ref(), &job.spec).map_err(stopped)?;
        self.rounds += 1;
        self.before = Duration::from_micros(logged.elapsed_us);
        self.take_draws(job);
        Ok(())
    }

    fn take_draws(&mut self, job: &Job) {
        let draws = self.sampler.take_draws();
        if let Some(live) = &job.live {
            live.take(&draws);
        }
        self.kept += count_kept(&draws);
        draws.into_iter().for_each(|draw| self.draws.push(&draw.into()));
    }
}

/// Converts a sampler's refusal of a round. A budget too small for the next step ends the job with its own error; otherwise the
/// log is faulty.
fn refused(error: SamplerError) -> StopReason {
    if error.is_of_budget() { unfit(error) } else { stopped(error.to_string()) }
}

/// Ends a job that can't run or continue with what the parties hold: another try would end the same way.
fn unfit(error: SamplerError) -> StopReason {
    let code = if error.is_of_budget() { ErrorCode::Budget } else { ErrorCode::InvalidInput };
    let fault = Fault::new(code, error.to_string());
    StopReason::Failed(match error {
        SamplerError::UnknownCount { party } => fault.at_party(party),
        _ => fault,
    })
}

impl From<StoreError> for StopReason {
    fn from(error: StoreError) -> Self {
        store_stopped(error)
    }
}

fn store_stopped(error: StoreError) -> StopReason {
    stopped(error.to_string())
}

/// A fault of this machine or this software, not of the job: the job resumes after a restart.
fn stopped(message: impl Into<String>) -> StopReason {
    StopReason::Stopped(Fault::new(ErrorCode::Internal, message))
}
