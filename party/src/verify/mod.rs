//! A party checks the coordinator: the published log of a job is put through the sampler again, and everything that follows from it is
//! compared with this party's own ledger and with the draws and the summary that the coordinator publishes.
//!
//! The job's text, its seed among it, is this party's own copy; the releases are the coordinator's word, this party's own excepted.

mod answers;
mod check;
mod drawn;
mod fetch;
mod job;
mod log_digest;
mod published;
mod replay;
mod replayed;
mod roster;
mod rounds;
mod summary;
mod sums;

pub(crate) use replay::{Report, verify};
