//! The privacy core: mechanism, accounting, secure aggregation, and the pass that bounds every contribution.
//!
//! This crate imports none of ours. It touches no file, socket, clock or asynchronous runtime, and every random number
//! generator is passed in. Together with `conclave-vault` it is the whole trusted base: the privacy guarantee does not
//! depend on any model, sampler or page.
#![forbid(unsafe_code)]

pub mod accounting;
pub mod mechanism;
pub mod pass;
pub mod secagg;
