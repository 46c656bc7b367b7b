//! Tests of the samplers behind their interface.

pub(super) mod fixtures;
mod gradient_search;
mod masked;
mod penalty;
mod replay;
mod runs;
mod same_bits;
