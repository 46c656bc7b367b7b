//! The laws of a step on enumerated state spaces, and runs on real kernels.

#![allow(clippy::unwrap_used)]

mod enumeration;
mod frames;
mod plane;
pub(super) mod runs;
mod simulation;
