//! The privacy core: mechanism, accounting, secure aggregation, and the pass that bounds every contribution.
//!
//! This crate imports none of ours. It touches no file, socket, clock or asynchronous runtime, and every random number
//! generator is passed in. Together with `conclave-vault` it is the whole trusted base: the privacy guarantee does not
//! depend on any model, sampler or page.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

// Sums can be opened without noise under it: a build for use must not even contain it.
#[cfg(all(feature = "test-util", not(debug_assertions)))]
compile_error!("the feature `test-util` of conclave-privacy is for tests of the dev profile: no release may be built with it");

pub mod accounting;
pub mod mechanism;
pub mod pass;
pub mod secagg;
