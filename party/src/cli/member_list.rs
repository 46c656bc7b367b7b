//! Reads a list of a study's parties and their fingerprints, which all owners compare in one call.
//!
//! One party a line: its name and the fingerprint of its identity key, as `conclave-party fingerprint` prints both; `#` begins a comment.
//! The list's own SHA-256 is over its lines in order of name and fingerprint, without comments and blanks, so that it does not depend on
//! its author or order.

use conclave_proto::identity::valid_name;
use sha2::{Digest as _, Sha256};

use conclave_vault::secure::{Fingerprint, Pins};

/// The parties in such a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MemberList(Pins);

pub(super) fn member_line(name: &str, fingerprint: &Fingerprint) -> String {
    format!("{name} {fingerprint}")
}

impl MemberList {
    /// Reads a list.
    ///
    /// # Errors
    /// A sentence that names the line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut pins = Pins::default();
        // Some editors begin a file with a byte order mark.
        for (at, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
            let entry = line.split('#').next().unwrap_or_default();
            let wrong = |what: String| format!("line {at}: {what}");
            match entry.split_whitespace().collect::<Vec<_>>()[..] {
                [] => {}
                [name, fingerprint] if valid_name(name) => {
                    let fingerprint = fingerprint.parse().map_err(|why| wrong(format!("{fingerprint:?} {why}")))?;
                    pins.add(name, fingerprint).map_err(wrong)?;
                }
                _ => {
                    return Err(wrong(
                        "a line has a party's name and its fingerprint, as `conclave-party fingerprint` prints them".into(),
                    ));
                }
            }
        }
        if pins.is_empty() {
            return Err("it names nobody".into());
        }
        Ok(Self(pins))
    }

    /// Returns the list's SHA-256, in lower-case hexadecimal, which owners read to each other.
    pub(super) fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for (name, fingerprints) in self.0.iter() {
            let mut sorted = fingerprints.to_vec();
            sorted.sort_unstable();
            for fingerprint in sorted {
                hash.update(member_line(name, &fingerprint) + "\n");
            }
        }
        conclave_vault::ledger::events::hex(&hash.finalize())
    }

    pub(super) fn pins(&self) -> &Pins {
        &self.0
    }

    /// Returns the table `[secure.pinned]` of a party's configuration, with all parties but `own`.
    pub(super) fn to_toml(&self, own: &str) -> String {
        let mut text = "[secure.pinned]\n".to_owned();
        for (name, fingerprints) in self.0.iter().filter(|(name, _)| *name != own) {
            let quoted: Vec<String> = fingerprints.iter().map(|fingerprint| format!("\"{fingerprint}\"")).collect();
            let value = if let [one] = quoted.as_slice() { one.clone() } else { format!("[{}]", quoted.join(", ")) };
            text.push_str(&format!("{name} = {value}\n"));
        }
        text
    }
}

#[cfg(test)]
#[path = "tests/member_list.rs"]
mod tests;
