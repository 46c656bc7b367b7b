//! The data owner's side of Conclave: a daemon beside the records, and the owner's commands.
//!
//! What leaves this process about a record is the noised integers that answer a query, one for most kinds. Each query is charged
//! durably by the vault's ledger, its exact noise is made, the records are summed, and the noised sum is recorded durably before it is
//! sent; [`conclave_vault::answer`] holds the order.
#![forbid(unsafe_code)]

// Noise from a seed is noise that can be foretold: a build for use must not even hold it.
#[cfg(all(feature = "test-util", not(debug_assertions)))]
compile_error!("the feature `test-util` of conclave-party is for tests of the dev profile: no release may be built with it");

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
mod presence;
mod reload;
pub mod screening;
mod verify;

pub use cli::cli_main;
pub use config::{KEYS, PartyConfig};
pub use daemon::{init_ledger, run, run_with};
pub use error::StartError;
pub use link::IdentitySigner;
