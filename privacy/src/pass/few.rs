//! Values of a few records, as vectors are made of them.

/// Records per tile: as many numbers as there are parameters are kept of each, which are to stay in the first-level cache.
pub const FEW: usize = 448;

/// Values of a tile's few records, where vectors begin. One lies next to the other, so that they do not crowd a cache's sets.
#[derive(Clone)]
#[repr(align(64))]
pub struct Few<T>(pub [T; FEW]);
