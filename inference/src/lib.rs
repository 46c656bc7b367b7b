//! Inference from releases: samplers, the planner, diagnostics and the rehearsal.
//!
//! Nothing in this crate accesses a record of a real party, a file, a socket, a clock or an asynchronous runtime, and every
//! random number generator is passed in. Privacy does not depend on this crate: a data owner's daemon does not link it into the
//! answer path.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod diagnostics;
pub mod figures;
pub mod planner;
pub mod rehearsal;
pub mod sampler;
