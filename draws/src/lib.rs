//! A run's result and its draws, written by the coordinator while chains run and read by analysts afterwards.
//!
//! - [`zarr`]: writing and reading of a Zarr v3 store of draws. [`attributes`]: the store's attributes.
//! - [`spent`]: the privacy cost of a job at a party. [`result`]: the JSON object of a finished run.
//! - [`verdict`]: what an answer can be used for.
//! - [`Draws`]: a whole store in memory. [`export`]: export to CmdStan files and to a Parquet table.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod attributes;
mod draws;
pub mod export;
mod figures;
mod new_party;
mod outcome;
mod parties;
mod ratios;
mod released;
pub mod result;
pub mod spent;
mod survival;
pub mod verdict;
pub mod zarr;

pub use draws::{Draws, PhaseDraws};
pub use new_party::new_party_intervals;
pub use ratios::is_whole;
