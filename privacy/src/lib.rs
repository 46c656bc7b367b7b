//! The privacy core: mechanism, accounting, secure aggregation, and the pass that bounds every contribution.
//!
//! This crate imports no other crate of this project. It touches no file, socket, clock or asynchronous runtime, and every
//! random number generator is passed in. It belongs to the trusted base that `docs/explanation/design.md` lists in section 8.
//! The privacy guarantee does not depend on any model, sampler or page.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

// With this feature a sum can be opened without noise, so no release build may contain it.
#[cfg(all(feature = "test-util", not(debug_assertions)))]
compile_error!("the feature `test-util` of conclave-privacy is for tests of the dev profile: no release may be built with it");

// A kernel's panic is caught at the unit that caused it; without unwinding it would end the process and show that unit.
#[cfg(panic = "abort")]
compile_error!("conclave-privacy needs panic = \"unwind\": a panic is caught and replaced by a public value");

pub mod accounting;
pub mod mechanism;
pub mod pass;
pub mod secagg;
