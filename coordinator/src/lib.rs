//! The coordinator: takes in analysts' jobs, asks the parties, runs the chains, keeps the draws.
//!
//! Nothing here ever sees a record. What it holds (proposals, noised integers, decisions) is what every outsider of a
//! party is taken to see, and is worth protecting from loss, not from reading.
//!
//! - [`server`]: gRPC over mutual TLS. [`party_registry`]: which parties are attached, and whose messages go to which job.
//! - [`registry`]: all jobs. [`driver`]: one job's task. [`store`]: jobs and the iteration log, in SQLite.
//! - [`dashboard`]: pages for people. [`live`]: what they and `conclave watch` show of chains.
//! - [`retention`]: how long draws are kept. [`backup`], [`doctor`]: copies of it all, and whether it is in order.
//! - [`daemon`]: all of them together.
//!
//! Draws and results are of the crate `conclave_draws`.
#![forbid(unsafe_code)]

mod backup;
mod bounds;
mod check;
mod cli;
mod clock;
mod config;
mod counters;
mod daemon;
mod dashboard;
mod doctor;
mod driver;
mod error;
mod health;
mod live;
mod metrics_page;
mod operations;
mod party_event;
mod party_registry;
mod registry;
mod reload;
mod retention;
mod send_queue;
mod server;
#[cfg(feature = "test-util")]
pub mod simulated;
mod status;
mod store;

pub use bounds::Bounds;
pub use cli::cli_main;
pub use config::{Config, KEYS};
pub use daemon::{Coordinator, run};
pub use error::RunError;
