//! `party.toml`: the configuration of a data owner's daemon, checked in full before anything else happens.
//!
//! Unknown keys are refused. Features not built into this version are refused by name with the remedy, so that no owner relies
//! on a protection that does not exist. Relative paths are relative to the configuration file's folder.
//!
//! Jobs are denied by default: `approve` is "manual" unless set, and every job then waits for the owner's decision.

mod concerns;
mod ledger;
mod load;
mod party;
mod raw;

pub(crate) use concerns::secure_concerns;
pub use load::ConfigError;
pub use party::PartyConfig;
pub use raw::KEYS;

#[cfg(test)]
mod tests;
