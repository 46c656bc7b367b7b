//! A party of a masked job that sends garbage in place of one answer, and what must come of it.
//!
//! Whose answer it is can't be told without opening what all of them cover. So the job ends at that round, and at once: to ask again would cost
//! every owner another charge. What was charged for the round stays charged, at every party.

use std::hash::{DefaultHasher, Hash, Hasher};

use conclave_proto::v1::{Answer, JobStatus};
use conclave_tests::books::{LedgerCopy, Replay};

use super::fixture::NAMES;
use super::mutant::Mutant;
use super::plan::Plan;
use super::recorder::Round;
use super::world::World;

/// How an answer is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Garbage {
    /// Sixty-four bits of anything in every place, as masks leave that do not cancel.
    Uniform,
    /// A number that there can be; what does not cancel is the mask of nothing alone.
    OtherMasks,
    /// A number that no records come to, under the right masks.
    FarOut,
}

/// The first job's round whose answer is garbage, and the party whose answer it is: others in every list, and the same however often that
/// party is asked.
fn place(plan: &Plan) -> (usize, u64) {
    ((plan.seed / 5) as usize % NAMES.len(), plan.seed % 5)
}

impl Garbage {
    /// What leaves the party in place of its answer.
    pub(crate) fn spoil(self, plan: &Plan, (party, job, iteration): Round, answer: &mut Answer) {
        if job > 0 || (party, iteration) != place(plan) || answer.status != Some(0) {
            return;
        }
        let (Some(first), Some(check)) = (answer.releases.first_mut(), &mut answer.check) else {
            panic!("garbage is of masked jobs: {answer:?}")
        };
        match self {
            Self::FarOut => *first = first.wrapping_add(1 << 60),
            Self::OtherMasks => (*first, *check) = (first.wrapping_add(1), check.wrapping_sub(1)),
            Self::Uniform => {
                let anything = |place: usize| {
                    let mut hash = DefaultHasher::new();
                    (plan.seed, iteration, place).hash(&mut hash);
                    hash.finish()
                };
                *check = anything(usize::MAX);
                answer.releases.iter_mut().enumerate().for_each(|(at, release)| *release = anything(at).cast_signed());
            }
        }
    }
}

impl World<'_> {
    /// The job's round that garbage was sent to, if this job is the one.
    fn spoilt(&self, job: usize) -> Option<u64> {
        (job == 0 && matches!(self.mutant, Mutant::Garbage(_))).then(|| place(&self.plan).1)
    }

    /// Notes when the last answer to the round left, and when the job's end was seen.
    pub(crate) fn time_garbage(&mut self, round: Option<Round>) {
        if round.is_some_and(|(_, job, iteration)| self.spoilt(job) == Some(iteration)) {
            self.garbage_left = Some(self.now);
        }
        if self.jobs.0[0].ended.is_some() {
            self.garbage_seen.get_or_insert(self.now);
        }
    }

    /// Whether a job ended of garbage; panics where it went on after it, or ended otherwise than it must.
    pub(crate) fn ended_of_garbage(&self, at: usize, ended: &JobStatus, replay: &Replay) -> bool {
        let Some(iteration) = self.spoilt(at) else { return false };
        assert!(replay.rounds <= iteration, "round {iteration} was garbage, and the log has {} rounds", replay.rounds);
        let later = self.recorder.asked.keys().find(|(_, job, asked)| *job == at && *asked > iteration);
        assert_eq!(later, None, "asked after the garbage of round {iteration} (party, job, round)");
        if (ended.state.as_str(), ended.error_code.as_str()) != ("failed", "internal") {
            return false;
        }
        assert_eq!(replay.rounds, iteration, "rounds before the garbage");
        assert!(ended.error.contains(&format!("round {iteration}: ")) && ended.error.contains("do not cancel"), "{ended:?}");
        assert!(!NAMES.iter().any(|name| ended.error.contains(name)), "whose it is can't be known: {}", ended.error);
        if self.plan == self.plan.undisturbed() {
            self.check_at_once(at, iteration);
        }
        true
    }

    /// Where nothing else goes wrong, nobody is asked again or waited for, and no key is left.
    fn check_at_once(&self, at: usize, iteration: u64) {
        let (left, seen) = (self.garbage_left.expect("garbage"), self.garbage_seen.expect("an end"));
        assert!(seen - left <= 50, "{} ms went by between the last answer and the end", seen - left);
        for node in &self.nodes {
            let handled = self.recorder.handled.get(&(node.index, at, iteration));
            assert_eq!(handled, Some(&1), "answers of {} to the round that was garbage", NAMES[node.index]);
            let keys: Vec<_> = std::fs::read_dir(node.folder.join("mask-keys")).expect("a folder").collect();
            assert!(keys.is_empty(), "{} keeps a key of a job that has ended: {keys:?}", NAMES[node.index]);
        }
    }

    /// Every party is charged for the message that came to nothing, once, and for what was opened; the analyst is told so.
    pub(crate) fn check_garbage_charged(&self, at: usize, party: usize, ledger: &LedgerCopy, replay: &Replay) {
        assert!(!replay.unfinished.is_empty());
        let missing: Vec<_> = replay.unfinished.keys().filter(|id| !ledger.rows.contains_key(id)).collect();
        assert!(missing.is_empty(), "{} is not charged for {missing:?}", NAMES[party]);
        let all = replay.releases.len() + replay.unfinished.len();
        let told = self.jobs.0[at].ended.as_ref().map(|ended| ended.parties[party].queries as usize);
        assert_eq!((ledger.rows.len(), told), (all, Some(all)), "charged at {}, and what the analyst is told", NAMES[party]);
    }
}
