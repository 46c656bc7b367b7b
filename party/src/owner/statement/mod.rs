//! The printable statement on one job: its queries and releases, its guarantees and their limits.
//!
//! Written for a data owner's lawyer: every figure can be checked against the ledger.

mod content;

pub(crate) use content::{Facts, statement};

#[cfg(test)]
mod tests;
