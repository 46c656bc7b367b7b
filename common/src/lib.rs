//! The code shared by all programs: schema, parameters, jobs, models and queries.
//!
//! Nothing in this crate touches a file, a socket, a clock or an asynchronous runtime, and every random number generator is
//! passed in. A model's kernel returns numbers per record; `conclave-privacy` bounds them.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

// It opens sums without noise: a build for use must not even contain it.
#[cfg(all(feature = "test-util", not(debug_assertions)))]
compile_error!("the feature `test-util` of conclave-common is for tests of the dev profile: no release may be built with it");

mod elementary;
pub mod epsilon;
mod formula;
pub mod job;
pub mod model;
pub mod parameter;
pub mod query;
pub mod schema;
pub mod settings;
pub mod spelling;
pub mod text;
