//! The trace hold: a record's vectors make a positive semidefinite integer matrix of bounded trace, of which the upper triangle
//! is summed; see [`super::Moves::trace`].

use pulp::{Simd, WithSimd};

use super::block_pass::{BlockPass, Hold, OTHER};
use super::moves::UNIT;
use super::sum::LatticeSum;
use crate::mechanism::Clamp;
use crate::pass::shard::Block;
use crate::pass::tile::Tile;

/// The factor of diagonal entries: `181 / 256`, whose square is below 1/2.
pub const DIAGONAL: f64 = 181.0 / 256.0;
/// Records per tile.
const SMALL_TILE: usize = 256;
/// The bound of a charged trace: a tile's sum of [`SMALL_TILE`] entries of `squares` times 2^32 each stays below 2^53.
const MOST_SQUARES: u64 = 1 << 13;

/// The vector and the component to which a column's numbers belong. A record has several vectors, and its matrix is the sum of
/// their outer products. So it is positive semidefinite whatever the numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The vector.
    pub vector: usize,
    /// The component, below the matrix' order.
    pub component: usize,
}

/// A kernel that computes the numbers of each record's vectors, with one column per place.
pub trait Columns {
    /// Scratch space for a tile.
    type Room;

    /// Returns scratch space.
    fn room(&self) -> Self::Room;

    /// Fills each column with one number per record, of magnitude at most 1. Not-a-number marks a record that is left out. Mark
    /// implementations `#[inline(always)]`.
    fn fill<const N: usize>(&self, rows: &Tile<'_>, room: &mut Self::Room, columns: &mut [[f64; N]]);
}

impl BlockPass<'_> {
    /// Sums the upper triangle of each record's matrix of this order, row after row, in units of 2^-32. Diagonal entries are
    /// multiplied by [`DIAGONAL`] and rounded down.
    ///
    /// Each number is rounded to 2^-16 and held to magnitude 1. A record whose squares sum to more than was charged contributes
    /// zero. The check compares integers, which `f64` holds exactly here.
    ///
    /// # Panics
    /// Panics if another hold than [`Hold::Trace`] of this order was charged, if two columns have the same place or one lies
    /// beyond the order, or if the sum of a tile or of this block could overflow.
    pub fn trace(self, kernel: &impl Columns, order: usize, places: &[Place]) {
        let (block, [hold @ Hold::Trace { squares, length }]) = (self.block, self.holds) else { panic!("{OTHER}") };
        assert!(*length == order * (order + 1) / 2 && places.iter().all(|place| place.component < order), "{OTHER}");
        let largest = u128::from(*squares) * u128::from(UNIT * UNIT);
        assert!(*squares < MOST_SQUARES && u128::from(block.records()) * largest < 1 << 62, "a sum of triangles overflows");
        let distinct = places.iter().enumerate().all(|(i, place)| !places[..i].contains(place));
        assert!(distinct, "two columns have the same place, so a matrix might not be positive semidefinite");
        let entries = (0..order).flat_map(|a| (a..order).map(move |b| (a, b)));
        let of = |component: usize| places.iter().enumerate().filter(move |(_, place)| place.component == component);
        let pairs = |(a, b): (usize, usize)| -> Entry {
            let in_both = |(i, left): (usize, &Place)| of(b).find(|(_, right)| right.vector == left.vector).map(|(j, _)| (i, j));
            Entry { diagonal: a == b, pairs: of(a).filter_map(in_both).collect() }
        };
        let entries: Vec<Entry> = entries.map(pairs).collect();
        let sum = TraceSum { block, kernel, columns: places.len(), entries, most_squares: largest as f64 };
        let triangle = block.arch().dispatch(&sum);
        self.sums.push(LatticeSum::whole(&triangle, hold.moves(block)));
    }
}

/// An entry of the triangle: the pairs of columns whose products it sums.
struct Entry {
    diagonal: bool,
    pairs: Vec<(usize, usize)>,
}

struct TraceSum<'a, C> {
    block: &'a Block<'a>,
    kernel: &'a C,
    columns: usize,
    entries: Vec<Entry>,
    /// The greatest sum of squares of a record, lattice units.
    most_squares: f64,
}

impl<C: Columns> TraceSum<'_, C> {
    #[inline(always)]
    fn total(&self) -> Vec<i64> {
        let mut totals = vec![0_i64; self.entries.len()];
        let (mut values, mut squares) = (vec![[0.0; SMALL_TILE]; self.columns], [0.0; SMALL_TILE]);
        let mut room = self.kernel.room();
        let mut tiles = self.block.tiles(SMALL_TILE);
        while let Some(rows) = tiles.next_tile() {
            // A record that the kernel skips contributes zero, and no number of the previous tile.
            values.iter_mut().for_each(|column| column.fill(f64::NAN));
            self.kernel.fill(&rows, &mut room, &mut values);
            self.hold(&mut values, &mut squares[..rows.len()]);
            self.add(&values, rows.len(), &mut totals);
        }
        totals
    }

    /// Rounds the numbers. Sets all numbers of a record to 0 if their squares sum to more than was charged.
    #[inline(always)]
    fn hold(&self, values: &mut [[f64; SMALL_TILE]], squares: &mut [f64]) {
        let clamp = Clamp::symmetric(UNIT);
        squares.fill(0.0);
        let records = squares.len();
        for column in values.iter_mut() {
            for i in 0..records {
                column[i] = clamp.rounded(column[i] * UNIT as f64);
                squares[i] += column[i] * column[i];
            }
        }
        for column in values.iter_mut() {
            for i in 0..records {
                column[i] = if squares[i] <= self.most_squares { column[i] } else { 0.0 };
            }
        }
    }

    /// Adds the products of a tile. An entry is at most the charged trace, so the sums are exact below [`MOST_SQUARES`].
    #[inline(always)]
    fn add(&self, values: &[[f64; SMALL_TILE]], records: usize, totals: &mut [i64]) {
        for (entry, total) in self.entries.iter().zip(totals) {
            let sum = match (entry.diagonal, &entry.pairs[..]) {
                (true, [(a, _)]) => summed(&values[*a][..records], &values[*a][..records], |x, y| (x * y * DIAGONAL).floor()),
                (false, [(a, b)]) => summed(&values[*a][..records], &values[*b][..records], |x, y| x * y),
                (diagonal, pairs) => (0..records)
                    .map(|i| {
                        let sum: f64 = pairs.iter().map(|(a, b)| values[*a][i] * values[*b][i]).sum();
                        // Rounded once, as a whole.
                        if diagonal { (sum * DIAGONAL).floor() } else { sum }
                    })
                    .sum(),
            };
            *total = total.wrapping_add(sum as i64);
        }
    }
}

/// Returns the sum of whole numbers, in eight parts that a vector unit adds side by side. It is exact, so the order is free.
#[inline(always)]
fn summed(left: &[f64], right: &[f64], product: impl Fn(f64, f64) -> f64) -> f64 {
    let ((left, left_rest), (right, right_rest)) = (left.as_chunks::<8>(), right.as_chunks::<8>());
    let mut parts = [0.0; 8];
    for (left, right) in left.iter().zip(right) {
        for lane in 0..8 {
            parts[lane] += product(left[lane], right[lane]);
        }
    }
    let rest: f64 = left_rest.iter().zip(right_rest).map(|(x, y)| product(*x, *y)).sum();
    parts.iter().sum::<f64>() + rest
}

impl<C: Columns> WithSimd for &TraceSum<'_, C> {
    type Output = Vec<i64>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> Vec<i64> {
        self.total()
    }
}
