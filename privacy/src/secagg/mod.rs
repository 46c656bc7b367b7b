//! Secure aggregation: participants' noised sums under masks that cancel in the sum over all of them, and in no smaller one.
//!
//! Every two participants share a key, agreed on by X25519 and bound to the job's [`Roster`]. With it they make a mask for each integer of
//! each message; one adds it to its value and the other subtracts it (Bonawitz et al. 2017, *Practical secure aggregation for
//! privacy-preserving machine learning*, section 4). The masks of a message are a pseudo-random function of the digest of everything in it,
//! as the set-up once and a mask a round of Ma et al. 2023, *Flamingo*: participants that were asked different questions have no mask in
//! common, and what they send stays uniform. There is no recovery from a participant that falls out: a round without it is no round, so no
//! share of a key ever leaves its owner.
//!
//! - [`MaskSecret`], [`MaskPublic`]: a participant's key pair for one job.
//! - [`Roster`]: who takes part, with which keys, and how many of them may work with the coordinator.
//! - [`Question`], [`round_digest`], [`confirmation_digest`]: what masks belong to.
//! - [`PairKeys`]: a participant's keys with the others, and its masks.
//! - [`cover`], [`opened`]: a value goes under its mask, and a sum comes out.

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
pub use round::{CONFIRMATION_LANES, Question, confirmation_digest, round_digest};

#[cfg(test)]
mod tests;
