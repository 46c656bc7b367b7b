//! Limits on job files.

/// Maximum number of chains of a job; they share every message.
pub const MAX_CHAINS: u32 = 256;
/// Maximum length of a job file in bytes: coordinator and parties read files from untrusted sources.
pub const MAX_BYTES: usize = 65_536;
/// Maximum length of the name of a job, party, column or parameter, in bytes.
pub const MAX_NAME: usize = 128;
/// Longest sentence to an owner, in bytes.
pub(super) const MAX_WORDS: usize = 300;
/// Maximum number of columns.
pub const MAX_COLUMNS: usize = 1024;
/// Largest magnitude of a column's bounds and of their distance, and the reciprocal of the smallest distance.
pub const MAX_BOUND: f64 = 1e30;
/// Largest magnitude of the parameter box, in the parameter's unit if that is above 1 ([`crate::schema::ModelSpec::units`]).
pub const MAX_BOX: f64 = 1e6;
/// Half width of the default parameter box, in the same unit; a wider prior widens it.
pub const DEFAULT_BOX: f64 = 1e3;
/// Least value of a positive parameter, and least distance of a probability from 0 and 1, in every box.
pub const LEAST_POSITIVE: f64 = 1e-6;
/// Share of the job's budget (as mu²) of each measurement of curvature when starting values are given and radii are not. There is
/// one at the start and up to three more in the warm-up.
pub const CALIBRATE_SHARE: f64 = 0.02;
