//! Attached parties, the routing of their messages to the jobs' drivers ([`routing`]), and what is known of each ([`memory`]).

mod memory;
mod routing;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use conclave_proto::revoked::RevokedList;
use conclave_proto::v1::coordinator_frame::Body;
use conclave_proto::v1::{BudgetTold, CloseJob};
use tokio::sync::{mpsc, oneshot};

use crate::party_event::{Event, PartyEvent};
use crate::send_queue::SendQueue;

/// Registry of attached parties, which routes messages between their streams and the jobs' drivers.
#[derive(Debug, Default)]
pub(crate) struct PartyRegistry {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    attached: HashMap<String, Attachment>,
    seen: BTreeSet<String>,
    /// Members that the operator has retired.
    retired: RevokedList,
    /// Revoked certificates.
    revoked: RevokedList,
    /// Serial number of the certificate with which each party attached last, in hexadecimal.
    certificates: HashMap<String, String>,
    /// Name and version of the software with which each party attached last.
    software: HashMap<String, String>,
    jobs: HashMap<Arc<str>, Subscription>,
    generations: u64,
    /// The newest checkpoint that each party has published.
    checkpoints: HashMap<String, Vec<u8>>,
    /// The last ends of each party's jobs. A party that knows of them already ignores them.
    ends: HashMap<String, VecDeque<CloseJob>>,
    /// Unanswered budget requests, by number: the party asked, and the waiting caller.
    budgets: HashMap<u64, (String, oneshot::Sender<BudgetTold>)>,
    budget_requests: u64,
}

#[derive(Debug)]
struct Attachment {
    generation: u64,
    queue: SendQueue,
    /// Dropped to notify an older stream that a newer one took its place.
    _replaced: oneshot::Sender<()>,
}

#[derive(Debug)]
struct Subscription {
    /// Positions in the job's list, by name.
    parties: HashMap<String, usize>,
    events: mpsc::UnboundedSender<PartyEvent>,
}

/// A stream's claim to its party's place.
#[derive(Debug)]
pub(crate) struct AttachedStream {
    /// Number of this attachment.
    pub generation: u64,
    /// True if it took the place of an older stream.
    pub replaced_another: bool,
    /// Resolves when a newer stream takes this one's place.
    pub replaced: oneshot::Receiver<()>,
}

impl PartyRegistry {
    /// Creates a registry that knows the parties of earlier runs.
    #[cfg(test)]
    pub(crate) fn new(seen: BTreeSet<String>) -> Self {
        Self::with_checkpoints(seen, HashMap::new())
    }

    /// Creates a registry that knows the parties of earlier runs and their checkpoints.
    pub(crate) fn with_checkpoints(seen: BTreeSet<String>, checkpoints: HashMap<String, Vec<u8>>) -> Self {
        Self { inner: Mutex::new(Inner { seen, checkpoints, ..Inner::default() }) }
    }

    /// Adds the serial numbers of the certificates with which parties attached last in earlier runs.
    pub(crate) fn with_certificates(self, certificates: HashMap<String, String>) -> Self {
        self.lock().certificates = certificates;
        self
    }

    /// Adds the software with which parties attached last in earlier runs.
    pub(crate) fn with_software(self, software: HashMap<String, String>) -> Self {
        self.lock().software = software;
        self
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change below is a single map operation, so the state is whole even if a holder panicked.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Attaches a party, in place of its older stream if it has one, and notifies its jobs.
    pub(crate) fn attach(&self, party: &str, queue: SendQueue) -> AttachedStream {
        let mut inner = self.lock();
        inner.generations += 1;
        let generation = inner.generations;
        let (guard, replaced) = oneshot::channel();
        let attachment = Attachment { generation, queue: queue.clone(), _replaced: guard };
        let replaced_another = inner.attached.insert(party.to_owned(), attachment).is_some();
        inner.seen.insert(party.to_owned());
        inner.ends.get(party).into_iter().flatten().for_each(|end| queue.send(Body::CloseJob(end.clone())));
        inner.notify(party, || Event::Attached(queue.clone()));
        AttachedStream { generation, replaced_another, replaced }
    }

    /// Detaches a party, unless a newer stream has its place already.
    pub(crate) fn detach(&self, party: &str, generation: u64) {
        let mut inner = self.lock();
        if inner.attached.get(party).is_some_and(|a| a.generation == generation) {
            inner.attached.remove(party);
            inner.notify(party, || Event::Detached);
        }
    }

    /// Returns true if the party is attached now.
    pub(crate) fn is_attached(&self, party: &str) -> bool {
        self.lock().attached.contains_key(party)
    }

    /// Names of the parties that are attached now, sorted.
    pub(crate) fn attached(&self) -> Vec<String> {
        let mut attached: Vec<String> = self.lock().attached.keys().cloned().collect();
        attached.sort();
        attached
    }

    /// Every party that has ever attached, and whether it is attached now: attached parties first, sorted by name.
    pub(crate) fn seen(&self) -> Vec<(String, bool)> {
        let inner = self.lock();
        let mut seen: Vec<(String, bool)> =
            inner.seen.iter().map(|party| (party.clone(), inner.attached.contains_key(party))).collect();
        seen.sort_by(|(a, a_is), (b, b_is)| b_is.cmp(a_is).then_with(|| a.cmp(b)));
        seen
    }

    /// Returns those of `parties` that never attached to this coordinator, and all parties that did.
    pub(crate) fn unknown(&self, parties: &[String]) -> (Vec<String>, Vec<String>) {
        let inner = self.lock();
        let unknown = parties.iter().filter(|p| !inner.seen.contains(*p)).cloned().collect();
        (unknown, inner.seen.iter().cloned().collect())
    }
}

impl Inner {
    fn notify(&self, party: &str, event: impl Fn() -> Event) {
        for subscription in self.jobs.values() {
            if let Some(position) = subscription.parties.get(party).copied() {
                // A driver that has ended receives nothing more.
                let _ = subscription.events.send(PartyEvent { party: position, event: event() });
            }
        }
    }
}
