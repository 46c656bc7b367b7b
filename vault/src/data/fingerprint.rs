//! Fingerprints the data with a keyed hash per column: a changed value in any record shows, and the hash reveals nothing without the key. A
//! file without a bad row has the fingerprints of every earlier version.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::error::DataError;
use super::shard::{Kind, Shard};
use crate::ledger::{Pieces, Secret};

const DOMAIN: &str = "conclave column 1";
const TEXTS: &str = "conclave text column 1";
/// Name of the assignment to persons; no column of a file can have this name unquoted, and none of a job.
const PERSONS: &str = "(persons)";

/// Numbers that are hashed at once.
const CHUNK: usize = 1024;

impl Shard {
    /// Returns the keyed hash of every column that was read: its name and its values' exact bits or texts, in the order of records.
    ///
    /// # Errors
    /// A streamed shard that cannot be read.
    pub fn fingerprints(&self, secret: &Secret) -> Result<BTreeMap<String, [u8; 32]>, DataError> {
        let column = |name: &String| Ok((name.clone(), self.fingerprint(secret, name)?));
        let mut hashes = self.names().par_iter().map(column).collect::<Result<BTreeMap<_, _>, _>>()?;
        if let Some(persons) = self.persons() {
            let ends = persons.ends();
            let mut hash = secret.mac_in_pieces(DOMAIN, PERSONS.as_bytes(), 8 * ends.len() as u64);
            whole(&mut hash, ends, |end| (*end as u64).to_le_bytes());
            hashes.insert(PERSONS.to_owned(), hash.finish());
        }
        Ok(hashes)
    }

    fn fingerprint(&self, secret: &Secret, name: &str) -> Result<[u8; 32], DataError> {
        let mut hash;
        match self.kind(name) {
            Some(Kind::Texts(words)) => {
                // Each text with its length before it: no two columns give the same bytes.
                let spelt = |word: &String| [&(word.len() as u64).to_le_bytes(), word.as_bytes()].concat();
                let spelt: Vec<Vec<u8>> = words.iter().map(spelt).collect();
                // For an inert row a length that no text has.
                let none = u64::MAX.to_le_bytes();
                let text = |code: &f64| if code.is_nan() { none.as_slice() } else { spelt[*code as usize].as_slice() };
                let mut length = 0;
                self.look(name, |codes| length += codes.iter().map(|code| text(code).len() as u64).sum::<u64>())?;
                hash = secret.mac_in_pieces(TEXTS, name.as_bytes(), length);
                self.look(name, |codes| codes.iter().for_each(|code| hash.update(text(code))))?;
            }
            _ => {
                hash = secret.mac_in_pieces(DOMAIN, name.as_bytes(), 8 * self.records());
                self.look(name, |values| whole(&mut hash, values, |value| value.to_bits().to_le_bytes()))?;
            }
        }
        Ok(hash.finish())
    }
}

fn whole<T>(hash: &mut Pieces, values: &[T], bytes: impl Fn(&T) -> [u8; 8]) {
    let mut buffer = [0; 8 * CHUNK];
    for chunk in values.chunks(CHUNK) {
        buffer.chunks_exact_mut(8).zip(chunk).for_each(|(to, value)| to.copy_from_slice(&bytes(value)));
        hash.update(&buffer[..8 * chunk.len()]);
    }
}
