//! Limits bound what a job file may ask for.

/// The most chains a job may run: they share every message.
pub const MAX_CHAINS: u32 = 256;
/// Longest job file, in bytes: coordinator and parties read what strangers wrote.
pub const MAX_BYTES: usize = 65_536;
/// Longest name of a job, party, column or parameter, in bytes.
pub const MAX_NAME: usize = 128;
/// Most columns a job may declare.
pub const MAX_COLUMNS: usize = 1024;
/// Greatest magnitude of a column's bounds and of their distance, and the reciprocal of the least distance.
pub const MAX_BOUND: f64 = 1e30;
/// Greatest magnitude of the parameter box, in the parameter's unit where that is above 1
/// ([`crate::schema::ModelSpec::units`]).
pub const MAX_BOX: f64 = 1e6;
/// Half width of the default parameter box, in the same unit; a wider prior widens it.
pub const DEFAULT_BOX: f64 = 1e3;
/// Least value of a positive parameter, and least distance of a probability from 0 and 1: a part of
/// every such box.
pub const LEAST_POSITIVE: f64 = 1e-6;
/// Share of the job's budget (as mu²) that each measurement of curvature takes when starting values are
/// given and radii are not: one at the start, up to three more in the warm-up.
pub const CALIBRATE_SHARE: f64 = 0.02;
