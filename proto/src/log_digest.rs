//! Digest of a whole log: owners who compare theirs know whether the coordinator has shown all of them the same log.
//!
//! It is SHA-256 over the field `conclave log 1`, the job's id as a field, the SHA-256 of its text, the digest of its roster
//! (zeros without one), and for every round in order its number, its integers party by party, and their count. A field is its
//! length in 64 bits, then its bytes; all numbers are little endian. The division of a log into pieces, and other statements of
//! the coordinator, are not included.

use crate::v1::LogRound;
use sha2::{Digest, Sha256};

/// Computes a log's digest as the log arrives.
#[derive(Debug, Clone)]
pub struct LogDigest {
    hash: Sha256,
    /// Number of integers of the current round so far; `None` between rounds.
    integers: Option<u64>,
}

impl LogDigest {
    /// Starts the digest of a log without rounds.
    #[must_use]
    pub fn new(job: &str, spec_digest: &[u8; 32], roster: Option<&[u8; 32]>) -> Self {
        let mut hash = Sha256::new();
        for field in ["conclave log 1", job] {
            hash.update((field.len() as u64).to_le_bytes());
            hash.update(field);
        }
        hash.update(spec_digest);
        hash.update(roster.unwrap_or(&[0; 32]));
        Self { hash, integers: None }
    }

    /// Adds a round, or a part of one.
    pub fn take(&mut self, piece: &LogRound) {
        let before = self.integers.take().unwrap_or_else(|| {
            self.hash.update(piece.iteration.to_le_bytes());
            0
        });
        piece.releases.iter().for_each(|release| self.hash.update(release.to_le_bytes()));
        let integers = before + piece.releases.len() as u64;
        if piece.more {
            self.integers = Some(integers);
        } else {
            self.hash.update(integers.to_le_bytes());
        }
    }

    /// Returns the digest in hexadecimal.
    #[must_use]
    pub fn finish(self) -> String {
        self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(job: &str, roster: Option<&[u8; 32]>, pieces: &[(u64, &[i64], bool)]) -> String {
        let mut digest = LogDigest::new(job, &[7; 32], roster);
        for (iteration, releases, more) in pieces {
            digest.take(&LogRound { iteration: *iteration, releases: releases.to_vec(), more: *more });
        }
        digest.finish()
    }

    /// Compares with a digest of the bytes written out by hand (Python's hashlib).
    #[test]
    fn it_is_over_the_bytes_that_are_described() {
        assert_eq!(digest("job", None, &[(0, &[1, -2], false), (3, &[5], false)]), EXPECTED);
    }

    const EXPECTED: &str = "d8269a21a4f4ce5359b264527507535041d3275810ceb6bae539e3260ee37541";

    #[test]
    fn pieces_do_not_matter_and_everything_else_does() {
        let whole = digest("job", None, &[(0, &[1, 2, 3], false), (1, &[4], false)]);
        assert_eq!(digest("job", None, &[(0, &[1], true), (0, &[2, 3], false), (1, &[4], false)]), whole);
        for other in [
            digest("jo", None, &[(0, &[1, 2, 3], false), (1, &[4], false)]),
            digest("job", Some(&[1; 32]), &[(0, &[1, 2, 3], false), (1, &[4], false)]),
            digest("job", None, &[(0, &[1, 2, 3], false)]),
            digest("job", None, &[(0, &[1, 2], false), (3, &[1, 4], false)]),
            digest("job", None, &[(0, &[1, 2, 3], false), (2, &[4], false)]),
            digest("job", None, &[(0, &[1, 3, 2], false), (1, &[4], false)]),
        ] {
            assert_ne!(other, whole);
        }
    }
}
