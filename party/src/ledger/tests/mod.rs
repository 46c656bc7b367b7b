//! Tests of the ledger as its users see it, and against models of it.

mod against_model;
mod chain;
mod charging;
mod conversion;
mod reserve;
