//! Supports secure jobs, whose sums leave a party under masks: the owner's settings, the mask keys' files, and the checks of a roster.

mod mask_key_file;
mod mask_keys;
mod pins;
mod roster;
mod settings;

pub use mask_key_file::JobKey;
pub use mask_keys::{MaskKeyError, MaskKeys};
pub use pins::{Fingerprint, Pins};
pub use roster::{CheckedRoster, MemberStanding, RosterCheck, RosterRefusal};
pub use settings::{Peers, SecureSettings};

#[cfg(test)]
mod tests;
