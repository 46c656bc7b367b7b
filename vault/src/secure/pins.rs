//! Holds the fingerprints of other parties' identity keys, as their owners stated them.

use std::collections::BTreeMap;

pub use conclave_common::job::KeyFingerprint as Fingerprint;

/// Fingerprints by party: several for one party while one key replaces another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pins(BTreeMap<String, Vec<Fingerprint>>);

impl Pins {
    /// Adds a party's fingerprint.
    ///
    /// # Errors
    /// A sentence, where the party has it already or another party has it.
    pub fn add(&mut self, name: &str, fingerprint: Fingerprint) -> Result<(), String> {
        match self.0.iter().find(|(_, pinned)| pinned.contains(&fingerprint)) {
            Some((other, _)) if other == name => Err(format!("{name:?} has {fingerprint} twice")),
            Some((other, _)) => Err(format!("{other:?} and {name:?} have the same fingerprint: one key is one party's")),
            None => {
                self.0.entry(name.to_owned()).or_default().push(fingerprint);
                Ok(())
            }
        }
    }

    /// Returns the fingerprints of a party; `None` where it is not pinned.
    #[must_use]
    pub fn of(&self, name: &str) -> Option<&[Fingerprint]> {
        self.0.get(name).map(Vec::as_slice)
    }

    /// Returns true where no party is pinned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Makes the pins that a job file names.
    #[must_use]
    pub fn of_members(members: &BTreeMap<String, Fingerprint>) -> Self {
        Self(members.iter().map(|(name, fingerprint)| (name.clone(), vec![*fingerprint])).collect())
    }

    /// Returns parties with their fingerprints, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[Fingerprint])> {
        self.0.iter().map(|(name, pinned)| (name.as_str(), pinned.as_slice()))
    }
}
