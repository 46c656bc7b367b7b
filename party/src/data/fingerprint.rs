//! What the data are, in a keyed hash per column: another value in any record shows, and nobody without the key learns
//! anything.

use std::collections::BTreeMap;

use super::Shard;
use crate::ledger::Secret;

const DOMAIN: &str = "conclave column 1";
/// Stands for whose the records are; no column of a file can have this name unquoted, and none of a job.
const PERSONS: &str = "(persons)";

impl Shard {
    /// The keyed hash of every column that was read: its name and its cleaned values' exact bits, in the order of records.
    pub fn fingerprints(&self, secret: &Secret) -> BTreeMap<String, [u8; 32]> {
        let column = |name: &String| {
            let values = self.column(name)?;
            let bits: Vec<u8> = values.iter().flat_map(|v| v.to_bits().to_le_bytes()).collect();
            Some((name.clone(), secret.mac(DOMAIN, [name.as_bytes(), &bits])))
        };
        let mut hashes: BTreeMap<_, _> = self.names().iter().filter_map(column).collect();
        if let Some(persons) = self.persons() {
            let ends: Vec<u8> = persons.ends().iter().flat_map(|end| (*end as u64).to_le_bytes()).collect();
            hashes.insert(PERSONS.to_owned(), secret.mac(DOMAIN, [PERSONS.as_bytes(), &ends]));
        }
        hashes
    }
}
