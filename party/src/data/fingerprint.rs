//! What the data are, in a keyed hash per column: another value in any record shows, and nobody without the key learns
//! anything.

use std::collections::BTreeMap;

use super::{Column, Shard};
use crate::ledger::Secret;

const DOMAIN: &str = "conclave column 1";
const TEXTS: &str = "conclave text column 1";
/// Stands for whose the records are; no column of a file can have this name unquoted, and none of a job.
const PERSONS: &str = "(persons)";

impl Shard {
    /// The keyed hash of every column that was read: its name and its cleaned values' exact bits or texts, in the order of records.
    pub fn fingerprints(&self, secret: &Secret) -> BTreeMap<String, [u8; 32]> {
        let column = |name: &String| {
            let (domain, bytes): (_, Vec<u8>) = match self.column(name)? {
                Column::Numbers(values) => (DOMAIN, values.iter().flat_map(|v| v.to_bits().to_le_bytes()).collect()),
                Column::Texts { codes, words } => {
                    // Each text with its length before it: no two columns give the same bytes.
                    let spelt = |word: &String| [&(word.len() as u64).to_le_bytes(), word.as_bytes()].concat();
                    let spelt: Vec<Vec<u8>> = words.iter().map(spelt).collect();
                    (TEXTS, codes.iter().flat_map(|code| spelt[*code as usize].iter().copied()).collect())
                }
            };
            Some((name.clone(), secret.mac(domain, [name.as_bytes(), &bytes])))
        };
        let mut hashes: BTreeMap<_, _> = self.names().iter().filter_map(column).collect();
        if let Some(persons) = self.persons() {
            let ends: Vec<u8> = persons.ends().iter().flat_map(|end| (*end as u64).to_le_bytes()).collect();
            hashes.insert(PERSONS.to_owned(), secret.mac(DOMAIN, [PERSONS.as_bytes(), &ends]));
        }
        hashes
    }
}
