//! The interval hold: one integer per unit, rounded half to even and clamped to a public interval.
//!
//! Three kernels use it: a step's log ratios, one number per record, and one component of a sufficient statistic.

use pulp::{Simd, WithSimd};

use super::block_pass::{BlockPass, Hold, OTHER};
use super::moves::records_per_unit;
use super::sum::LatticeSum;
use crate::mechanism::{Clamp, Quantiser, QueryKind, sum_fits};
use crate::pass::blocks::{Kernel, KernelVisitor, Lane, Ratios, Scratch, TILE, tile_records};
use crate::pass::persons::{PersonSum, Persons};
use crate::pass::shard::Block;
use crate::pass::small_tile::{SMALL_TILE, TileLane};
use crate::pass::statistic_grid::StatisticGrid;
use crate::pass::step::{Step, Summed};
use crate::pass::tile::Tile;

impl BlockPass<'_> {
    /// Sums the log ratios of all steps.
    ///
    /// A record contributes its log ratio less the step's centre. Where rows are protected, this number is held to the step's
    /// clamp. Where persons of at most `m` records are, each record's number is held to the clamp divided by `m`, and the
    /// person's sum to the clamp. A clip count sums 0 or 1 per unit, and a second moment the square of each unit's held sum.
    ///
    /// # Panics
    /// Panics if another hold than [`Hold::Step`] was charged. Panics if a sum over this block's units could overflow at some
    /// step's clamp; see [`sum_fits`].
    pub fn ratios(self, kernel: &impl Kernel) {
        let (block, steps) = (self.block, self.steps().collect::<Vec<_>>());
        assert_eq!(steps.len(), self.holds.len(), "{OTHER}");
        let totals = block.arch().dispatch(&Sums::new(kernel, block, &steps));
        let held = |((total, step), hold): ((i64, &Step<'_>), &Hold<'_>)| {
            let factor = if step.of == Summed::Clipped { QueryKind::COUNT_UNIT as i64 } else { 1 };
            LatticeSum::whole(&[total.saturating_mul(factor)], hold.moves(block))
        };
        self.sums.extend(totals.into_iter().zip(&steps).zip(self.holds).map(held));
    }

    /// Sums one number per record, with each unit's contribution held to the charged clamp.
    ///
    /// # Panics
    /// Panics if another hold than [`Hold::Value`] was charged, or if a sum over this block's units could overflow; see
    /// [`sum_fits`].
    pub fn values(self, kernel: &impl Values) {
        let (block, [hold @ Hold::Value(clamp)]) = (self.block, self.holds) else { panic!("{OTHER}") };
        assert!(sum_fits(block.units(), *clamp), "callers check that this number of units fits the sum");
        let quantiser = Quantiser::new(1.0, 0.0, clamp.units() / u64::from(records_per_unit(block)));
        let total = block.arch().dispatch(&ValueSum { block, kernel, quantiser, clamp: Clamp::symmetric(clamp.units()) });
        self.sums.push(LatticeSum::whole(&[total], hold.moves(block)));
    }

    /// Sums one component of a sufficient statistic: each record's `value` divided by the lattice step, rounded half to even
    /// and clamped to the lattice's limits. Not-a-number counts as 0, or as the limit closest to 0 if the limits exclude 0. No
    /// branch depends on a value.
    ///
    /// # Panics
    /// Panics if another hold than [`Hold::Statistic`] was charged. Panics if the limits are out of order or beyond 2^50, or if
    /// the sum could overflow. Both are public, and callers check them.
    pub fn statistic(self, value: impl Fn(&Tile<'_>, usize) -> f64) {
        let (block, [hold @ Hold::Statistic(grid)]) = (self.block, self.holds) else { panic!("{OTHER}") };
        let StatisticGrid { step, limits } = *grid;
        let clamp = Clamp::new(limits.0, limits.1);
        let furthest = limits.0.unsigned_abs().max(limits.1.unsigned_abs());
        assert!(u128::from(block.records()) * u128::from(furthest) < 1 << 62, "a statistic's sum overflows");
        let mut total = 0_i64;
        let mut tiles = block.tiles(TILE);
        while let Some(rows) = tiles.next_tile() {
            total = (0..rows.len()).fold(total, |total, i| total.wrapping_add(clamp.units(value(&rows, i) / step)));
        }
        self.sums.push(LatticeSum::whole(&[total], hold.moves(block)));
    }
}

/// A block, and the steps to sum over it.
struct Sums<'a, K: Kernel> {
    kernel: &'a K,
    block: &'a Block<'a>,
    steps: Vec<Prepared<'a, K>>,
}

/// A step with its public constants.
struct Prepared<'a, K: Kernel> {
    step: &'a Step<'a>,
    constants: K::Constants,
    quantiser: Quantiser,
    /// The clamp of one unit's sum of values.
    unit: Clamp,
    /// For squares: the factor of a unit's sum before it is squared, and the clamp of the square.
    squared: (f64, Clamp),
}

impl<K: Kernel> Prepared<'_, K> {
    /// Returns the integer of one record.
    #[inline(always)]
    fn value(&self, ratio: f64) -> i64 {
        if self.step.of == Summed::Clipped { i64::from(self.quantiser.cuts(ratio)) } else { self.quantiser.units(ratio) }
    }

    /// Returns the contribution of a unit whose records' integers sum to `sum`.
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
    fn new(kernel: &'a K, block: &'a Block<'a>, steps: &'a [Step<'a>]) -> Self {
        let share = u64::from(records_per_unit(block));
        let prepare = |step: &'a Step<'a>| {
            let units = step.clamp.units();
            assert!(
                sum_fits(block.units(), step.clamp),
                "{} units of privacy at sensitivity {units} overflow a lattice sum",
                block.units()
            );
            let quantiser = Quantiser::new(step.power, step.centre, units / share);
            // A person counts once, even if several records are clamped. If none is clamped, the person's sum is not clamped
            // either.
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

    #[inline(always)]
    fn total(&self) -> Vec<i64> {
        let mut totals = vec![0_i64; self.steps.len()];
        let mut scratch = Scratch { one: Lane::ZERO, other: Lane::ZERO };
        let mut tiles = self.block.tiles(tile_records(self.block));
        while let Some(rows) = tiles.next_tile() {
            let rows = &rows;
            for (prepared, total) in self.steps.iter().zip(&mut totals) {
                // No partial sum overflows: `sum_fits` was asserted.
                if prepared.step.of != Summed::Ratios {
                    let mut ratios = Ratios::default();
                    self.kernel.log_ratios(rows, &prepared.constants, &mut scratch, &mut ratios);
                    let sum = ratios.of(rows).iter().map(|ratio| prepared.part(prepared.value(*ratio))).sum::<i64>();
                    *total = total.wrapping_add(sum);
                } else {
                    let mut sum = Total { quantiser: prepared.quantiser, total: 0, records: rows.len() };
                    self.kernel.log_ratios(rows, &prepared.constants, &mut scratch, &mut sum);
                    assert_eq!(sum.records, 0, "a kernel gives every record one ratio");
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
        let mut tiles = self.block.tiles(tile_records(self.block));
        while let Some(rows) = tiles.next_tile() {
            let rows = &rows;
            for (prepared, sum) in self.steps.iter().zip(&mut sums) {
                ratios.clear();
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

/// Sums the ratios on the lattice.
struct Total {
    quantiser: Quantiser,
    total: u64,
    /// Records of the tile without a ratio so far.
    records: usize,
}

impl KernelVisitor for Total {
    // An index, so that one loop serves any number of columns.
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    fn over<const N: usize, C>(&mut self, columns: [&[f64]; N], constants: &C, ratio: impl Fn(&C, [f64; N]) -> f64) {
        let (records, quantiser) = (columns[0].len(), self.quantiser);
        let columns = columns.map(|column| &column[..records]);
        // A kernel that gives more ratios than the tile has records panics. The unit that causes it contributes the fallback.
        self.records = self.records.checked_sub(records).unwrap_or_else(|| panic!("a kernel gives every record one ratio"));
        let mut total = 0_u64;
        for i in 0..records {
            total = total.wrapping_add(quantiser.bits(ratio(constants, std::array::from_fn(|k| columns[k][i]))));
        }
        let offsets = Quantiser::OFFSET.wrapping_mul(records as u64);
        self.total = self.total.wrapping_add(total).wrapping_sub(offsets);
    }
}

/// A kernel that computes one number per record.
pub trait Values {
    /// Scratch space for a tile.
    type Room;

    /// Returns scratch space.
    fn room(&self) -> Self::Room;

    /// Fills `values` with one number per record of the tile, in log-likelihood units. Mark implementations
    /// `#[inline(always)]`.
    fn fill(&self, rows: &Tile<'_>, room: &mut Self::Room, values: &mut [f64]);
}

struct ValueSum<'a, V> {
    block: &'a Block<'a>,
    kernel: &'a V,
    quantiser: Quantiser,
    clamp: Clamp,
}

impl<V: Values> WithSimd for &ValueSum<'_, V> {
    type Output = i64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> i64 {
        let (mut room, mut floats, mut integers) =
            (self.kernel.room(), TileLane([0.0; SMALL_TILE]), TileLane([0_i64; SMALL_TILE]));
        let mut by_person = self.block.persons().map(|(persons, first)| (persons, PersonSum::beginning(first)));
        let mut total = 0_i64;
        let mut tiles = self.block.tiles(SMALL_TILE);
        while let Some(rows) = tiles.next_tile() {
            let (floats, integers) = (&mut floats.0[..rows.len()], &mut integers.0[..rows.len()]);
            // A record that the kernel skips is inert, and keeps no number of the previous tile.
            floats.fill(f64::NAN);
            self.kernel.fill(&rows, &mut room, floats);
            integers.iter_mut().zip(&*floats).for_each(|(integer, value)| *integer = self.quantiser.units(*value));
            match &mut by_person {
                // No partial sum overflows: `sum_fits` was asserted.
                None => total = integers.iter().fold(total, |total, value| total.wrapping_add(*value)),
                Some((persons, sum)) => sum.add(persons, rows.range(), integers, |sum| self.clamp.sum(sum)),
            }
        }
        by_person.map_or(total, |(_, sum)| sum.total())
    }
}
