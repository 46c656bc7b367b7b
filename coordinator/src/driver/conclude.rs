//! The end of a run: last answers, result and notifications.

use std::sync::Arc;
use std::time::Duration;

use conclave_draws::result::{self, Outcome, PartyOutcome, RunResult, StoppedBy};
use conclave_draws::spent::Spent;
use conclave_draws::zarr::pack_folder;
use conclave_proto::error::{ErrorCode, Fault};

use super::attributes;
use super::chain::Chain;
use super::job::Job;
use super::run::{Driver, Requeued};
use super::stop::StopReason;
use crate::clock::{Timestamp, now_ms};
use crate::party_event::Event;
use crate::status::{State, Status, WAITS_FOR_OPERATOR, grade_of};
use crate::store::{JobEnd, RunEnd};

/// Time to wait for answers in flight when a job ends in the middle of a round. They are discarded, but their cost counts as
/// spent.
const LAST_ANSWERS: Duration = Duration::from_secs(3);

/// Returns true for an early end, after which draws are made from the releases so far.
fn ends_early(ending: &StopReason) -> bool {
    matches!(ending, StopReason::Budget { .. } | StopReason::Cancelled | StopReason::Refused(_) | StopReason::Failed(_))
}

/// The outcome of a job, as the analyst sees it.
struct Verdict {
    state: State,
    stopped_by: StoppedBy,
    fault: Option<Fault>,
    /// The party whose budget ended the run.
    budget_party: Option<String>,
}

impl Driver {
    pub(super) async fn end(mut self, ending: StopReason) -> Option<Requeued> {
        if ends_early(&ending) {
            self.await_last_answers(&ending).await;
        }
        match self.of_store(ending) {
            StopReason::Shutdown => drop(self.leave().await),
            StopReason::Full(reason) => return Some(self.requeue(reason)),
            StopReason::Unwritten(fault) => {
                let fault = match self.chain.take() {
                    Some(chain) => chain.finish().await.err().unwrap_or(fault),
                    None => fault,
                };
                return Some(self.hold(&fault));
            }
            StopReason::Stopped(fault) => {
                let message = format!("{fault}; the job is not lost: fix this and restart the coordinator");
                tracing::error!(job = %self.job.id, "{message}");
                let mut status = self.snapshot();
                (status.state, status.fault) = (State::Failed, Some(Fault { message, ..fault }));
                self.leave().await.send_replace(status);
            }
            ending => return self.conclude(ending).await,
        }
        None
    }

    /// Returns the store's own failure for draws that can't be written because of it.
    fn of_store(&self, ending: StopReason) -> StopReason {
        match (ending, self.store.check()) {
            (StopReason::Unwritten(_), Err(error)) => error.into(),
            (ending, _) => ending,
        }
    }

    /// Returns a job to the queue whose draws can't be written. Nothing is lost: they are computed again from the log.
    fn hold(self, fault: &Fault) -> Requeued {
        tracing::error!(job = %self.job.id, %fault, "the job waits: free the disk or repair the folder of the draws");
        let reason = format!("{WAITS_FOR_OPERATOR}: {}", fault.message);
        self.requeue(reason)
    }

    /// Leaves the parties without ending the job, which starts again when there is room.
    fn requeue(self, reason: String) -> Requeued {
        tracing::info!(job = %self.job.id, reason, "job returned to the queue");
        self.party_registry.requeue(&self.job.id, &self.job.spec.parties);
        // A queued job waits for no party.
        self.store.store_waits(&self.job.id, vec![None; self.job.spec.parties.len()]);
        let metadata = self.members.list.iter().map(|member| member.metadata).collect();
        Requeued { metadata, job: self.job, status: self.status, stop: self.stop, reason }
    }

    /// Writes the draws to disk and leaves the job unfinished in the store.
    async fn leave(self) -> tokio::sync::watch::Sender<Status> {
        if let Some(chain) = self.chain
            && let Err(fault) = chain.finish().await
        {
            // They are recomputed from the log.
            tracing::warn!(job = %self.job.id, %fault, "the last draws were not written");
        }
        self.party_registry.unsubscribe(&self.job.id);
        self.status
    }

    async fn conclude(mut self, ending: StopReason) -> Option<Requeued> {
        // Every other end comes again when the job resumes from its log.
        let again = ending != StopReason::Cancelled;
        let early = ends_early(&ending) || ending == StopReason::Futility;
        if let Some(chain) = self.chain.as_mut().filter(|_| early)
            && let Err(reason) = chain.conclude()
        {
            tracing::warn!(job = %self.job.id, ?reason, "no draws could be made from the releases");
        }
        let kept = self.chain.as_ref().map(Chain::kept).unwrap_or_default();
        let verdict = self.verdict(ending, kept);
        let mut status = self.snapshot();
        for (party, shown) in status.parties.iter_mut().enumerate() {
            shown.spent = self.spent_at(party);
            shown.epsilon_spent = shown.spent.epsilon(&self.job.spec.privacy.budget);
        }
        (status.state, status.fault) = (verdict.state, verdict.fault.clone());
        status.result = match self.write_result(&verdict, &status).await {
            Ok(result) => result,
            Err(fault) if again => return Some(self.hold(&fault)),
            Err(fault) => {
                tracing::error!(job = %self.job.id, %fault, "the draws of a cancelled job are lost");
                None
            }
        };
        status.grade = grade_of(status.result.as_deref());
        if status.result.is_none() {
            pack_leftover_draws(Arc::clone(&self.job)).await;
        }
        let run = RunEnd {
            iterations: status.iteration,
            draws: status.draws,
            acceptance_rate: status.acceptance_rate,
            seconds: status.seconds,
            fault: status.fault.clone(),
            result: status.result.clone(),
        };
        let spent = status.parties.iter().map(|p| (p.spent.queries, p.spent.units)).collect();
        self.store.end_job(JobEnd { id: self.job.id.to_string(), state: status.state.as_str(), run, at_ms: now_ms(), spent });
        if let Err(error) = self.store.barrier().await {
            tracing::error!(job = %self.job.id, %error, "the job's end was not stored");
        }
        let reason = verdict.fault.map_or_else(|| status.state.as_str().to_owned(), |fault| fault.to_string());
        tracing::info!(job = %self.job.id, state = status.state.as_str(), reason, draws = status.draws, "job ended");
        self.party_registry.end(&self.job.id, &reason, &self.job.spec.parties);
        self.status.send_replace(status);
        None
    }

    fn verdict(&self, ending: StopReason, kept: u64) -> Verdict {
        let failed = |stopped_by, fault| Verdict { state: State::Failed, stopped_by, fault: Some(fault), budget_party: None };
        let plain = |state, stopped_by| Verdict { state, stopped_by, fault: None, budget_party: None };
        match ending {
            StopReason::Finished => {
                let by_budget = self.chain.as_ref().is_some_and(Chain::ended_by_budget);
                plain(State::Finished, StoppedBy::regular_end(&self.job.spec, kept, by_budget))
            }
            StopReason::Futility => plain(State::Finished, StoppedBy::Futility),
            StopReason::Cancelled => plain(State::Cancelled, StoppedBy::Cancelled),
            StopReason::Budget { party, .. } if kept > 0 => {
                let party = self.members.list[party].name.clone();
                Verdict { budget_party: Some(party), ..plain(State::Finished, StoppedBy::Budget) }
            }
            StopReason::Budget { party, message } => {
                let message = format!(
                    "{message}, and no draw had been kept by then: raise the job's epsilon, shorten its warm-up, or \
                     ask the owner for the remaining budget"
                );
                let fault = Fault::new(ErrorCode::Budget, message).at_party(self.members.list[party].name.clone());
                failed(StoppedBy::Budget, fault)
            }
            // Earlier draws were made with the parties' consent: they are kept, and the state shows that the run did not end
            // well.
            StopReason::Refused(fault) => failed(StoppedBy::Policy, fault),
            StopReason::Clipped(fault) => failed(StoppedBy::Clip, fault),
            // A failure at one party undoes neither the others' spending nor the draws.
            StopReason::Failed(fault) | StopReason::Stopped(fault) | StopReason::Unwritten(fault) => {
                failed(StoppedBy::Failure, fault)
            }
            StopReason::Shutdown | StopReason::Full(_) => plain(State::Queued, StoppedBy::Cancelled),
        }
    }

    /// A party's total charges: every complete round, and the last one if the party answered it.
    fn spent_at(&self, party: usize) -> Spent {
        let Some(chain) = &self.chain else { return Spent::default() };
        match self.members.has_answered(party) {
            true => chain.spent(party).plus(chain.unfinished_cost(party)),
            false => chain.spent(party),
        }
    }

    /// Completes and summarises the draws; `None` if there is nothing to summarise.
    ///
    /// # Errors
    /// Draws that can't be written.
    async fn write_result(&mut self, verdict: &Verdict, status: &Status) -> Result<Option<String>, Fault> {
        let Some(chain) = self.chain.take() else { return Ok(None) };
        let futility = chain.futility().filter(|_| verdict.stopped_by == StoppedBy::Futility);
        let warnings = chain.warnings().into_iter().chain(futility).collect();
        let report = chain.report();
        let mut draws = chain.finish().await?;
        let job = Arc::clone(&self.job);
        if draws.kept() == 0 {
            return Ok(None);
        }
        let outcome = Outcome {
            stopped_by: verdict.stopped_by,
            budget_party: verdict.budget_party.clone(),
            iterations: status.iteration,
            seconds: status.seconds,
            refit_of: None,
            warnings,
            report,
            parties: status
                .parties
                .iter()
                .map(|p| PartyOutcome { name: p.name.clone(), metadata: p.metadata, spent: p.spent })
                .collect(),
        };
        let summarised = tokio::task::spawn_blocking(move || {
            let packed = job.packed_path();
            let mut result = result::build(&job.spec, &job.id, Some(&packed), &draws, &outcome);
            if let Err(error) = draws.pack(&job.spec, &attributes::at_end(&job, &result), &packed) {
                tracing::error!(job = %job.id, %error, "the draws could not be packed into one file and stay in their folder");
                result.draws = Some(job.draws.display().to_string());
            }
            result
        });
        let failed = |error| tracing::error!(job = %self.job.id, %error, "the summary failed");
        Ok(summarised.await.map(|result| RunResult::to_json(&result)).map_err(failed).ok())
    }

    async fn await_last_answers(&mut self, ending: &StopReason) {
        let parties = 0..self.members.list.len();
        let mut due: Vec<bool> = parties
            .map(|party| !self.queries.is_empty() && self.members.list[party].open && !self.members.has_answered(party))
            .collect();
        match ending {
            StopReason::Budget { party, .. } => due[*party] = false,
            StopReason::Refused(fault) | StopReason::Failed(fault) => {
                let refusing = self.members.list.iter().position(|m| Some(&m.name) == fault.party.as_ref());
                refusing.into_iter().for_each(|party| due[party] = false);
            }
            _ => {}
        }
        let all = async {
            while due.contains(&true) {
                let Some(event) = self.events.recv().await else { return };
                match event.event {
                    Event::Attached(queue) => {
                        self.members.attach(event.party, queue, Timestamp::now());
                        due[event.party] = false;
                    }
                    Event::Detached => {
                        self.members.detach(event.party, Timestamp::now());
                        due[event.party] = false;
                    }
                    Event::Received(message) => {
                        let heard = self.members.hear(event.party, message, Timestamp::now());
                        if heard.is_err() || self.members.has_answered(event.party) {
                            due[event.party] = false;
                        }
                    }
                }
            }
        };
        if tokio::time::timeout(LAST_ANSWERS, all).await.is_err() {
            tracing::debug!(job = %self.job.id, "ended without the last answers of every party");
        }
    }
}

/// Packs the folder of a job that ends without a result into one file, as those of other ended jobs are: it may hold a warm-up, or draws
/// that were made before a restart.
async fn pack_leftover_draws(job: Arc<Job>) {
    let id = Arc::clone(&job.id);
    let packed = tokio::task::spawn_blocking(move || match job.draws.is_dir() {
        true => pack_folder(&job.draws, &job.packed_path()).and_then(|()| std::fs::remove_dir_all(&job.draws)),
        false => Ok(()),
    });
    if let Err(error) = packed.await.map_err(std::io::Error::other).and_then(|packed| packed) {
        tracing::error!(job = %id, %error, "the draws could not be packed into one file and stay in their folder");
    }
}
