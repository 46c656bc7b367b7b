//! Secure aggregation: participants mask their noised sums, and the masks cancel only in the sum over all participants.
//!
//! Every two participants share a key, agreed on by X25519 and bound to the job's [`Roster`]. From it both derive a mask for
//! each integer of each message. One adds the mask to its value, and the other subtracts it (Bonawitz et al. 2017, *Practical
//! secure aggregation for privacy-preserving machine learning*, section 4). The masks of a message are a pseudo-random function
//! of the digest of its contents. As in Ma et al. 2023, *Flamingo*, the set-up runs once and each round derives new masks.
//! Participants that received different queries have no mask in common, and their values stay uniform. A participant that drops
//! out is not recovered: the round is void without it, so no share of a key ever leaves its owner.
//!
//! Proof: `docs/explanation/proofs.md`, section 5.
//!
//! - [`MaskSecret`], [`MaskPublic`]: a participant's key pair for one job.
//! - [`Roster`]: the participants, their keys, and the number of them that may collude with the coordinator.
//! - [`SharedQuery`], [`round_digest`], [`confirmation_digest`]: the digests to which masks are bound.
//! - [`PairKeys`]: a participant's keys with the others, and its masks.
//! - [`cover`], [`opened`]: mask a value, and add up the masked values.

mod fields;
mod keys;
mod pair_keys;
mod ring;
mod roster;
mod round;

pub use keys::{MaskPublic, MaskSecret, NotCanonical};
pub use pair_keys::{AgreementError, PairKeys};
pub use ring::{cover, opened};
pub use roster::{Member, Roster, RosterError, mask_key_message};
pub use round::{CONFIRMATION_LANES, SharedQuery, confirmation_digest, round_digest};

#[cfg(test)]
mod tests;
