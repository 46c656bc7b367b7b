//! How a kernel walks over a block of a shard: in tiles that stay in the first-level cache, all steps of a message on each tile.
//!
//! A kernel's arithmetic is scalar code over columns that the compiler turns into vector code for the instruction set at hand; inlining
//! carries it there. Fused multiply-adds are asked for by name, and so have the same bits on every vector width and every machine. A processor
//! without them gets them from its mathematical library, some hundred times slower and in a time that depends on the values: a party does not
//! run on one, see [`vectorises`].
//!
//! Everything that is summed is an integer, so the sum of a shard does not depend on the order of blocks and tiles.

use pulp::{Arch, Simd, WithSimd};

use super::persons::{PersonSum, Persons};
use super::shard::Block;
use super::step::{Step, Summed};
use super::tile::Tile;
use crate::mechanism::{Clamp, LatticeSum, Quantiser, QueryKind, sum_fits};

/// Records per tile, at most.
pub const TILE: usize = 1024;
/// Bytes that a tile's columns take, so that they and what is computed from them stay in the first-level cache.
const CACHED: usize = 32 << 10;

/// Whether this processor computes kernels in vectors, by fused multiply-adds: on x86-64 one with AVX2, FMA and what came with them. On
/// another the time of a pass depends on what records hold.
#[must_use]
pub fn vectorises() -> bool {
    !cfg!(target_arch = "x86_64") || !matches!(Arch::new(), Arch::Scalar)
}

/// Values of a tile's records, where vectors begin.
#[derive(Clone)]
#[repr(align(64))]
pub struct Lane(pub [f64; TILE]);

impl Lane {
    /// A lane of zeros.
    pub const ZERO: Self = Self([0.0; TILE]);
}

/// Room for what a kernel computes of a tile on the way.
pub struct Scratch {
    /// The first lane.
    pub one: Lane,
    /// The second lane.
    pub other: Lane,
}

/// What becomes of the log ratios of a tile's records.
pub trait KernelVisitor {
    /// Takes `ratio` of each record, given its numbers in these columns, which are of one length.
    ///
    /// `ratio` is straight-line arithmetic, without a branch on a record. It is a function marked `#[inline(always)]`: a closure may be left
    /// outside of the code for wider vectors.
    fn over<const N: usize, C>(&mut self, columns: [&[f64]; N], constants: &C, ratio: impl Fn(&C, [f64; N]) -> f64);
}

/// One model's arithmetic.
pub trait Kernel: Sync {
    /// What of a step is public, worked out once for a block.
    type Constants;

    /// The constants of a step.
    fn constants(&self, from: &[f64], to: &[f64]) -> Self::Constants;

    /// Shows `log p(record | to) - log p(record | from)` of each of `rows`.
    ///
    /// A record's value depends on that record and the step alone, and is odd in the step bit for bit. Mark it `#[inline(always)]`.
    fn log_ratios(&self, rows: &Tile<'_>, constants: &Self::Constants, scratch: &mut Scratch, visitor: &mut impl KernelVisitor);
}

/// The lattice sums of all steps over one block.
///
/// # Panics
/// When a shard of this size does not fit the sum at some step's clamp; see [`sum_fits`].
pub fn lattice_sums<K: Kernel>(kernel: &K, block: &Block<'_>, steps: &[Step<'_>]) -> Vec<LatticeSum> {
    let totals = block.arch().dispatch(&Sums::new(kernel, block, steps));
    let scaled = |(total, step): (i64, &Step<'_>)| {
        if step.of == Summed::Clipped { total.saturating_mul(QueryKind::COUNT_UNIT as i64) } else { total }
    };
    totals.into_iter().zip(steps).map(scaled).map(LatticeSum::new).collect()
}

/// A block, and the steps to sum over it.
pub struct Sums<'a, K: Kernel> {
    kernel: &'a K,
    block: &'a Block<'a>,
    steps: Vec<Prepared<'a, K>>,
}

/// A step with its public constants.
struct Prepared<'a, K: Kernel> {
    step: &'a Step<'a>,
    constants: K::Constants,
    quantiser: Quantiser,
    /// What holds one unit's sum of values.
    unit: Clamp,
    /// Of squares: what a unit's sum is multiplied by before it is squared, and what holds the square.
    squared: (f64, Clamp),
}

impl<K: Kernel> Prepared<'_, K> {
    /// What one record adds to its unit's sum.
    #[inline(always)]
    fn value(&self, ratio: f64) -> i64 {
        if self.step.of == Summed::Clipped { i64::from(self.quantiser.cuts(ratio)) } else { self.quantiser.units(ratio) }
    }

    /// What a unit whose records add up to `sum` adds to the total.
    #[inline(always)]
    fn part(&self, sum: i64) -> i64 {
        match self.step.of {
            Summed::Ratios | Summed::Clipped => self.unit.sum(sum),
            Summed::Squares => {
                let (scale, clamp) = self.squared;
                let root = self.unit.sum(sum) as f64 * scale;
                clamp.units(root * root)
            }
        }
    }
}

impl<'a, K: Kernel> Sums<'a, K> {
    pub(super) fn new(kernel: &'a K, block: &'a Block<'a>, steps: &'a [Step<'a>]) -> Self {
        let share = u64::from(block.persons().map_or(1, |(persons, _)| persons.limit()));
        let prepare = |step: &'a Step<'a>| {
            let units = step.clamp.units();
            assert!(
                sum_fits(block.units(), step.clamp),
                "{} units of privacy at sensitivity {units} overflow a lattice sum",
                block.units()
            );
            let quantiser = Quantiser::new(step.power, step.centre, units / share);
            // A person counts once, however many of the records are clamped; where none is, their sum is within its own clamp.
            let unit = Clamp::symmetric(if step.of == Summed::Clipped { 1 } else { units });
            let squared = match step.of {
                // No sum of 2^32 units overflows, and a block has fewer.
                Summed::Squares => {
                    ((QueryKind::SQUARE_UNITS as f64).sqrt() / units as f64, Clamp::new(0, QueryKind::SQUARE_UNITS as i64))
                }
                Summed::Ratios | Summed::Clipped => (0.0, Clamp::symmetric(0)),
            };
            Prepared { step, constants: kernel.constants(step.from, step.to), quantiser, unit, squared }
        };
        Self { kernel, block, steps: steps.iter().map(prepare).collect() }
    }

    /// Records per tile.
    fn tile(&self) -> usize {
        let (predictors, auxiliary) = self.block.columns();
        let fits = CACHED / (size_of::<f64>() * (1 + predictors + auxiliary));
        // Whole cache lines, so that where one tile is aligned the next is.
        fits.clamp(64, TILE) & !7
    }

    #[inline(always)]
    fn total(&self) -> Vec<i64> {
        let mut totals = vec![0_i64; self.steps.len()];
        let mut scratch = Scratch { one: Lane::ZERO, other: Lane::ZERO };
        let mut tiles = self.block.tiles(self.tile());
        while let Some(rows) = tiles.next_tile() {
            let rows = &rows;
            for (prepared, total) in self.steps.iter().zip(&mut totals) {
                // No partial sum overflows: sum_fits.
                if prepared.step.of != Summed::Ratios {
                    let mut ratios = Ratios::default();
                    self.kernel.log_ratios(rows, &prepared.constants, &mut scratch, &mut ratios);
                    let sum = ratios.of(rows).iter().map(|ratio| prepared.part(prepared.value(*ratio))).sum::<i64>();
                    *total = total.wrapping_add(sum);
                } else {
                    let mut sum = Total { quantiser: prepared.quantiser, total: 0 };
                    self.kernel.log_ratios(rows, &prepared.constants, &mut scratch, &mut sum);
                    *total = total.wrapping_add(sum.total as i64);
                }
            }
        }
        totals
    }

    #[inline(always)]
    fn total_by_person(&self, persons: &Persons, first: usize) -> Vec<i64> {
        let mut sums = vec![PersonSum::beginning(first); self.steps.len()];
        let mut scratch = Scratch { one: Lane::ZERO, other: Lane::ZERO };
        let (mut ratios, mut values) = (Ratios::default(), [0_i64; TILE]);
        let mut tiles = self.block.tiles(self.tile());
        while let Some(rows) = tiles.next_tile() {
            let rows = &rows;
            for (prepared, sum) in self.steps.iter().zip(&mut sums) {
                self.kernel.log_ratios(rows, &prepared.constants, &mut scratch, &mut ratios);
                let values = &mut values[..rows.len()];
                for (value, ratio) in values.iter_mut().zip(ratios.of(rows)) {
                    *value = prepared.value(*ratio);
                }
                sum.add(persons, rows.range(), values, |sum| prepared.part(sum));
            }
        }
        sums.iter().map(PersonSum::total).collect()
    }
}

impl<K: Kernel> WithSimd for &Sums<'_, K> {
    type Output = Vec<i64>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> Vec<i64> {
        match self.block.persons() {
            None => self.total(),
            Some((persons, first)) => self.total_by_person(persons, first),
        }
    }
}

/// Adds up the ratios on the lattice.
struct Total {
    quantiser: Quantiser,
    total: u64,
}

impl KernelVisitor for Total {
    // An index, so that one loop serves any number of columns.
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    fn over<const N: usize, C>(&mut self, columns: [&[f64]; N], constants: &C, ratio: impl Fn(&C, [f64; N]) -> f64) {
        let (records, quantiser) = (columns[0].len(), self.quantiser);
        let columns = columns.map(|column| &column[..records]);
        let mut total = 0_u64;
        for i in 0..records {
            total = total.wrapping_add(quantiser.bits(ratio(constants, std::array::from_fn(|k| columns[k][i]))));
        }
        let offsets = Quantiser::OFFSET.wrapping_mul(records as u64);
        self.total = self.total.wrapping_add(total).wrapping_sub(offsets);
    }
}

/// Keeps the ratios.
struct Ratios(Lane);

impl Default for Ratios {
    fn default() -> Self {
        Self(Lane::ZERO)
    }
}

impl Ratios {
    fn of(&self, rows: &Tile<'_>) -> &[f64] {
        &self.0.0[..rows.len()]
    }
}

impl KernelVisitor for Ratios {
    #[inline(always)]
    fn over<const N: usize, C>(&mut self, columns: [&[f64]; N], constants: &C, ratio: impl Fn(&C, [f64; N]) -> f64) {
        let records = columns[0].len();
        let columns = columns.map(|column| &column[..records]);
        for (i, out) in self.0.0[..records].iter_mut().enumerate() {
            *out = ratio(constants, std::array::from_fn(|k| columns[k][i]));
        }
    }
}
