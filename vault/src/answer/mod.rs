//! The answer path: a query becomes recorded, noised integers in a fixed order of effects.
//!
//! The order is: request checks, policy, durable charge, noise, records, durable record, reply. Each step is a type, made only from the
//! one before it, so an answer that skips a step does not compile:
//!
//! | stage | file | what holds |
//! |---|---|---|
//! | (socket) | [`thread`] | A message arrives; its reply leaves after a public delay ([`delay`]). |
//! | `answer_query` | [`query`] | The job is open; the stages below run in this order. |
//! | [`received::Received`] | [`received`] | The message is well formed; the masks of its answer are made. |
//! | [`priced::Priced`] | [`priced`] | Each query lies in the job's box, has a sensitivity and a noise scale, and meets the owner's policy. |
//! | [`charged::Charged`] | [`charged`] | The ledger holds every charge durably, or the earlier release. |
//! | [`noised::Noised`] | [`noised`] | The charged noise and the samples of units are drawn. |
//! | [`summed::Summed`] | [`summed`] | The records were read ([`sums`], [`choice`]); each sum has its noise and its masks. |
//! | [`query::Answered`] | [`recorded`] | Every release is durable and can be sent. |
//!
//! In these modules a *message* is a wire [`Query`](conclave_proto::v1::Query), and a *query* is one of its proposals.
//!
//! The types prove that no integer is recorded without a durable charge. Two other facts rest on review and tests:
//!
//! * Records are read only in stage 5, although each stage carries the open job ([`active_job`]) and its records.
//! * A subsampled query is summed over a hidden sample. The sample is drawn beside the receipt, not from it.
//!
//! Within a message the chain is the key of a query. The ledger's receipts and records carry the digest of the whole query (job, iteration,
//! chain, kind with its component, points, sensitivity, scale).
//!
//! One thread runs all of it, one message at a time: the ledger, the records and the noise have one owner, and two messages cannot race.
//! Neither a refusal nor the length of an answer depends on a record.
//!
//! [`open`] opens jobs as the pure function [`admission::admit`] decides, with the owner's consent ([`consent`]). A [`crate::ports::DelayMeter`] finds their
//! reply delay, in a [`sandbox`].

mod active_job;
mod admission;
pub mod answer_timing;
mod answerer;
mod charged;
mod choice;
mod consent;
mod consent_state;
mod delay;
mod faults;
mod forgotten;
mod masking;
mod noised;
mod open;
mod priced;
mod query;
mod received;
mod recorded;
mod records;
mod remaining_budget;
mod reply;
mod requested_jobs;
pub mod sandbox;
mod secrecy;
mod secure;
#[cfg(feature = "test-util")]
pub mod simulated;
mod summed;
mod sums;
pub mod thread;

pub use answerer::Answerer;
pub use delay::ReplyCounts;
pub use faults::{MAX_JOB_ID, lapsed};
pub use open::Opening;
pub use reply::ReplySender;
pub use secrecy::Secrecy;

#[cfg(any(test, feature = "test-util"))]
pub mod testing;
#[cfg(test)]
mod tests;
