//! Runs beside the records: data loading, the ledger, consent and policy decisions, secure jobs, noise and answers.
//!
//! About a record, only the noised integers that answer a query leave this crate. The [`ledger`] charges each query durably,
//! [`noise`] draws its exact noise, the records are summed, and the noised sum is recorded durably before it is sent; [`answer`]
//! holds the order. Together with `conclave-privacy` this crate is the whole trusted base. It imports no sampler, no web server
//! and no TLS.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

// Noise from a seed can be foretold: a build for use must not even contain it.
#[cfg(all(feature = "test-util", not(debug_assertions)))]
compile_error!("the feature `test-util` of conclave-vault is for tests of the dev profile: no release may be built with it");

pub mod answer;
pub mod clock;
pub mod config;
pub mod consent;
pub mod data;
pub mod ledger;
pub mod members;
pub mod noise;
pub mod policy;
pub mod ports;
pub mod private_files;
pub mod secure;
pub mod text;

#[cfg(any(test, feature = "test-util"))]
pub mod testing;
