//! The coordinator: accepts analysts' jobs, queries the parties, runs the chains, stores the draws.
//!
//! No record ever reaches it. By assumption, every outsider of a party sees its data (proposals, noised integers, decisions).
//! They need protection from loss, not from being read.
//!
//! - [`server`]: gRPC over mutual TLS. [`party_registry`]: attached parties, and the routing of their messages to jobs.
//! - [`registry`]: all jobs. [`driver`]: the task of one job. [`store`]: jobs and the iteration log, in SQLite.
//! - [`dashboard`]: web pages. [`live`]: running chains, as the pages and `conclave watch` show them.
//! - [`retention`]: removal of old draws. [`backup`], [`doctor`]: copies and checks of everything.
//! - [`daemon`]: all of these together.
//!
//! The crate `conclave_draws` defines draws and results.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

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
mod retired;
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
