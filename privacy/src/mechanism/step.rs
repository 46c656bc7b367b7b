//! The lattice step, the unit of log likelihood ratios.

/// The lattice step: log likelihood ratios are counted in multiples of 2^-32.
pub const STEP: f64 = 1.0 / STEPS_PER_UNIT;

/// Lattice steps in one log-likelihood unit, 2^32. A power of two, so that multiplying by it is exact.
pub(super) const STEPS_PER_UNIT: f64 = 4_294_967_296.0;

/// Binary digits after the point of the finer unit in which gradients are summed: 2^-49 of a lattice unit.
pub const FRACTION: u32 = 49;
