//! Queries to parties for noised sums, and their terms: the public bounds on one unit's contribution that price a query.

mod candidates;
mod contribution;
mod error;
mod kinds;
pub mod party_metadata;
pub mod round;
mod terms;
#[cfg(test)]
mod tests;

pub use candidates::Candidates;
pub use contribution::{Contribution, centre, contribution, is_centred, record_bound};
pub use error::QueryError;
pub use kinds::MOST_SCALE;
pub use party_metadata::PartyMetadata;
pub use round::{Draw, Opened, Phase, Query, Round, message_digest};
pub use terms::QueryTerms;
