//! `party.toml`: what one data owner's daemon reads at start, checked in full before anything else happens.
//!
//! Every key is known or refused; what this version does not build yet is refused by name with the remedy, so that no
//! owner believes in a protection that is not there. Relative paths are relative to the configuration file's folder.
//!
//! Jobs are default-deny: `approve` is "manual" where it is not written down, and every job then waits for its owner's word.

mod ledger;
mod load;
mod party;
mod raw;

pub use load::ConfigError;
pub use party::PartyConfig;
pub use raw::KEYS;

#[cfg(test)]
mod tests;
