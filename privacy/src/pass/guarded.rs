//! Sums over a shard. Every charged query gets its sum, even if a kernel fails on some record.
//!
//! Kernels are written not to panic on any numbers. If one panics nevertheless, an error or an empty sum would reveal the
//! record that caused it. It would also move the sum by more than the charged sensitivity. So the block is halved until the
//! unit of privacy that causes the panic stands alone. That unit contributes its hold's fallback, which is within the distance
//! of the hold.
//!
//! Theorem, sensitivity: replacing one unit moves a sum by at most the distance of its hold, even if a kernel fails on that
//! unit.
//! Proof: `docs/explanation/proofs.md`, section 1.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::hold::{Hold, Kernels, LatticeSum, SumCache, sums_of_block};
use super::pass::{NoSum, Threads};
use super::{Block, Blocks, HiddenSample};
use crate::mechanism::QueryKind;

impl Threads {
    /// Sums each hold over all units of a shard, in one pass over its blocks. A unit on which a kernel fails contributes the
    /// hold's fallback.
    ///
    /// # Errors
    /// [`NoSum::Unread`] if a block cannot be read, or unless every unit is in exactly one block. [`NoSum::Kernel`] if a kernel
    /// fails even without records.
    pub fn sums(&self, blocks: &dyn Blocks, holds: &[Hold<'_>], kernels: Kernels<'_>) -> Result<Vec<LatticeSum>, NoSum> {
        self.sum(blocks, holds.len(), |block| guarded(block, holds, kernels))
    }

    /// Sums each hold over the units of its own sample, which it consumes; see [`Threads::sums`].
    ///
    /// # Errors
    /// [`NoSum::Sample`] if a sample was drawn from another number of units. [`NoSum::Unread`] if a block cannot be read, or
    /// unless every unit is in exactly one block. [`NoSum::Kernel`] if a kernel fails even without records.
    pub fn sampled_sums(
        &self,
        blocks: &dyn Blocks,
        asked: Vec<(Hold<'_>, HiddenSample)>,
        kernels: Kernels<'_>,
    ) -> Result<Vec<LatticeSum>, NoSum> {
        if asked.iter().any(|(_, sample)| sample.units() != blocks.units()) {
            return Err(NoSum::Sample);
        }
        let sums = self.sum(blocks, asked.len(), |block| {
            let one = |(at, (hold, sample)): (usize, &(Hold<'_>, HiddenSample))| {
                guarded(&block.sampled(sample), std::slice::from_ref(hold), &|_, pass| kernels(at, pass))?.pop()
            };
            asked.iter().enumerate().map(one).collect()
        })?;
        Ok(sums.into_iter().zip(asked).map(|(sum, (_, sample))| sum.over_sample(sample.probability())).collect())
    }

    /// Computes and keeps the sums of these kinds of query over all units of a shard; see [`Threads::sums`].
    ///
    /// # Errors
    /// [`NoSum::Unread`] if a block cannot be read, or unless every unit is in exactly one block. [`NoSum::Kernel`] if a kernel
    /// fails even without records.
    pub fn cache(&self, blocks: &dyn Blocks, asked: &[(QueryKind, Hold<'_>)], kernels: Kernels<'_>) -> Result<SumCache, NoSum> {
        let holds: Vec<Hold<'_>> = asked.iter().map(|(_, hold)| *hold).collect();
        let sums = self.sums(blocks, &holds, kernels)?;
        Ok(SumCache::new(asked.iter().map(|(kind, _)| *kind).zip(sums)))
    }
}

/// Returns the sums of a block; `None` if the kernels fail even without records. This is tested before they read a record, so
/// that such a failure does not depend on one.
fn guarded(block: &Block<'_>, holds: &[Hold<'_>], kernels: Kernels<'_>) -> Option<Vec<LatticeSum>> {
    attempt(&block.without_records(), holds, kernels)?;
    halved(block, holds, kernels)
}

/// Returns the sums of a block; `None` if a kernel panics, or if the sums differ in number or length from the charged ones.
fn attempt(block: &Block<'_>, holds: &[Hold<'_>], kernels: Kernels<'_>) -> Option<Vec<LatticeSum>> {
    let fit = |sums: &Vec<LatticeSum>| sums.iter().map(LatticeSum::length).eq(holds.iter().map(Hold::length));
    catch_unwind(AssertUnwindSafe(|| sums_of_block(block, holds, kernels))).ok().filter(fit)
}

/// Returns the sums of a block, with the fallback of every unit on which a kernel fails; `None` if it fails even without
/// records.
fn halved(block: &Block<'_>, holds: &[Hold<'_>], kernels: Kernels<'_>) -> Option<Vec<LatticeSum>> {
    if let Some(sums) = attempt(block, holds, kernels) {
        return Some(sums);
    }
    let units = block.units() as usize;
    if units < 2 {
        let without_records = attempt(&block.without_records(), holds, kernels)?;
        return Some(if units == 0 { without_records } else { holds.iter().map(|hold| hold.fallback(block)).collect() });
    }
    let lower = halved(&block.part(0..units / 2), holds, kernels)?;
    let upper = halved(&block.part(units / 2..units), holds, kernels)?;
    Some(lower.into_iter().zip(upper).map(|(a, b)| a.merge(b)).collect())
}

#[cfg(test)]
#[path = "tests/guarded.rs"]
mod tests;
