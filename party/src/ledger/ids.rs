//! The charged queries of a job: a sorted list, since ids come nearly in order. And sets of sequence
//! numbers.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

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
    fn key(&self) -> (u64, u32) {
        (self.iteration, self.chain)
    }
}

/// A job's charged queries.
#[derive(Debug, Clone, Default)]
pub(super) struct Ids(Vec<Id>);

impl Ids {
    /// `seq` of the query's charge.
    pub(super) fn find(&self, iteration: u64, chain: u32) -> Option<u64> {
        let place = self.0.binary_search_by_key(&(iteration, chain), Id::key).ok()?;
        self.0.get(place).map(|id| id.charge)
    }

    /// False where the id is there already.
    pub(super) fn insert(&mut self, id: Id) -> bool {
        if self.0.last().is_none_or(|last| last.key() < id.key()) {
            self.0.push(id);
            return true;
        }
        match self.0.binary_search_by_key(&id.key(), Id::key) {
            Ok(_) => false,
            Err(place) => {
                self.0.insert(place, id);
                true
            }
        }
    }
}
