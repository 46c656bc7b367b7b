//! Which parties are attached, and which job's driver hears whom.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use conclave_proto::v1::coordinator_frame::Body;
use conclave_proto::v1::{AskBudget, BudgetTold, CloseJob};
use tokio::sync::{mpsc, oneshot};

use crate::party_event::{Event, Message, PartyEvent};
use crate::send_queue::SendQueue;

/// Length of a ledger head: number, hash, MAC.
const HEAD_BYTES: usize = 72;

/// Ends of jobs that a party is told of when it attaches: it was away, or its stream died, when the last of them ended.
const MOST_ENDS: usize = 128;

/// The register of attached parties: a switchboard between their streams and the jobs' drivers.
#[derive(Debug, Default)]
pub(crate) struct PartyRegistry {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    attached: HashMap<String, Attachment>,
    seen: BTreeSet<String>,
    jobs: HashMap<Arc<str>, Subscription>,
    generations: u64,
    /// The newest ledger head that each party has given away.
    heads: HashMap<String, Vec<u8>>,
    /// The last ends of each party's jobs. A party that knows of them already does nothing.
    ends: HashMap<String, VecDeque<CloseJob>>,
    /// Questions about the budget that are not answered, by number: whom, and who waits.
    budgets: HashMap<u64, (String, oneshot::Sender<BudgetTold>)>,
    budgets_asked: u64,
}

#[derive(Debug)]
struct Attachment {
    generation: u64,
    queue: SendQueue,
    /// Dropped to tell an older stream that a newer one took its place.
    _replaced: oneshot::Sender<()>,
}

#[derive(Debug)]
struct Subscription {
    /// Positions in the job's list, by name.
    parties: HashMap<String, usize>,
    events: mpsc::UnboundedSender<PartyEvent>,
}

/// A stream's hold on its party's place.
#[derive(Debug)]
pub(crate) struct AttachedStream {
    /// Which attachment this is.
    pub generation: u64,
    /// Whether it took the place of an older stream.
    pub replaced_another: bool,
    /// Resolves when a newer stream takes this one's place.
    pub replaced: oneshot::Receiver<()>,
}

impl PartyRegistry {
    /// A registry that knows the parties of earlier runs.
    #[cfg(test)]
    pub(crate) fn new(seen: BTreeSet<String>) -> Self {
        Self::with_heads(seen, HashMap::new())
    }

    /// A registry that knows the parties of earlier runs, and their ledgers' heads.
    pub(crate) fn with_heads(seen: BTreeSet<String>, heads: HashMap<String, Vec<u8>>) -> Self {
        Self { inner: Mutex::new(Inner { seen, heads, ..Inner::default() }) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change below is a single map operation, so the state is whole even if a holder panicked.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Attaches a party, in place of its older stream if it has one, and tells its jobs.
    pub(crate) fn attach(&self, party: &str, queue: SendQueue) -> AttachedStream {
        let mut inner = self.lock();
        inner.generations += 1;
        let generation = inner.generations;
        let (guard, replaced) = oneshot::channel();
        let attachment = Attachment { generation, queue: queue.clone(), _replaced: guard };
        let replaced_another = inner.attached.insert(party.to_owned(), attachment).is_some();
        inner.seen.insert(party.to_owned());
        inner.ends.get(party).into_iter().flatten().for_each(|end| queue.send(Body::CloseJob(end.clone())));
        inner.tell(party, || Event::Attached(queue.clone()));
        AttachedStream { generation, replaced_another, replaced }
    }

    /// Detaches a party, unless a newer stream has its place already.
    pub(crate) fn detach(&self, party: &str, generation: u64) {
        let mut inner = self.lock();
        if inner.attached.get(party).is_some_and(|a| a.generation == generation) {
            inner.attached.remove(party);
            inner.tell(party, || Event::Detached);
        }
    }

    /// Passes a party's word on to the driver of the job; false when this coordinator runs no such job with it.
    pub(crate) fn deliver(&self, party: &str, job: &str, message: Message) -> bool {
        let inner = self.lock();
        let Some(subscription) = inner.jobs.get(job) else { return false };
        let Some(position) = subscription.parties.get(party).copied() else { return false };
        subscription.events.send(PartyEvent { party: position, event: Event::Said(message) }).is_ok()
    }

    /// Registers a job's driver. Parties attached already come as [`Event::Attached`] first.
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

    /// A job has ended: its parties are told, those that are away when they attach again, and its driver is forgotten.
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

    /// A job goes back into the queue: its driver is forgotten, and parties that have opened it need not hold it open.
    pub(crate) fn send_back(&self, job: &str, parties: &[String]) {
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

    /// Forgets a job's driver.
    pub(crate) fn unsubscribe(&self, job: &str) {
        self.lock().jobs.remove(job);
    }

    /// Notes a party's ledger head; true where it is newer than the one known.
    pub(crate) fn note_head(&self, party: &str, head: &[u8]) -> bool {
        let Some(number) = head_number(head) else { return false };
        let mut inner = self.lock();
        if inner.heads.get(party).and_then(|known| head_number(known)).is_some_and(|known| known >= number) {
            return false;
        }
        inner.heads.insert(party.to_owned(), head.to_vec());
        true
    }

    /// The newest head that the party has given away; empty where none is known.
    pub(crate) fn head(&self, party: &str) -> Vec<u8> {
        self.lock().heads.get(party).cloned().unwrap_or_default()
    }

    /// Asks a party what is left there for an analyst; `None` where it is not attached.
    pub(crate) fn ask_budget(&self, party: &str, analyst: &str) -> Option<oneshot::Receiver<BudgetTold>> {
        let mut inner = self.lock();
        let queue = inner.attached.get(party)?.queue.clone();
        // Who has given up waiting is forgotten.
        inner.budgets.retain(|_, (_, waiting)| !waiting.is_closed());
        inner.budgets_asked += 1;
        let number = inner.budgets_asked;
        let (sender, told) = oneshot::channel();
        inner.budgets.insert(number, (party.to_owned(), sender));
        queue.send(Body::AskBudget(AskBudget { number, analyst: analyst.to_owned() }));
        Some(told)
    }

    /// Passes a party's answer to such a question on.
    pub(crate) fn budget_told(&self, party: &str, told: BudgetTold) {
        let mut inner = self.lock();
        if inner.budgets.get(&told.number).is_some_and(|(asked, _)| asked == party)
            && let Some((_, waiting)) = inner.budgets.remove(&told.number)
        {
            let _ = waiting.send(told);
        }
    }

    /// Whether the party is attached now.
    pub(crate) fn is_attached(&self, party: &str) -> bool {
        self.lock().attached.contains_key(party)
    }

    /// The parties that are attached now, by name.
    pub(crate) fn attached(&self) -> Vec<String> {
        let mut attached: Vec<String> = self.lock().attached.keys().cloned().collect();
        attached.sort();
        attached
    }

    /// Every party that has attached to this coordinator, by name, and whether it is attached now; those that are come first.
    pub(crate) fn seen(&self) -> Vec<(String, bool)> {
        let inner = self.lock();
        let mut seen: Vec<(String, bool)> =
            inner.seen.iter().map(|party| (party.clone(), inner.attached.contains_key(party))).collect();
        seen.sort_by(|(a, a_is), (b, b_is)| b_is.cmp(a_is).then_with(|| a.cmp(b)));
        seen
    }

    /// Parties among `parties` that never attached to this coordinator, and all that did.
    pub(crate) fn unknown(&self, parties: &[String]) -> (Vec<String>, Vec<String>) {
        let inner = self.lock();
        let unknown = parties.iter().filter(|p| !inner.seen.contains(*p)).cloned().collect();
        (unknown, inner.seen.iter().cloned().collect())
    }
}

/// The number in a head. What else it holds is for the party that made it.
fn head_number(head: &[u8]) -> Option<u64> {
    let number = (head.len() == HEAD_BYTES).then(|| head.first_chunk::<8>())??;
    Some(u64::from_le_bytes(*number))
}

impl Inner {
    fn tell(&self, party: &str, event: impl Fn() -> Event) {
        for subscription in self.jobs.values() {
            if let Some(position) = subscription.parties.get(party).copied() {
                // A driver that has ended hears nothing more.
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
    async fn ends_are_told_at_once_and_again_at_every_attachment() {
        use tokio_stream::StreamExt;
        let party_registry = PartyRegistry::default();
        let both = ["a".to_owned(), "b".to_owned()];
        let (here, mut told) = send_queue();
        let _place = party_registry.attach("a", here);
        (0..MOST_ENDS + 2).for_each(|job| party_registry.end(&format!("j{job}"), "finished", &both));
        let (back, mut told_later) = send_queue();
        let _place = party_registry.attach("b", back.clone());
        back.refuse(&Fault::new(conclave_proto::error::ErrorCode::Unreachable, "that is all"));
        let end = |job: usize| Body::CloseJob(CloseJob { job: format!("j{job}"), reason: "finished".to_owned(), waits: false });
        assert_eq!(told.next().await.unwrap().unwrap().body, Some(end(0)));
        for job in 2..MOST_ENDS + 2 {
            assert_eq!(told_later.next().await.unwrap().unwrap().body, Some(end(job)));
        }
        assert!(told_later.next().await.unwrap().is_err());
    }

    #[test]
    fn the_newest_head_is_kept() {
        let head = |number: u64, fill: u8| [number.to_le_bytes().as_slice(), &[fill; 64]].concat();
        let party_registry = PartyRegistry::with_heads(BTreeSet::new(), HashMap::from([("a".to_owned(), head(5, 0))]));
        assert_eq!((party_registry.head("a"), party_registry.head("b")), (head(5, 0), Vec::new()));
        for (shown, newer) in
            [(head(4, 1), false), (head(5, 1), false), (head(300, 1), true), (vec![9; 71], false), (vec![], false)]
        {
            assert_eq!(party_registry.note_head("a", &shown), newer);
        }
        assert_eq!(party_registry.head("a"), head(300, 1));
        assert!(party_registry.note_head("b", &head(0, 0)));
    }

    #[test]
    fn words_reach_the_job_they_are_about() {
        let party_registry = PartyRegistry::new(BTreeSet::from(["z".to_owned()]));
        let mut events = party_registry.subscribe("j".into(), &["a".to_owned()]);
        assert!(party_registry.deliver("a", "j", Message::Opened(PartyMetadata::rows(3), None, None)));
        assert!(!party_registry.deliver("a", "other", Message::Opened(PartyMetadata::rows(3), None, None)));
        assert!(!party_registry.deliver("stranger", "j", Message::Opened(PartyMetadata::rows(3), None, None)));
        assert!(
            matches!(events.try_recv().unwrap().event, Event::Said(Message::Opened(h, None, None)) if h == PartyMetadata::rows(3))
        );
        party_registry.unsubscribe("j");
        assert!(!party_registry.deliver("a", "j", Message::Opened(PartyMetadata::rows(3), None, None)));
        let (unknown, known) = party_registry.unknown(&["z".to_owned(), "a".to_owned()]);
        assert_eq!((unknown, known), (vec!["a".to_owned()], vec!["z".to_owned()]));
    }
}
