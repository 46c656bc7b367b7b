//! The end of a run: the last answers, the result, the word to everyone.

use std::sync::Arc;
use std::time::Duration;

use conclave_draws::result::{self, Outcome, PartyOutcome, RunResult, StoppedBy};
use conclave_draws::spent::Spent;
use conclave_proto::error::{ErrorCode, Fault};

use super::attributes;
use super::chain::Chain;
use super::run::{Driver, SentBack};
use super::stop::StopReason;
use crate::clock::Timestamp;
use crate::party_event::Event;
use crate::status::{State, Status};
use crate::store::{Ended, RunEnd};

/// How long answers on their way are waited for when a job ends in the middle of a round. They are discarded, but
/// what they cost is part of what the job has spent.
const LAST_ANSWERS: Duration = Duration::from_secs(3);

/// Whether a run ends before its time, of what may come between rounds: draws are made of what there is.
fn ends_early(ending: &StopReason) -> bool {
    matches!(ending, StopReason::Budget { .. } | StopReason::Cancelled | StopReason::Refused(_) | StopReason::Failed(_))
}

/// How a job ended, as the analyst sees it.
struct Verdict {
    state: State,
    stopped_by: StoppedBy,
    fault: Option<Fault>,
    /// The party whose budget ended the run.
    budget_party: Option<String>,
}

impl Driver {
    pub(super) async fn end(mut self, ending: StopReason) -> Option<SentBack> {
        if ends_early(&ending) {
            self.await_last_answers(&ending).await;
        }
        match ending {
            StopReason::Shutdown => drop(self.leave().await),
            StopReason::Full(reason) => return Some(self.send_back(reason)),
            StopReason::Stopped(fault) => {
                let message = format!("{fault}; the job is not lost: mend this and restart the coordinator");
                tracing::error!(job = %self.job.id, "{message}");
                let mut status = self.snapshot();
                (status.state, status.fault) = (State::Failed, Some(Fault { message, ..fault }));
                self.leave().await.send_replace(status);
            }
            ending => self.conclude(ending).await,
        }
        None
    }

    /// Takes leave of the parties without an end: the job begins anew when there is room.
    fn send_back(self, reason: String) -> SentBack {
        tracing::info!(job = %self.job.id, reason, "job back in the queue");
        self.party_registry.send_back(&self.job.id, &self.job.spec.parties);
        let metadata = self.members.list.iter().map(|member| member.metadata).collect();
        SentBack { metadata, job: self.job, status: self.status, stop: self.stop, reason }
    }

    /// Puts the draws on disk and goes, with the job unfinished in the store.
    async fn leave(self) -> tokio::sync::watch::Sender<Status> {
        if let Some(chain) = self.chain
            && let Err(fault) = chain.finish().await
        {
            // They are made again from the log.
            tracing::warn!(job = %self.job.id, %fault, "the last draws were not written");
        }
        self.party_registry.unsubscribe(&self.job.id);
        self.status
    }

    async fn conclude(mut self, ending: StopReason) {
        let early = ends_early(&ending);
        if let Some(chain) = self.chain.as_mut().filter(|_| early)
            && let Err(reason) = chain.conclude()
        {
            tracing::warn!(job = %self.job.id, ?reason, "no draws could be made of what was released");
        }
        let kept = self.chain.as_ref().map(Chain::kept).unwrap_or_default();
        let verdict = self.verdict(ending, kept);
        let mut status = self.snapshot();
        for (party, shown) in status.parties.iter_mut().enumerate() {
            shown.spent = self.spent_at(party);
            shown.epsilon_spent = shown.spent.epsilon(&self.job.spec.privacy.budget);
        }
        (status.state, status.fault) = (verdict.state, verdict.fault.clone());
        status.result = self.write_result(&verdict, &status).await;
        let run = RunEnd {
            iterations: status.iteration,
            draws: status.draws,
            acceptance_rate: status.acceptance_rate,
            seconds: status.seconds,
            fault: status.fault.clone(),
            result: status.result.clone(),
        };
        let spent = status.parties.iter().map(|p| (p.spent.queries, p.spent.units)).collect();
        self.store.end_job(Ended { id: self.job.id.to_string(), state: status.state.as_str(), run, spent });
        if let Err(error) = self.store.barrier().await {
            tracing::error!(job = %self.job.id, %error, "the job's end was not stored");
        }
        let reason = verdict.fault.map_or_else(|| status.state.as_str().to_owned(), |fault| fault.to_string());
        tracing::info!(job = %self.job.id, state = status.state.as_str(), reason, draws = status.draws, "job ended");
        self.party_registry.end(&self.job.id, &reason, &self.job.spec.parties);
        self.status.send_replace(status);
    }

    fn verdict(&self, ending: StopReason, kept: u64) -> Verdict {
        let failed = |stopped_by, fault| Verdict { state: State::Failed, stopped_by, fault: Some(fault), budget_party: None };
        let plain = |state, stopped_by| Verdict { state, stopped_by, fault: None, budget_party: None };
        match ending {
            StopReason::Finished => {
                let by_budget = self.chain.as_ref().is_some_and(Chain::ended_by_budget);
                plain(State::Finished, StoppedBy::itself(&self.job.spec, kept, by_budget))
            }
            StopReason::Hopeless => plain(State::Finished, StoppedBy::Hopeless),
            StopReason::Cancelled => plain(State::Cancelled, StoppedBy::Cancelled),
            StopReason::Budget { party, .. } if kept > 0 => {
                let party = self.members.list[party].name.clone();
                Verdict { budget_party: Some(party), ..plain(State::Finished, StoppedBy::Budget) }
            }
            StopReason::Budget { party, message } => {
                let message = format!(
                    "{message}, and not one draw was kept by then: raise the job's epsilon, or shorten its warm-up, or \
                     ask the owner what is left"
                );
                let fault = Fault::new(ErrorCode::Budget, message).at_party(self.members.list[party].name.clone());
                failed(StoppedBy::Budget, fault)
            }
            // What the parties consented to before is not undone: the draws stay, and the state says that the run did not end well.
            StopReason::Refused(fault) => failed(StoppedBy::Policy, fault),
            StopReason::Clipped(fault) => failed(StoppedBy::Clip, fault),
            // What went wrong at one party does not undo what the others spent and what was drawn.
            StopReason::Failed(fault) | StopReason::Stopped(fault) => failed(StoppedBy::Failure, fault),
            StopReason::Shutdown | StopReason::Full(_) => plain(State::Queued, StoppedBy::Cancelled),
        }
    }

    /// What the job has spent at a party: every complete round, and the last one if the party answered it.
    fn spent_at(&self, party: usize) -> Spent {
        let Some(chain) = &self.chain else { return Spent::default() };
        match self.members.answered(party) {
            true => chain.spent(party).plus(chain.unfinished_cost(party)),
            false => chain.spent(party),
        }
    }

    /// Completes the draws and summarises them. `None` when there is nothing to summarise.
    async fn write_result(&mut self, verdict: &Verdict, status: &Status) -> Option<String> {
        let chain = self.chain.take()?;
        let hopeless = chain.hopeless().filter(|_| verdict.stopped_by == StoppedBy::Hopeless);
        let warnings = chain.warnings().into_iter().chain(hopeless).collect();
        let report = chain.report();
        let draws = chain.finish().await;
        let job = Arc::clone(&self.job);
        let mut draws = draws.map_err(|fault| tracing::error!(job = %job.id, %fault, "draws lost")).ok()?;
        if draws.kept() == 0 {
            return None;
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
            let packed = job.packed();
            let mut result = result::build(&job.spec, &job.id, Some(&packed), &draws, &outcome);
            if let Err(error) = draws.pack(&job.spec, &attributes::at_end(&job, &result), &packed) {
                tracing::error!(job = %job.id, %error, "the draws were not put into one file: they stay in their folder");
                result.draws = Some(job.draws.display().to_string());
            }
            result
        });
        match summarised.await {
            Ok(result) => Some(RunResult::to_json(&result)),
            Err(error) => {
                tracing::error!(job = %self.job.id, %error, "the summary failed");
                None
            }
        }
    }

    async fn await_last_answers(&mut self, ending: &StopReason) {
        let parties = 0..self.members.list.len();
        let mut due: Vec<bool> =
            parties.map(|party| self.query.is_some() && self.members.list[party].open && !self.members.answered(party)).collect();
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
                    Event::Said(message) => {
                        let heard = self.members.hear(event.party, message, Timestamp::now());
                        if heard.is_err() || self.members.answered(event.party) {
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
