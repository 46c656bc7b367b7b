//! The traversal of a block, in tiles that fit the first-level cache. All steps of a message are evaluated on one tile before
//! the next.
//!
//! A kernel's arithmetic is scalar code over columns. Inlining lets the compiler turn it into vector code for the instruction set
//! in use. Fused multiply-adds are explicit, so the bits are the same on every vector width and every machine. A processor
//! without them would emulate them about a hundred times slower and in a time that depends on the values. A party refuses to run
//! on such a processor; see [`has_fused_multiply_add`].
//!
//! All sums are sums of integers, so the sum of a shard does not depend on the order of blocks and tiles.

use pulp::Arch;

use super::shard::Block;
use super::tile::Tile;

/// The maximum number of records per tile.
pub const TILE: usize = 1024;
/// The size of a tile's columns in bytes, chosen so that they and the computed values stay in the first-level cache.
const CACHED: usize = 32 << 10;

/// Returns whether this processor runs kernels as vector code with fused multiply-adds. On x86-64 this requires AVX2, FMA and the
/// extensions of their generation. Otherwise the time of a pass depends on record values.
#[must_use]
pub fn has_fused_multiply_add() -> bool {
    !cfg!(target_arch = "x86_64") || !matches!(Arch::new(), Arch::Scalar)
}

/// One value for each record of a tile, aligned for vector code.
#[derive(Clone)]
#[repr(align(64))]
pub struct Lane(pub [f64; TILE]);

impl Lane {
    /// A lane of zeros.
    pub const ZERO: Self = Self([0.0; TILE]);
}

/// Temporary space for a kernel's intermediate values of a tile.
pub struct Scratch {
    /// The first lane.
    pub one: Lane,
    /// The second lane.
    pub other: Lane,
}

/// A consumer of the log ratios of a tile's records.
pub trait KernelVisitor {
    /// Evaluates `ratio` on each record. `columns` hold the records' values and have equal lengths.
    ///
    /// `ratio` is straight-line arithmetic without a branch on a record. It must be a function marked `#[inline(always)]`: a
    /// closure might not be inlined into the code for wider vectors.
    fn over<const N: usize, C>(&mut self, columns: [&[f64]; N], constants: &C, ratio: impl Fn(&C, [f64; N]) -> f64);
}

/// The arithmetic of one model.
pub trait Kernel: Sync {
    /// The public values derived from a step, computed once per block.
    type Constants;

    /// Computes the public values of a step.
    fn constants(&self, from: &[f64], to: &[f64]) -> Self::Constants;

    /// Passes `log p(record | to) - log p(record | from)` of each of `rows` to the visitor.
    ///
    /// A record's value depends only on that record and the step, and is odd in the step bit for bit. Mark implementations
    /// `#[inline(always)]`.
    fn log_ratios(&self, rows: &Tile<'_>, constants: &Self::Constants, scratch: &mut Scratch, visitor: &mut impl KernelVisitor);
}

/// Returns the number of records of a tile, which depends only on the number of columns.
pub(super) fn tile_records(block: &Block<'_>) -> usize {
    let (predictors, auxiliary) = block.columns();
    let fits = CACHED / (size_of::<f64>() * (1 + predictors + auxiliary));
    // A multiple of a cache line, so that the next tile is aligned if this one is.
    fits.clamp(64, TILE) & !7
}

/// A visitor that stores the ratios of a tile.
pub(super) struct Ratios {
    lane: Lane,
    /// The number of records of the tile with a ratio so far.
    given: usize,
}

impl Default for Ratios {
    fn default() -> Self {
        Self { lane: Lane::ZERO, given: 0 }
    }
}

impl Ratios {
    /// Forgets the previous tile.
    pub(super) fn clear(&mut self) {
        self.given = 0;
    }

    /// Returns the ratios of a tile.
    ///
    /// # Panics
    /// Panics unless the kernel gave each of the tile's records exactly one ratio. The unit that causes it contributes the
    /// fallback.
    pub(super) fn of(&self, rows: &Tile<'_>) -> &[f64] {
        assert_eq!(self.given, rows.len(), "a kernel gives every record one ratio");
        &self.lane.0[..rows.len()]
    }
}

impl KernelVisitor for Ratios {
    #[inline(always)]
    fn over<const N: usize, C>(&mut self, columns: [&[f64]; N], constants: &C, ratio: impl Fn(&C, [f64; N]) -> f64) {
        let records = columns[0].len();
        let columns = columns.map(|column| &column[..records]);
        for (i, out) in self.lane.0[self.given..][..records].iter_mut().enumerate() {
            *out = ratio(constants, std::array::from_fn(|k| columns[k][i]));
        }
        self.given += records;
    }
}
