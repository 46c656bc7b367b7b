//! Attached parties, and the routing of their messages to the jobs' drivers.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use conclave_proto::revoked::RevokedList;
use conclave_proto::v1::coordinator_frame::Body;
use conclave_proto::v1::{AskBudget, BudgetTold, CloseJob};
use tokio::sync::{mpsc, oneshot};

use crate::party_event::{Event, Message, PartyEvent};
use crate::send_queue::SendQueue;

/// Length of a checkpoint: number, hash, MAC.
const CHECKPOINT_BYTES: usize = 72;

/// Maximum number of ended jobs reported to a party that attaches: it may have been away, or its stream broken, when they ended.
const MOST_ENDS: usize = 128;

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

    /// Notes the software of a party that attaches.
    pub(crate) fn set_software(&self, party: &str, software: &str) {
        self.lock().software.insert(party.to_owned(), software.to_owned());
    }

    /// Returns the software with which the party attached last; empty if none is known.
    pub(crate) fn software(&self, party: &str) -> String {
        self.lock().software.get(party).cloned().unwrap_or_default()
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

    /// Records a party's checkpoint; returns true if it is newer than the known one.
    pub(crate) fn note_checkpoint(&self, party: &str, checkpoint: &[u8]) -> bool {
        let Some(number) = checkpoint_number(checkpoint) else { return false };
        let mut inner = self.lock();
        if inner.checkpoints.get(party).and_then(|known| checkpoint_number(known)).is_some_and(|known| known >= number) {
            return false;
        }
        inner.checkpoints.insert(party.to_owned(), checkpoint.to_vec());
        true
    }

    /// The newest checkpoint that the party has published; empty if none is known.
    pub(crate) fn checkpoint(&self, party: &str) -> Vec<u8> {
        self.lock().checkpoints.get(party).cloned().unwrap_or_default()
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

    /// Replaces the list of retired members.
    pub(crate) fn set_retired(&self, list: RevokedList) {
        self.lock().retired = list;
    }

    /// Returns the first retired member among an analyst and the parties of a job.
    pub(crate) fn retired_member(&self, analyst: &str, parties: &[String]) -> Option<String> {
        let inner = self.lock();
        let members = parties.iter().map(|party| format!("party/{party}")).chain([format!("analyst/{analyst}")]);
        members.into_iter().find(|member| inner.retired.has_member(member))
    }

    /// Returns true for a retired party.
    pub(crate) fn is_retired(&self, party: &str) -> bool {
        self.lock().retired.has_member(&format!("party/{party}"))
    }

    /// Replaces the list of revoked certificates.
    pub(crate) fn set_revoked(&self, list: RevokedList) {
        self.lock().revoked = list;
    }

    /// Records the serial number of the certificate with which a party attaches; returns true if it is another than the known one.
    pub(crate) fn note_certificate(&self, party: &str, serial: &str) -> bool {
        self.lock().certificates.insert(party.to_owned(), serial.to_owned()).as_deref() != Some(serial)
    }

    /// Returns true for a party that the coordinator admits no more: the list names it, or the certificate with which it attached
    /// last.
    pub(crate) fn is_revoked(&self, party: &str) -> bool {
        let inner = self.lock();
        let by_serial = inner.certificates.get(party).is_some_and(|serial| inner.revoked.has_serial(serial));
        by_serial || inner.revoked.has_member(&format!("party/{party}"))
    }

    /// Returns those of `parties` that never attached to this coordinator, and all parties that did.
    pub(crate) fn unknown(&self, parties: &[String]) -> (Vec<String>, Vec<String>) {
        let inner = self.lock();
        let unknown = parties.iter().filter(|p| !inner.seen.contains(*p)).cloned().collect();
        (unknown, inner.seen.iter().cloned().collect())
    }
}

/// Sequence number of a checkpoint. Its other content is for the party that made it.
fn checkpoint_number(checkpoint: &[u8]) -> Option<u64> {
    let number = (checkpoint.len() == CHECKPOINT_BYTES).then(|| checkpoint.first_chunk::<8>())??;
    Some(u64::from_le_bytes(*number))
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use conclave_common::query::PartyMetadata;
    use conclave_proto::error::Fault;

    use super::*;
    use crate::send_queue::send_queue;

    #[test]
    fn the_newer_stream_has_the_place() {
        let party_registry = PartyRegistry::default();
        let (first, _f) = send_queue();
        let mut old = party_registry.attach("a", first);
        assert!(!old.replaced_another);
        let mut events = party_registry.subscribe("j".into(), &["b".to_owned(), "a".to_owned()]);
        assert!(matches!(events.try_recv().unwrap(), PartyEvent { party: 1, event: Event::Attached(_) }));
        let (second, _s) = send_queue();
        let new = party_registry.attach("a", second);
        assert!(new.replaced_another);
        assert!(old.replaced.try_recv().is_err_and(|e| e == oneshot::error::TryRecvError::Closed));
        assert!(matches!(events.try_recv().unwrap().event, Event::Attached(_)));
        party_registry.detach("a", old.generation);
        assert!(party_registry.is_attached("a") && events.try_recv().is_err());
        party_registry.detach("a", new.generation);
        assert!(matches!(events.try_recv().unwrap().event, Event::Detached));
        assert!(!party_registry.is_attached("a"));
    }

    #[tokio::test]
    async fn ends_are_reported_immediately_and_again_at_every_attachment() {
        use tokio_stream::StreamExt;
        let party_registry = PartyRegistry::default();
        let both = ["a".to_owned(), "b".to_owned()];
        let (here, mut sent) = send_queue();
        let _place = party_registry.attach("a", here);
        (0..MOST_ENDS + 2).for_each(|job| party_registry.end(&format!("j{job}"), "finished", &both));
        let (back, mut sent_later) = send_queue();
        let _place = party_registry.attach("b", back.clone());
        back.refuse(&Fault::new(conclave_proto::error::ErrorCode::Unreachable, "that is all"));
        let end = |job: usize| Body::CloseJob(CloseJob { job: format!("j{job}"), reason: "finished".to_owned(), waits: false });
        assert_eq!(sent.next().await.unwrap().unwrap().body, Some(end(0)));
        for job in 2..MOST_ENDS + 2 {
            assert_eq!(sent_later.next().await.unwrap().unwrap().body, Some(end(job)));
        }
        assert!(sent_later.next().await.unwrap().is_err());
    }

    #[test]
    fn the_newest_head_is_kept() {
        let head = |number: u64, fill: u8| [number.to_le_bytes().as_slice(), &[fill; 64]].concat();
        let party_registry = PartyRegistry::with_checkpoints(BTreeSet::new(), HashMap::from([("a".to_owned(), head(5, 0))]));
        assert_eq!((party_registry.checkpoint("a"), party_registry.checkpoint("b")), (head(5, 0), Vec::new()));
        for (shown, newer) in
            [(head(4, 1), false), (head(5, 1), false), (head(300, 1), true), (vec![9; 71], false), (vec![], false)]
        {
            assert_eq!(party_registry.note_checkpoint("a", &shown), newer);
        }
        assert_eq!(party_registry.checkpoint("a"), head(300, 1));
        assert!(party_registry.note_checkpoint("b", &head(0, 0)));
    }

    #[test]
    fn the_software_of_a_party_is_that_of_its_last_stream() {
        let party_registry =
            PartyRegistry::default().with_software(HashMap::from([("a".to_owned(), "conclave-party 1".to_owned())]));
        assert_eq!((party_registry.software("a").as_str(), party_registry.software("b").as_str()), ("conclave-party 1", ""));
        party_registry.set_software("a", "conclave-party 2");
        assert_eq!(party_registry.software("a"), "conclave-party 2");
    }

    #[test]
    fn a_revoked_party_is_known_by_its_name_or_by_its_last_certificate() {
        let known = HashMap::from([("c".to_owned(), "ab01".to_owned()), ("d".to_owned(), "ab02".to_owned())]);
        let party_registry = PartyRegistry::default().with_certificates(known);
        party_registry.set_revoked(RevokedList::parse("party/a\nanalyst/b\nAB:01").unwrap());
        assert_eq!(["a", "b", "c", "d"].map(|party| party_registry.is_revoked(party)), [true, false, true, false]);
        assert!(!party_registry.note_certificate("c", "ab01") && party_registry.is_revoked("c"));
        // It has a certificate that is not revoked.
        assert!(party_registry.note_certificate("c", "ab03") && !party_registry.is_revoked("c"));
        party_registry.set_revoked(RevokedList::default());
        assert!(!party_registry.is_revoked("a"));
    }

    #[test]
    fn words_reach_the_job_they_are_about() {
        let party_registry = PartyRegistry::new(BTreeSet::from(["z".to_owned()]));
        let mut events = party_registry.subscribe("j".into(), &["a".to_owned()]);
        assert!(party_registry.deliver("a", "j", Message::Opened(PartyMetadata::rows(3), None, None)));
        assert!(!party_registry.deliver("a", "other", Message::Opened(PartyMetadata::rows(3), None, None)));
        assert!(!party_registry.deliver("stranger", "j", Message::Opened(PartyMetadata::rows(3), None, None)));
        assert!(
            matches!(events.try_recv().unwrap().event, Event::Received(Message::Opened(h, None, None)) if h == PartyMetadata::rows(3))
        );
        party_registry.unsubscribe("j");
        assert!(!party_registry.deliver("a", "j", Message::Opened(PartyMetadata::rows(3), None, None)));
        let (unknown, known) = party_registry.unknown(&["z".to_owned(), "a".to_owned()]);
        assert_eq!((unknown, known), (vec!["a".to_owned()], vec!["z".to_owned()]));
    }
}
