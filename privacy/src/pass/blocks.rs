//! How a kernel walks over a block of a shard: in tiles that stay in the first-level cache, all steps of a message on each tile.
//!
//! A kernel's arithmetic is scalar code over columns that the compiler turns into vector code for the instruction set at hand; inlining
//! carries it there. Fused multiply-adds are asked for by name, and so have the same bits on every vector width and every machine. A processor
//! without them gets them from its mathematical library, some hundred times slower and in a time that depends on the values: a party does not
//! run on one, see [`vectorises`].
//!
//! Everything that is summed is an integer, so the sum of a shard does not depend on the order of blocks and tiles.

use pulp::Arch;

use super::shard::Block;
use super::tile::Tile;

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

/// Returns the records of a tile, which depend on the block's columns alone.
pub(super) fn tile_records(block: &Block<'_>) -> usize {
    let (predictors, auxiliary) = block.columns();
    let fits = CACHED / (size_of::<f64>() * (1 + predictors + auxiliary));
    // Whole cache lines, so that where one tile is aligned the next is.
    fits.clamp(64, TILE) & !7
}

/// Keeps the ratios.
pub(super) struct Ratios(Lane);

impl Default for Ratios {
    fn default() -> Self {
        Self(Lane::ZERO)
    }
}

impl Ratios {
    pub(super) fn of(&self, rows: &Tile<'_>) -> &[f64] {
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
