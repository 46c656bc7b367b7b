//! A pass over a shard: the sum over its blocks, on one or several threads.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use super::hold::LatticeSum;
use super::{Block, BlockError, Blocks};

/// The product of records and sums below which a pass stays on the calling thread. Waking another thread would take as long as
/// the pass.
const SMALL: u64 = 1 << 17;

/// The reason why a pass has no sum. It never depends on a record's values.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NoSum {
    /// A block can't be read.
    #[error(transparent)]
    Unread(#[from] BlockError),
    /// The kernel panics even without records, or gives sums of other holds or lengths than were charged.
    #[error("the model's kernel fails even without records, or gives other sums than were charged")]
    Kernel,
    /// A sample was drawn from another number of units than the shard has.
    #[error("a sample was drawn from another number of units than the shard has")]
    Sample,
}

/// The threads that run passes. Sums do not depend on their number.
pub struct Threads {
    /// All threads but the calling one.
    others: Option<ThreadPool>,
}

impl Threads {
    /// Starts `count` threads, including the calling one.
    ///
    /// # Errors
    /// If the operating system cannot start a thread.
    pub fn new(count: NonZeroUsize) -> Result<Self, ThreadPoolBuildError> {
        let pool = |others| ThreadPoolBuilder::new().num_threads(others).thread_name(|i| format!("pass-{}", i + 1)).build();
        let others = Some(count.get() - 1).filter(|others| *others > 0).map(pool).transpose()?;
        Ok(Self { others })
    }

    /// Uses only the calling thread.
    #[must_use]
    pub fn one() -> Self {
        Self { others: None }
    }

    /// Returns the number of threads, at least 1.
    #[must_use]
    pub fn count(&self) -> usize {
        1 + self.others.as_ref().map_or(0, ThreadPool::current_num_threads)
    }

    /// Adds the results of `sums` over all blocks; each result has `each` sums.
    ///
    /// The number of threads used depends only on the numbers of records and sums.
    ///
    /// # Errors
    /// [`NoSum::Unread`] for a block that cannot be read, or unless every unit is in exactly one block. [`NoSum::Kernel`] if
    /// `sums` returns `None` for a block.
    pub(super) fn sum(
        &self,
        blocks: &dyn Blocks,
        each: usize,
        sums: impl Fn(&Block<'_>) -> Option<Vec<LatticeSum>> + Sync,
    ) -> Result<Vec<LatticeSum>, NoSum> {
        if each == 0 {
            return Ok(Vec::new());
        }
        let (count, next, places) = (blocks.count(), AtomicUsize::new(0), Mutex::new(Vec::new()));
        let part = || -> Result<Vec<LatticeSum>, NoSum> {
            let mut total: Option<Vec<LatticeSum>> = None;
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= count {
                    return Ok(total.unwrap_or_default());
                }
                let sums_of = |block: Block<'_>| {
                    places.lock().unwrap_or_else(PoisonError::into_inner).push(block.places());
                    sums(&block).ok_or(NoSum::Kernel)
                };
                let of_block = blocks.block(at).map_err(NoSum::from).and_then(sums_of).inspect_err(|_| {
                    // No thread takes another block.
                    next.store(count, Ordering::Relaxed);
                })?;
                total = Some(merged(total.unwrap_or_default(), of_block));
            }
        };
        let large = blocks.records().saturating_mul(each as u64) >= SMALL;
        let parts = Mutex::new(Vec::new());
        let keep = |part| parts.lock().unwrap_or_else(PoisonError::into_inner).push(part);
        match self.others.as_ref().filter(|_| large && count > 1) {
            None => keep(part()),
            Some(others) => others.in_place_scope(|scope| {
                for _ in 0..others.current_num_threads().min(count - 1) {
                    scope.spawn(|_| keep(part()));
                }
                keep(part());
            }),
        }
        let parts = parts.into_inner().unwrap_or_else(PoisonError::into_inner);
        let total = parts.into_iter().try_fold(Vec::new(), |total, part| Ok::<_, NoSum>(merged(total, part?)))?;
        let places = places.into_inner().unwrap_or_else(PoisonError::into_inner);
        if !is_partition(places, blocks.units()) {
            return Err(BlockError::new("a unit of privacy is not in exactly one block").into());
        }
        Ok(total)
    }
}

/// Returns whether these blocks hold each of `units` units exactly once. The places of blocks are public, and so is the result.
fn is_partition(mut blocks: Vec<Range<u64>>, units: u64) -> bool {
    blocks.sort_unstable_by_key(|block| (block.start, block.end));
    let end = blocks.iter().try_fold(0, |end, block| (block.start == end).then_some(block.end));
    end == Some(units)
}

/// Merges the sums of two parts of a shard. An empty list stands for no blocks.
fn merged(a: Vec<LatticeSum>, b: Vec<LatticeSum>) -> Vec<LatticeSum> {
    match (a.is_empty(), b.is_empty()) {
        (true, _) => b,
        (_, true) => a,
        _ => a.into_iter().zip(b).map(|(a, b)| a.merge(b)).collect(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::pass::ModelData;

    /// Numbers 0 to n - 1, ten to a block; one block may fail.
    struct Numbers(usize, Option<usize>);

    impl Blocks for Numbers {
        fn count(&self) -> usize {
            self.0.div_ceil(10).max(1)
        }
        fn records(&self) -> u64 {
            1 << 40
        }
        fn units(&self) -> u64 {
            self.0 as u64
        }
        fn block(&self, at: usize) -> Result<Block<'_>, BlockError> {
            if self.1 == Some(at) {
                return Err(BlockError::new("planted"));
            }
            let outcome = (10 * at..self.0.min(10 * at + 10)).map(|i| i as f64).collect();
            Ok(Block::owned(ModelData { outcome, ..ModelData::default() }, 10 * at as u64))
        }
    }

    fn threads(count: usize) -> Threads {
        Threads::new(NonZeroUsize::new(count).unwrap()).unwrap()
    }

    #[test]
    fn every_block_is_added_once_on_any_number_of_threads() {
        let sums = |block: &Block<'_>| {
            let total: f64 = block.outcome().iter().sum();
            Some(vec![LatticeSum::from_units_for_test(total as i64), LatticeSum::from_units_for_test(block.units() as i64)])
        };
        for count in [1, 2, 3, 8] {
            assert_eq!(threads(count).count(), count);
            for n in [0, 1, 9, 10, 11, 1_000, 12_345_usize] {
                let sums = threads(count).sum(&Numbers(n, None), 2, sums).unwrap();
                let sums: Vec<i64> = sums.into_iter().map(LatticeSum::open_for_test).collect();
                assert_eq!(sums, [(n * n.saturating_sub(1) / 2) as i64, n as i64]);
            }
        }
    }

    #[test]
    fn a_block_that_fails_leaves_no_sum() {
        let sums = |_: &Block<'_>| Some(vec![LatticeSum::from_units_for_test(1)]);
        for count in [1, 2, 8] {
            for bad in [0, 50, 99] {
                assert_eq!(
                    threads(count).sum(&Numbers(1_000, Some(bad)), 1, sums).err(),
                    Some(BlockError::new("planted").into())
                );
            }
        }
    }
}
