//! Status that a driver publishes for its job.

use std::time::{Duration, Instant};

use conclave_draws::spent::Spent;

use super::chain::Chain;
use super::job::Job;
use super::run::{Driver, Wake};
use crate::clock::Timestamp;
use crate::status::{PartyStatus, State, Status, never_rejects};

/// Minimum time between two statuses while only numbers change.
const PUBLISH: Duration = Duration::from_millis(200);

/// The parties that a job waits for.
#[derive(Default)]
struct Waiting {
    parties: Vec<String>,
    /// Start of the wait for each of the job's parties, Unix time in milliseconds.
    since_ms: Vec<Option<i64>>,
    /// Reasons, one per party.
    reason: String,
}

impl Driver {
    /// State of the job, and the parties that it waits for.
    fn state(&self) -> (State, Waiting) {
        let now = Timestamp::now();
        let mut waiting = Waiting { since_ms: vec![None; self.members.list.len()], ..Waiting::default() };
        let mut reasons = Vec::new();
        for (party, member) in self.members.list.iter().enumerate() {
            if let Some(mut reason) = self.members.wait_reason(party, self.limits.shown, now.at) {
                if member.queue.is_none() && self.party_registry.is_revoked(&member.name) {
                    reason += ": its certificate is revoked at the coordinator";
                }
                waiting.since_ms[party] = Some(member.since.ms);
                waiting.parties.push(member.name.clone());
                reasons.push(format!("{}: {reason}", member.name));
            }
        }
        waiting.reason = reasons.join("; ");
        let state = match (&self.chain, waiting.parties.is_empty()) {
            // All parties are attached, and some owners have yet to decide.
            (None, false) if self.members.list.iter().all(|m| m.queue.is_some() && (m.open || m.pending)) => State::Opening,
            (_, false) => State::Paused,
            (Some(_), true) if self.members.has_all_open() => State::Running,
            _ => State::Opening,
        };
        (state, waiting)
    }

    /// Publishes the status: immediately when the state has changed, otherwise at most every [`PUBLISH`]. Checking every party at
    /// every answer would take quadratic time per round.
    pub(super) fn publish(&mut self, heard: Wake) {
        let running = heard == Wake::Answer && self.status.borrow().state == State::Running;
        if running && self.published.elapsed() < PUBLISH {
            return;
        }
        let (state, waiting) = self.state();
        {
            let shown = self.status.borrow();
            let same = shown.state == state && shown.waiting_for == waiting.parties && shown.waiting_reason == waiting.reason;
            if same && self.published.elapsed() < PUBLISH {
                return;
            }
        }
        self.published = Instant::now();
        let mut status = self.snapshot();
        (status.state, status.waiting_for) = (state, waiting.parties);
        status.waiting_since_ms = waiting.since_ms.iter().flatten().min().copied().unwrap_or(0);
        status.parties.iter_mut().zip(&waiting.since_ms).for_each(|(party, since)| party.waiting_since_ms = *since);
        status.awaiting_consent = self.members.list.iter().filter(|m| m.pending).map(|m| m.name.clone()).collect();
        status.waiting_reason = waiting.reason;
        // A restarted coordinator continues the waits.
        if self.status.borrow().waits() != waiting.since_ms {
            self.store.store_waits(&self.job.id, waiting.since_ms);
        }
        self.status.send_replace(status);
    }

    /// Current figures; the caller sets state and waiting.
    pub(super) fn snapshot(&self) -> Status {
        let spec = &self.job.spec;
        let budget = &spec.privacy.budget;
        let chain = self.chain.as_ref();
        // Parties with equal spending have equal epsilons: each root search is done once.
        let mut found = (Spent::default(), 0.0);
        Status {
            phase: chain.map(Chain::phase),
            iteration: chain.map(Chain::rounds).unwrap_or_default(),
            draws: chain.map(Chain::kept).unwrap_or_default(),
            acceptance_rate: chain.map(Chain::acceptance_rate).unwrap_or_default(),
            seconds: chain.map(Chain::seconds).unwrap_or_default(),
            warnings: chain.map(Chain::warnings).unwrap_or_default(),
            parties: self
                .members
                .list
                .iter()
                .enumerate()
                .map(|(party, member)| {
                    let spent = chain.map(|chain| chain.spent(party)).unwrap_or_default();
                    if spent != found.0 {
                        found = (spent, spent.epsilon(budget));
                    }
                    PartyStatus {
                        name: member.name.clone(),
                        metadata: member.metadata,
                        spent,
                        epsilon_spent: found.1,
                        epsilon_budget: budget.epsilon,
                        waiting_since_ms: None,
                    }
                })
                .collect(),
            ..queued_status(&self.job)
        }
    }
}

/// Status of a job that has not begun.
pub(crate) fn queued_status(job: &Job) -> Status {
    let spec = &job.spec;
    let epsilon_budget = spec.privacy.budget.epsilon;
    let party = |name: &String| PartyStatus { name: name.clone(), epsilon_budget, ..PartyStatus::default() };
    Status {
        id: job.id.to_string(),
        name: spec.name.clone(),
        analyst: job.analyst.clone(),
        chains: spec.sampler.chains,
        draws_asked: spec.draws_asked(),
        never_rejects: never_rejects(spec),
        parties: spec.parties.iter().map(party).collect(),
        submitted_ms: job.submitted_ms,
        ..Status::default()
    }
}
