//! A run's result and its draws: what the coordinator writes while chains run, and what an analyst reads when they have ended.
//!
//! - [`zarr`]: draws as they come, in a Zarr v3 store, and their arrays read back. [`attributes`]: what such a store says of itself.
//! - [`spent`]: what a job has spent at a party. [`result`]: the finished run's object.
//! - [`Draws`]: a whole store read back. [`export`]: the same for other programs, as CmdStan files and as a Parquet table.
#![forbid(unsafe_code)]

pub mod attributes;
mod draws;
pub mod export;
mod ratios;
mod released;
pub mod result;
pub mod spent;
pub mod zarr;

pub use draws::{Draws, PhaseDraws};
