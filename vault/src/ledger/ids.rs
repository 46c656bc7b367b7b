//! Holds the charged queries of a job: all of them, for an audit, or by fences, for a running party; and sets of sequence numbers.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::RangeInclusive;

/// A set of sequence numbers. The party assigns them itself, one after the other: no one can choose them to collide, and a start inserts
/// each charge's number and removes it again.
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
    /// Positions in the ledger's file of those that came in order; the others are kept by an [`Index`](super::index::Index).
    Fenced(Fences),
}

impl Default for Ids {
    fn default() -> Self {
        Self::Whole(Vec::new())
    }
}

/// The result of inserting an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inserted {
    /// The id is new, and inserted.
    New,
    /// The id is there already.
    Twice,
    /// Greater ones were there before: only the ledger's file shows whether it is new.
    Late,
}

impl Ids {
    /// Inserts the id.
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

/// Charges of a job between two fences, at first: the most that one look into the file reads, beside other jobs' charges.
const EVERY: u32 = 256;
/// Greatest ratio of entries of any kind between two fences to that number.
const SPAN: u64 = 64;
/// Most fences of a job. At one more, every second is removed, and the charges between two double.
const MOST: usize = 4096;

/// Ids that came in order, each greater than all before, so that their charges are in order, too: a fence at regular distances.
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

    /// Returns true for an id greater than every inserted one.
    pub(super) fn is_next(&self, key: (u64, u32)) -> bool {
        self.last.is_none_or(|last| last.key() < key)
    }

    /// Inserts an id that is greater than all inserted ones; returns false for any other.
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

    /// Merges each two fences into one.
    fn thin(&mut self) {
        // The last one of an odd number stays.
        if self.starts.len().is_multiple_of(2) {
            self.behind_last = self.behind_last.saturating_add(self.every);
        }
        let two = |two: &[Fence]| Fence { first: two[0].first, end: two[two.len() - 1].end };
        self.starts = self.starts.chunks(2).map(two).collect();
        self.every = self.every.saturating_mul(2);
    }

    /// Returns numbers of the charges among which an id's lies, if it came in order; `None` where it did not.
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
