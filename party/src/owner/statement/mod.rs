//! The printable statement of one job: what was asked, what left, what that guarantees, and what it does not.
//!
//! Written for a data owner's lawyer: every figure can be checked against the ledger.

mod block;
mod content;
mod render;

pub(crate) use content::{Facts, statement};
pub(crate) use render::{markdown, page};

#[cfg(test)]
mod tests;
