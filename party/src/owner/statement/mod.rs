//! The printable statement on one job: its queries and releases, its guarantees and their limits.
//!
//! Written for a data owner's lawyer: every figure can be checked against the ledger.

mod block;
mod content;
mod render;

pub(crate) use content::{Facts, statement};
pub(crate) use render::{markdown, page};

#[cfg(test)]
mod tests;
