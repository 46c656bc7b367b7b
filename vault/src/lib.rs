//! Runs beside the records: data loading, the ledger, consent and policy decisions, secure jobs, noise and answers.
//!
//! A reply reveals nothing about a record except noised integers. The [`ledger`] charges each query durably and [`noise`] draws its exact
//! noise. Then the records are summed, and the noised sum is recorded durably before it is sent. [`answer`] enforces this order.
//!
//! [`data`] also serves the owner's own commands, which read records to advise the owner. Section 8 of
//! `docs/explanation/design.md` lists everything that is trusted. The crate imports no sampler, no web server and no TLS.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

// Seeded noise is predictable: a production build must not contain it.
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
pub mod secure;
pub mod text;

#[cfg(any(test, feature = "test-util"))]
pub mod testing;
