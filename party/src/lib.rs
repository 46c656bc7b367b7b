//! The data owner's side of Conclave: a daemon beside the records, and the owner's commands.
//!
//! What leaves this process about a record is the noised integers that answer a query, one for most kinds. Each query is charged
//! durably by the [`ledger`], its exact [`noise`] is made, the records are summed, and the noised sum is recorded durably before it is
//! sent; [`answer`] holds the order.
#![forbid(unsafe_code)]

// Noise from a seed is noise that can be foretold: a build for use must not even hold it.
#[cfg(all(feature = "test-util", not(debug_assertions)))]
compile_error!("the feature `test-util` of conclave-party is for tests of the dev profile: no release may be built with it");

pub mod answer;
mod audit;
mod cli;
mod clock;
pub mod config;
mod consent;
mod daemon;
pub mod data;
mod doctor;
mod error;
mod expiry;
pub mod ledger;
mod link;
pub mod members;
mod meters;
pub mod noise;
mod operations;
mod owner;
mod page;
mod policy;
mod presence;
mod private_files;
mod reload;
pub mod screening;
pub mod secure;
mod text;
mod verify;

#[cfg(feature = "test-util")]
pub use answer::simulated;
pub use cli::cli_main;
pub use config::{KEYS, PartyConfig};
pub use daemon::{init_ledger, run, run_with};
pub use error::StartError;

#[cfg(test)]
mod testing;
