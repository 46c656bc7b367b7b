//! The one-hot hold: a record counts once in each of several tables, or once among the unusable records; see
//! [`super::Moves::one_hot`].

use super::block_pass::{BlockPass, Hold, OTHER};
use super::sum::LatticeSum;
use crate::mechanism::QueryKind;
use crate::pass::tile::Tile;

/// Records per tile.
const SMALL_TILE: usize = 256;
/// The code of a record that is in no cell.
const NOWHERE: f64 = -1.0;

/// A kernel that computes each record's cell in each table.
pub trait Cells {
    /// Fills `codes[k]` with the number of each record's cell in table `k`. Any other number marks an unusable record. No
    /// branch may depend on a record.
    fn fill<const N: usize>(&self, rows: &Tile<'_>, codes: &mut [[f64; N]]);
}

impl BlockPass<'_> {
    /// Counts the records of a block in units of [`QueryKind::COUNT_UNIT`]: first in the `sizes[k]` cells of each table `k`,
    /// and then the unusable records.
    ///
    /// A record is usable if it is in a cell of every table. No branch and no running time depends on a record.
    ///
    /// # Panics
    /// Panics if another hold than [`Hold::OneHot`] of these numbers of tables and cells was charged, or if the counts of this
    /// block's records could overflow.
    pub fn one_hot(self, kernel: &impl Cells, sizes: &[usize]) {
        let (block, [hold @ Hold::OneHot { tables, length }]) = (self.block, self.holds) else { panic!("{OTHER}") };
        assert!(*tables == sizes.len() && *length == sizes.iter().sum::<usize>() + 1, "{OTHER}");
        assert!(u128::from(block.records()) * u128::from(QueryKind::COUNT_UNIT) < 1 << 62, "the counts of a table overflow");
        let mut counts = vec![0_i64; *length];
        let (mut codes, mut usable) = (vec![[NOWHERE; SMALL_TILE]; sizes.len()], [true; SMALL_TILE]);
        let mut tiles = block.tiles(SMALL_TILE);
        while let Some(rows) = tiles.next_tile() {
            let usable = &mut usable[..rows.len()];
            codes.iter_mut().for_each(|codes| codes.fill(NOWHERE));
            kernel.fill(&rows, &mut codes);
            usable.fill(true);
            for (codes, size) in codes.iter().zip(sizes) {
                let size = *size as f64;
                for (usable, code) in usable.iter_mut().zip(codes) {
                    *usable &= (*code >= 0.0) & (*code < size) & (code.floor() == *code);
                }
            }
            let mut first = 0;
            for (codes, size) in codes.iter_mut().zip(sizes) {
                let codes = &mut codes[..rows.len()];
                codes.iter_mut().zip(&*usable).for_each(|(code, usable)| *code = if *usable { *code } else { NOWHERE });
                count(codes, &mut counts[first..first + size]);
                first += size;
            }
            counts[first] += usable.iter().map(|usable| i64::from(!usable)).sum::<i64>();
        }
        let units: Vec<i64> = counts.iter().map(|count| count * QueryKind::COUNT_UNIT as i64).collect();
        self.sums.push(LatticeSum::whole(&units, hold.moves(block)));
    }
}

/// Adds to each cell's count the records whose code is the cell's number. It compares every record with every cell, so that
/// neither the running time nor the memory access depends on a record.
fn count(codes: &[f64], counts: &mut [i64]) {
    for (cell, count) in counts.iter_mut().enumerate() {
        let cell = cell as f64;
        *count += codes.iter().map(|code| i64::from(*code == cell)).sum::<i64>();
    }
}
