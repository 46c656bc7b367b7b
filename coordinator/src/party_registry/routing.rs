//! Routing of messages between the parties' streams and the jobs' drivers, and of requests for budgets.

use std::sync::Arc;

use conclave_proto::v1::coordinator_frame::Body;
use conclave_proto::v1::{AskBudget, BudgetTold, CloseJob};
use tokio::sync::{mpsc, oneshot};

use super::{PartyRegistry, Subscription};
use crate::party_event::{Event, Message, PartyEvent};

/// Maximum number of ended jobs reported to a party that attaches: it may have been away, or its stream broken, when they ended.
pub(super) const MOST_ENDS: usize = 128;

impl PartyRegistry {
    /// Delivers a party's message to the driver of the job; false if this coordinator runs no such job with the party.
    pub(crate) fn deliver(&self, party: &str, job: &str, message: Message) -> bool {
        let inner = self.lock();
        let Some(subscription) = inner.jobs.get(job) else { return false };
        let Some(position) = subscription.parties.get(party).copied() else { return false };
        subscription.events.send(PartyEvent { party: position, event: Event::Received(message) }).is_ok()
    }

    /// Registers a job's driver. Parties that are attached already are reported first, as [`Event::Attached`].
    pub(crate) fn subscribe(&self, job: Arc<str>, parties: &[String]) -> mpsc::UnboundedReceiver<PartyEvent> {
        let (events, receiver) = mpsc::unbounded_channel();
        let mut inner = self.lock();
        for (position, party) in parties.iter().enumerate() {
            if let Some(attachment) = inner.attached.get(party) {
                let event = Event::Attached(attachment.queue.clone());
                let _ = events.send(PartyEvent { party: position, event });
            }
        }
        let parties = parties.iter().cloned().zip(0..).collect();
        inner.jobs.insert(job, Subscription { parties, events });
        receiver
    }

    /// Ends a job: removes its driver and notifies its parties, including absent ones when they attach again.
    pub(crate) fn end(&self, job: &str, reason: &str, parties: &[String]) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        inner.jobs.remove(job);
        let end = CloseJob { job: job.to_owned(), reason: reason.to_owned(), waits: false };
        for party in parties {
            if let Some(attachment) = inner.attached.get(party) {
                attachment.queue.send(Body::CloseJob(end.clone()));
            }
            let ends = inner.ends.entry(party.clone()).or_default();
            ends.push_back(end.clone());
            ends.drain(..ends.len().saturating_sub(MOST_ENDS));
        }
    }

    /// Returns a job to the queue: removes its driver, and lets the parties that have opened it close it.
    pub(crate) fn requeue(&self, job: &str, parties: &[String]) {
        let mut inner = self.lock();
        inner.jobs.remove(job);
        for attachment in parties.iter().filter_map(|party| inner.attached.get(party)) {
            attachment.queue.send(Body::CloseJob(CloseJob {
                job: job.to_owned(),
                reason: "it waits for its turn".to_owned(),
                waits: true,
            }));
        }
    }

    /// Removes a job's driver.
    pub(crate) fn unsubscribe(&self, job: &str) {
        self.lock().jobs.remove(job);
    }

    /// Asks a party for an analyst's remaining budget; `None` if the party is not attached.
    pub(crate) fn ask_budget(&self, party: &str, analyst: &str) -> Option<oneshot::Receiver<BudgetTold>> {
        let mut inner = self.lock();
        let queue = inner.attached.get(party)?.queue.clone();
        // Requests whose callers have stopped waiting are removed.
        inner.budgets.retain(|_, (_, waiting)| !waiting.is_closed());
        inner.budget_requests += 1;
        let number = inner.budget_requests;
        let (sender, reply) = oneshot::channel();
        inner.budgets.insert(number, (party.to_owned(), sender));
        queue.send(Body::AskBudget(AskBudget { number, analyst: analyst.to_owned() }));
        Some(reply)
    }

    /// Delivers a party's reply to a budget request.
    pub(crate) fn deliver_budget(&self, party: &str, reply: BudgetTold) {
        let mut inner = self.lock();
        if inner.budgets.get(&reply.number).is_some_and(|(asked, _)| asked == party)
            && let Some((_, waiting)) = inner.budgets.remove(&reply.number)
        {
            let _ = waiting.send(reply);
        }
    }
}
