//! The code shared by all programs: schema, parameters, jobs, models and queries.
//!
//! Nothing in this crate touches a file, a socket, a clock or an asynchronous runtime, and every random number generator is
//! passed in. A model's kernel returns numbers per record; `conclave-privacy` bounds them.
#![forbid(unsafe_code)]

pub mod job;
pub mod model;
pub mod parameter;
pub mod query;
pub mod schema;
pub mod settings;
pub mod spelling;
pub mod text;
