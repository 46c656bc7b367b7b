//! The data owner's side of Conclave: a daemon beside the records, and the owner's commands.
//!
//! The only information about a record that leaves this process is the noised integers of answers, one integer for most kinds of
//! query. Each query is charged durably by the vault's ledger, its exact noise is drawn, the records are summed, and the noised
//! sum is recorded durably before it is sent; [`conclave_vault::answer`] enforces this order.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

// Seeded noise is predictable: a production build must not even contain it.
#[cfg(all(feature = "test-util", not(debug_assertions)))]
compile_error!(
    "the feature `test-util` of conclave-party is for tests of the dev profile: it must not be enabled in a release build"
);

mod answer;
mod audit;
mod cli;
pub mod config;
mod daemon;
mod doctor;
mod error;
mod expiry;
pub mod ledger_views;
mod link;
mod meters;
#[cfg(test)]
mod non_interference;
mod operations;
mod owner;
mod page;
mod permits;
mod presence;
mod reload;
mod reply_delay;
pub mod screening;
mod verify;

pub use cli::cli_main;
pub use config::{KEYS, PartyConfig};
pub use daemon::{init_ledger, run, run_with};
pub use error::StartError;
pub use link::IdentitySigner;
