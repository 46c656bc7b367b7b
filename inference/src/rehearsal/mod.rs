//! Runs all parties of a job in one process: the real kernels, lattice, noise and privacy filter, but no ledger.
//!
//! A rehearsal spends no owner's budget. It is for records that its user may see anyway: the analyst's own, or synthetic ones.

mod party;
mod run;

pub(crate) use run::query_terms;
pub use run::{Answer, Rehearsal, RehearsalError};
