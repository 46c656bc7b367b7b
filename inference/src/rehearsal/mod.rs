//! All parties of a job in one process: the real kernels, lattice, noise and privacy filter, and no ledger.
//!
//! What a rehearsal spends is nobody's budget: it is for records that its user may see anyway, the analyst's own or made-up ones.

mod party;
mod run;

pub(crate) use run::query_terms;
pub use run::{Answer, Rehearsal, RehearsalError};
