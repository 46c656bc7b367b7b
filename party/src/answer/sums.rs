//! The sums over the shard: a query that is charged gets a number, whatever a record holds.
//!
//! Kernels are written not to panic on any numbers. Should one panic all the same, an error or an empty sum would tell of the one
//! record that did it, and would move the sum by more than the sensitivity that was charged. So the block is halved until
//! the unit of privacy that does it stands alone, and that unit contributes 0: within its sensitivity, like any clamped value. How long that takes can be
//! told by an overrun of the reply delay, which is the owner's to see and a defect to report.
//!
//! Records that can't be read are another matter: no sum is made without them, and nothing is answered any more, as where the ledger fails.

use std::panic::{AssertUnwindSafe, catch_unwind};

use conclave_common::mechanism::LatticeSum;
use conclave_common::model::{Block, BlockError, Blocks, Step, Threads};

use super::ActiveJob;

/// Why there is no sum. Neither has to do with what a record holds.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum NoSum {
    /// A block can't be read.
    #[error(transparent)]
    Unread(#[from] BlockError),
    /// The kernel panics without a record.
    #[error("the model's kernel fails on no records at all")]
    Kernel,
}

/// One sum per step, over all units of privacy but those on which the kernel panics.
pub(super) fn sums(active: &ActiveJob, threads: &Threads, steps: &[Step<'_>]) -> Result<Vec<LatticeSum>, NoSum> {
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    guarded(active.records.blocks(), threads, steps.len(), &|block: &Block<'_>| active.model.block_sums(block, steps))
}

/// What `sums` gives, `each` sums a block, for the shard without the units on which it panics.
pub(super) fn guarded(
    blocks: &dyn Blocks,
    threads: &Threads,
    each: usize,
    sums: &(impl Fn(&Block<'_>) -> Vec<LatticeSum> + Sync),
) -> Result<Vec<LatticeSum>, NoSum> {
    threads.sum(blocks, each, |block| halved(block, sums).ok_or(NoSum::Kernel))
}

/// None where `sums` panics without a record.
fn halved(block: &Block<'_>, sums: &impl Fn(&Block<'_>) -> Vec<LatticeSum>) -> Option<Vec<LatticeSum>> {
    let attempt = |block: &Block<'_>| catch_unwind(AssertUnwindSafe(|| sums(block))).ok();
    if let Some(sums) = attempt(block) {
        return Some(sums);
    }
    let units = block.units() as usize;
    if units < 2 {
        return attempt(&block.emptied());
    }
    let lower = halved(&block.part(0..units / 2), sums)?;
    let upper = halved(&block.part(units / 2..units), sums)?;
    Some(lower.into_iter().zip(upper).map(|(a, b)| a.merge(b)).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::num::NonZeroUsize;

    use conclave_common::model::{ModelData, Persons};

    use super::*;

    fn data(persons: Option<Persons>) -> ModelData {
        ModelData {
            outcome: (0..7).map(f64::from).collect(),
            predictors: vec![(10..17).map(f64::from).collect()],
            auxiliary: Vec::new(),
            persons,
        }
    }

    type Opened = Result<Vec<i64>, NoSum>;

    fn open(blocks: &dyn Blocks, sums: &(impl Fn(&Block<'_>) -> Vec<LatticeSum> + Sync)) -> Opened {
        let on = |threads: &Threads| -> Opened {
            Ok(guarded(blocks, threads, 1, sums)?.into_iter().map(LatticeSum::open_for_test).collect())
        };
        let alone = on(&Threads::one());
        assert_eq!(alone, on(&Threads::new(NonZeroUsize::new(3).unwrap()).unwrap()));
        alone
    }

    /// A kernel that panics on some records loses those alone; one that always panics gives nothing.
    #[test]
    fn only_the_units_that_a_kernel_panics_on_are_left_out() {
        let sum = |bad: [f64; 2]| {
            move |block: &Block<'_>| {
                assert!(!block.outcome().iter().any(|y| bad.contains(y)), "planted");
                vec![LatticeSum::from_units_for_test(block.outcome().iter().sum::<f64>() as i64)]
            }
        };
        assert_eq!(open(&data(None), &sum([-1.0; 2])), Ok(vec![21]));
        assert_eq!(open(&data(None), &sum([6.0, 2.0])), Ok(vec![13]));
        // With the record 4 goes its person, who has the records 3 to 6.
        let persons = Persons::new(vec![2, 3, 7], 4);
        assert_eq!(open(&data(persons), &sum([4.0; 2])), Ok(vec![3]));
        let never = |_: &Block<'_>| -> Vec<LatticeSum> { panic!("planted") };
        assert_eq!(open(&data(None), &never), Err(NoSum::Kernel));
    }

    #[test]
    fn units_are_left_out_of_any_block() {
        let records = 100_000;
        let data = ModelData { outcome: (0..records).map(f64::from).collect(), ..ModelData::default() };
        assert!(data.count() > 2);
        let bad = [7.0, 99_999.0];
        let sum = |block: &Block<'_>| {
            assert!(!block.outcome().iter().any(|y| bad.contains(y)), "planted");
            vec![LatticeSum::from_units_for_test(block.outcome().iter().sum::<f64>() as i64)]
        };
        let all = i64::from(records) * i64::from(records - 1) / 2;
        assert_eq!(open(&data, &sum), Ok(vec![all - 7 - 99_999]));
    }
}
