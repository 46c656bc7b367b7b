//! The answer path, in this order and no other: request, policy, charge, noise, records, ledger, reply.
//!
//! Everything runs on one thread, one message at a time: the ledger, the records and the noise have one owner, and two
//! messages can't race. Neither a refusal nor an answer's length depends on a record.
//!
//! A message's way: [`thread`] takes it in and holds its reply to the delay, [`query`] answers it, [`sums`] adds up the
//! records. [`open`] and [`consent`] open jobs, [`measure`] finds their reply delay by a [`rehearsal`] in a [`sandbox`].

pub mod answer_timing;
mod answerer;
mod asked;
mod choice;
mod consent;
mod consent_state;
mod delay;
mod forgotten;
mod known_noise;
mod left;
mod masking;
mod measure;
mod open;
mod query;
mod records;
mod rehearsal;
mod reply;
pub mod sandbox;
mod secrecy;
mod secure;
#[cfg(feature = "test-util")]
pub mod simulated;
mod sums;
pub mod thread;
mod worst_case_step;

pub use answerer::Answerer;
pub use delay::ReplyCounts;
pub use open::MAX_JOB_ID;
pub use open::Opening;
pub use reply::ReplySender;
pub use secrecy::Secrecy;

#[cfg(any(test, feature = "test-util"))]
pub mod testing;
#[cfg(test)]
mod tests;
