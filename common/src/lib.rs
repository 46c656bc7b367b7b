//! The pure core of Conclave: models, privacy mechanism, accounting, sampler and diagnostics.
//!
//! Nothing in this crate touches a file, a socket, a clock or an asynchronous runtime, and every random
//! number generator is passed in. A data owner who audits what runs beside the data reads this crate and
//! `conclave-party`.
#![forbid(unsafe_code)]

pub mod accounting;
pub mod diagnostics;
pub mod job;
pub mod mechanism;
pub mod model;
pub mod parameter;
pub mod planner;
pub mod query;
pub mod rehearsal;
pub mod sampler;
pub mod schema;
pub mod secagg;
pub mod spelling;
pub mod text;
