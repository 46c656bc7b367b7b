//! A party's verification of the coordinator: replays the published log of a job through the sampler, and compares everything
//! that follows with this party's own ledger and with the draws and the summary that the coordinator publishes.
//!
//! The job's text, including its seed, is this party's own copy; the releases are as stated by the coordinator, except this
//! party's own.

mod answers;
mod authorities;
mod check;
mod drawn;
mod fetch;
mod job;
mod published;
mod replay;
mod replayed;
mod roster;
mod rounds;
mod summary;
mod sums;

pub(crate) use replay::{Report, verify, watched};
