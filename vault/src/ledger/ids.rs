//! The charged queries of a job: whole, as an auditor's desk has them, or by fences, as a running party does. And sets of sequence numbers.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::RangeInclusive;

/// A set of sequence numbers. The party gives them out itself, one after the other: nobody can choose them to collide, and a start
/// puts each charge's in and takes it out again.
pub(super) type Seqs = HashSet<u64, BuildHasherDefault<Spread>>;

/// Spreads neighbouring numbers over all bits (Fibonacci hashing, Knuth, The Art of Computer Programming 3, section 6.4).
#[derive(Debug, Clone, Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// One charged query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Id {
    pub(super) iteration: u64,
    pub(super) chain: u32,
    /// `seq` of the charge.
    pub(super) charge: u64,
}

impl Id {
    pub(super) fn key(&self) -> (u64, u32) {
        (self.iteration, self.chain)
    }
}

/// A job's charged queries.
#[derive(Debug, Clone)]
pub(super) enum Ids {
    /// All of them, sorted.
    Whole(Vec<Id>),
    /// Where in the ledger's file those stand that came in order; the others are kept by an [`Index`](super::index::Index).
    Fenced(Fences),
}

impl Default for Ids {
    fn default() -> Self {
        Self::Whole(Vec::new())
    }
}

/// What became of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inserted {
    /// It is new, and in.
    New,
    /// It is there already.
    Twice,
    /// Greater ones were there before: whether it is new is known to the ledger's file alone.
    Late,
}

impl Ids {
    /// Takes the id in.
    pub(super) fn insert(&mut self, id: Id) -> Inserted {
        let all = match self {
            Self::Whole(all) => all,
            Self::Fenced(fences) => return if fences.push(id) { Inserted::New } else { Inserted::Late },
        };
        if all.last().is_none_or(|last| last.key() < id.key()) {
            all.push(id);
            return Inserted::New;
        }
        match all.binary_search_by_key(&id.key(), Id::key) {
            Ok(_) => Inserted::Twice,
            Err(place) => {
                all.insert(place, id);
                Inserted::New
            }
        }
    }
}

/// Charges of a job between two fences, at first: what a look into the file reads at most, beside other jobs' charges.
const EVERY: u32 = 256;
/// How many times as many entries of any kind stand between two fences at most.
const SPAN: u64 = 64;
/// Fences of a job. With one more every second goes, and twice as many charges stand between two.
const MOST: usize = 4096;

/// Ids that came in order, each greater than all before, so that their charges are in order, too: every so many of them.
#[derive(Debug, Clone)]
pub(super) struct Fences {
    starts: Vec<Fence>,
    last: Option<Id>,
    /// Ids from the last fence on.
    behind_last: u32,
    every: u32,
    most: usize,
}

/// An id, and the charge of the last one before the next fence.
#[derive(Debug, Clone, Copy)]
struct Fence {
    first: Id,
    end: u64,
}

impl Default for Fences {
    fn default() -> Self {
        Self::new(EVERY, MOST)
    }
}

impl Fences {
    pub(super) fn new(every: u32, most: usize) -> Self {
        Self { starts: Vec::new(), last: None, behind_last: 0, every, most }
    }

    /// Whether an id is greater than every one that is in.
    pub(super) fn is_next(&self, key: (u64, u32)) -> bool {
        self.last.is_none_or(|last| last.key() < key)
    }

    /// Takes an id in that is greater than all that are; false for any other, which is not taken.
    fn push(&mut self, id: Id) -> bool {
        if !self.is_next(id.key()) {
            return false;
        }
        self.last = Some(id);
        let (every, span) = (self.every, SPAN.saturating_mul(u64::from(self.every)));
        match self.starts.last_mut() {
            Some(fence) if self.behind_last < every && id.charge.saturating_sub(fence.first.charge) < span => {
                fence.end = id.charge;
                self.behind_last += 1;
            }
            _ => {
                self.starts.push(Fence { first: id, end: id.charge });
                self.behind_last = 1;
            }
        }
        if self.starts.len() > self.most {
            self.thin();
        }
        true
    }

    /// Makes one fence of two.
    fn thin(&mut self) {
        // Of an odd number the last one has no other to go with.
        if self.starts.len().is_multiple_of(2) {
            self.behind_last = self.behind_last.saturating_add(self.every);
        }
        let two = |two: &[Fence]| Fence { first: two[0].first, end: two[two.len() - 1].end };
        self.starts = self.starts.chunks(2).map(two).collect();
        self.every = self.every.saturating_mul(2);
    }

    /// Numbers of the charges among which an id's stands, if it came in order; none where it did not come, or not so.
    pub(super) fn between(&self, key: (u64, u32)) -> Option<RangeInclusive<u64>> {
        let after = self.starts.partition_point(|fence| fence.first.key() <= key);
        let fence = self.starts.get(after.checked_sub(1)?)?;
        Some(fence.first.charge..=fence.end)
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.starts.len()
    }
}
