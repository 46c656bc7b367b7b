//! A party of a masked job that sends garbage in place of one answer, and the required outcome.
//!
//! The culprit cannot be identified without opening the masks of all. The job therefore ends at that round, immediately, since
//! another attempt would cost every owner another charge. The round's charges stand at every party.

use std::hash::{DefaultHasher, Hash, Hasher};

use conclave_proto::v1::{Answer, JobStatus};
use conclave_tests::books::{LedgerCopy, Replay};

use super::fixture::NAMES;
use super::mutant::Mutant;
use super::plan::Plan;
use super::recorder::Round;
use super::world::World;

/// A kind of invalid answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Garbage {
    /// Sixty-four random bits in every place, as from masks that do not cancel.
    Uniform,
    /// A plausible number; only the masks of zero do not cancel.
    OtherMasks,
    /// A number that no records can give, under the right masks.
    FarOut,
}

/// Returns the round of the first job whose answer is garbage, and its party. They vary between lists, but not between
/// repetitions of the query.
fn target(plan: &Plan) -> (usize, u64) {
    ((plan.seed / 5) as usize % NAMES.len(), plan.seed % 5)
}

impl Garbage {
    /// Replaces the party's answer with garbage.
    pub(crate) fn replace(self, plan: &Plan, (party, job, iteration): Round, answer: &mut Answer) {
        if job > 0 || (party, iteration) != target(plan) || answer.status != Some(0) {
            return;
        }
        let (Some(first), Some(check)) = (answer.releases.first_mut(), &mut answer.check) else {
            panic!("garbage is of masked jobs: {answer:?}")
        };
        match self {
            Self::FarOut => *first = first.wrapping_add(1 << 60),
            Self::OtherMasks => (*first, *check) = (first.wrapping_add(1), check.wrapping_sub(1)),
            Self::Uniform => {
                let anything = |target: usize| {
                    let mut hash = DefaultHasher::new();
                    (plan.seed, iteration, target).hash(&mut hash);
                    hash.finish()
                };
                *check = anything(usize::MAX);
                answer.releases.iter_mut().enumerate().for_each(|(at, release)| *release = anything(at).cast_signed());
            }
        }
    }
}

impl World<'_> {
    /// Returns the round with garbage, if this job has it.
    fn garbage_round(&self, job: usize) -> Option<u64> {
        (job == 0 && matches!(self.mutant, Mutant::Garbage(_))).then(|| target(&self.plan).1)
    }

    /// Records the time of the last answer to the round, and the time at which the job's end was observed.
    pub(crate) fn time_garbage(&mut self, round: Option<Round>) {
        if round.is_some_and(|(_, job, iteration)| self.garbage_round(job) == Some(iteration)) {
            self.garbage_left = Some(self.now);
        }
        if self.jobs.0[0].ended.is_some() {
            self.garbage_seen.get_or_insert(self.now);
        }
    }

    /// Returns true if garbage ended a job; panics where the job continued after it, or ended in another way.
    pub(crate) fn ended_by_garbage(&self, at: usize, ended: &JobStatus, replay: &Replay) -> bool {
        let Some(iteration) = self.garbage_round(at) else { return false };
        assert!(replay.rounds <= iteration, "round {iteration} was garbage, and the log has {} rounds", replay.rounds);
        let later = self.recorder.queries.keys().find(|(_, job, asked)| *job == at && *asked > iteration);
        assert_eq!(later, None, "queried after the garbage of round {iteration} (party, job, round)");
        if (ended.state.as_str(), ended.error_code.as_str()) != ("failed", "internal") {
            return false;
        }
        assert_eq!(replay.rounds, iteration, "rounds before the garbage");
        assert!(ended.error.contains(&format!("round {iteration}: ")) && ended.error.contains("do not cancel"), "{ended:?}");
        assert!(!NAMES.iter().any(|name| ended.error.contains(name)), "the culprit cannot be known: {}", ended.error);
        if self.plan == self.plan.undisturbed() {
            self.check_immediate(at, iteration);
        }
        true
    }

    /// Checks that without other faults no query is repeated, no party is waited for, and no key remains.
    fn check_immediate(&self, at: usize, iteration: u64) {
        let (left, seen) = (self.garbage_left.expect("garbage"), self.garbage_seen.expect("an end"));
        assert!(seen - left <= 50, "{} ms went by between the last answer and the end", seen - left);
        for node in &self.nodes {
            let handled = self.recorder.handled.get(&(node.index, at, iteration));
            assert_eq!(handled, Some(&1), "answers of {} to the round that was garbage", NAMES[node.index]);
            let keys: Vec<_> = std::fs::read_dir(node.folder.join("mask-keys")).expect("a folder").collect();
            assert!(keys.is_empty(), "{} keeps a key of a job that has ended: {keys:?}", NAMES[node.index]);
        }
    }

    /// Checks that every party is charged once for the failed message and for all opened ones, and that the analyst's status says
    /// so.
    pub(crate) fn check_garbage_charged(&self, at: usize, party: usize, ledger: &LedgerCopy, replay: &Replay) {
        assert!(!replay.unfinished.is_empty());
        let missing: Vec<_> = replay.unfinished.keys().filter(|id| !ledger.rows.contains_key(id)).collect();
        assert!(missing.is_empty(), "{} is not charged for {missing:?}", NAMES[party]);
        let all = replay.releases.len() + replay.unfinished.len();
        let reported = self.jobs.0[at].ended.as_ref().map(|ended| ended.parties[party].queries as usize);
        assert_eq!(
            (ledger.rows.len(), reported),
            (all, Some(all)),
            "charged at {}, and the charges in the analyst's status",
            NAMES[party]
        );
    }
}
