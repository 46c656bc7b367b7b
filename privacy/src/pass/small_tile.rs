//! Lanes of small tiles, for kernels that hold several values per record.

/// Records per small tile. A kernel holds one value per record and parameter, and all of them should stay in the first-level
/// cache.
pub const SMALL_TILE: usize = 448;

/// One value for each record of a small tile, aligned for vector code. The size avoids conflicts between the sets of a cache when
/// lanes are adjacent.
#[derive(Clone)]
#[repr(align(64))]
pub struct TileLane<T>(pub [T; SMALL_TILE]);
