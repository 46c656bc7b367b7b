//! How a kernel walks over a shard: in blocks that fit the first-level cache, all steps of a message on each block.
//!
//! Everything here is integer addition, so the sum of a shard does not depend on the order of blocks; a caller may split a shard by
//! blocks over threads and merge the parts.

use pulp::{Arch, Simd, WithSimd};

use super::Step;
use super::persons::{PersonSum, Persons};
use super::source::{Block, Rows};
use crate::mechanism::{LatticeSum, QueryKind, beyond, quantise_units, sum_fits};

/// Records per block.
pub(super) const BLOCK: usize = 512;

/// One model's arithmetic on a block of records.
pub(super) trait Kernel: Sync {
    /// Writes `log p(record | to) - log p(record | from)` of each record of `rows` to `out`; `scratch` and `out` are as long as `rows`.
    ///
    /// A record's value depends on that record and the step alone, and is odd in the step bit for bit. Inlined into code built for
    /// wider vectors: mark it `#[inline(always)]`.
    fn log_ratios(&self, rows: &Rows<'_>, step: (&[f64], &[f64]), scratch: &mut [f64], out: &mut [f64]);
}

/// The lattice sums of all steps over one block.
///
/// # Panics
/// When a shard of this size does not fit the sum at some step's sensitivity; see [`sum_fits`].
pub(super) fn lattice_sums<K: Kernel>(kernel: &K, block: &Block<'_>, steps: &[Step<'_>]) -> Vec<LatticeSum> {
    for step in steps {
        assert!(
            sum_fits(block.units(), step.sensitivity),
            "{} units of privacy at sensitivity {} overflow a lattice sum",
            block.units(),
            step.sensitivity.units()
        );
    }
    let totals = Arch::new().dispatch(Sums { kernel, block, steps });
    let scaled = |(total, step): (i64, &Step<'_>)| {
        if step.count_clipped { total.saturating_mul(QueryKind::COUNT_UNIT as i64) } else { total }
    };
    totals.into_iter().zip(steps).map(scaled).map(LatticeSum::new).collect()
}

struct Sums<'a, K> {
    kernel: &'a K,
    block: &'a Block<'a>,
    steps: &'a [Step<'a>],
}

impl<K: Kernel> WithSimd for Sums<'_, K> {
    type Output = Vec<i64>;

    // The arithmetic is scalar code that the compiler vectorises for the instruction set at hand; inlining carries it there.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> Vec<i64> {
        match self.block.persons() {
            None => self.total(),
            Some((persons, first)) => self.total_by_person(persons, first),
        }
    }
}

impl<K: Kernel> Sums<'_, K> {
    #[inline(always)]
    fn total(&self) -> Vec<i64> {
        let mut totals = vec![0_i64; self.steps.len()];
        let (mut scratch, mut ratios) = ([0.0; BLOCK], [0.0; BLOCK]);
        for rows in self.block.rows(BLOCK) {
            let (scratch, ratios) = (&mut scratch[..rows.len()], &mut ratios[..rows.len()]);
            for (step, total) in self.steps.iter().zip(&mut totals) {
                self.kernel.log_ratios(&rows, (step.from, step.to), scratch, ratios);
                // At most 2^50, so exact.
                let (clamp, centre, power) = (step.sensitivity.units() as f64, step.centre, step.power);
                // No partial sum overflows: sum_fits.
                let sum = if step.count_clipped {
                    // Public: which of the two is asked.
                    ratios.iter().fold(0_i64, |sum, ratio| sum.wrapping_add(i64::from(beyond(*ratio * power - centre, clamp))))
                } else {
                    ratios.iter().fold(0_i64, |sum, ratio| sum.wrapping_add(quantise_units(*ratio * power - centre, clamp)))
                };
                *total = total.wrapping_add(sum);
            }
        }
        totals
    }

    #[inline(always)]
    fn total_by_person(&self, persons: &Persons, first: usize) -> Vec<i64> {
        let mut sums = vec![PersonSum::beginning(first); self.steps.len()];
        let (mut scratch, mut ratios, mut values) = ([0.0; BLOCK], [0.0; BLOCK], [0_i64; BLOCK]);
        for rows in self.block.rows(BLOCK) {
            let (scratch, ratios) = (&mut scratch[..rows.len()], &mut ratios[..rows.len()]);
            for (step, sum) in self.steps.iter().zip(&mut sums) {
                self.kernel.log_ratios(&rows, (step.from, step.to), scratch, ratios);
                let clamp = (step.sensitivity.units() / u64::from(persons.limit())) as f64;
                for (value, ratio) in values.iter_mut().zip(ratios.iter()) {
                    let ratio = *ratio * step.power - step.centre;
                    *value = if step.count_clipped { i64::from(beyond(ratio, clamp)) } else { quantise_units(ratio, clamp) };
                }
                // At most 2^50. A person counts once, however many of the records are clamped; where none is, their sum is within its
                // own clamp.
                let most = if step.count_clipped { 1 } else { step.sensitivity.units() as i64 };
                sum.add(persons, rows.range(), &values[..rows.len()], most);
            }
        }
        sums.iter().map(PersonSum::total).collect()
    }
}
