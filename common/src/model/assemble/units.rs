//! Tiles of scaled values, and their values in the data's units.

use crate::parameter::LEAST_MAGNITUDE;
use crate::schema::ColumnSpec;

/// Records that are scaled at once: their values stay in the first-level cache.
pub(super) const TILE: usize = 256;

/// The data's units of a numeric column.
pub(super) struct Bounds {
    min: f64,
    max: f64,
    centre: f64,
    half_width: f64,
}

impl Bounds {
    /// Returns the units of a column that is declared numeric.
    pub(super) fn of(column: &ColumnSpec) -> Option<Self> {
        let ColumnSpec::Numeric { min, max } = *column else { return None };
        Some(Self { min, max, centre: column.centre(), half_width: column.half_width() })
    }
}

/// Returns a scaled value in the data's units.
pub(super) fn natural(bounds: &Option<Bounds>, x: f64) -> f64 {
    bounds.as_ref().map_or(x, |b| (b.centre + b.half_width * x).clamp(b.min, b.max))
}

/// Flushes to 0; see [`LEAST_MAGNITUDE`].
#[inline(always)]
pub(super) fn flushed(x: f64) -> f64 {
    if x.abs() < LEAST_MAGNITUDE { 0.0 } else { x }
}
