//! The roster of a secure job: the mask keys of all parties, sent in pieces that fit a frame.

use conclave_privacy::secagg::{Member, Roster};
use prost::Message;

use crate::error::{ErrorCode, Fault};
use crate::identity::valid_name;
use crate::{mask_key, v1};

/// Maximum number of entries in a piece.
const MAX_ENTRIES: usize = 64;
/// Size at which a piece is full. Even with its last entry it is well below a party's frame limit.
const PIECE_BYTES: usize = 256 << 10;
/// Maximum size of a roster, 4 KiB a member.
const MAX_BYTES: usize = 4 << 20;

/// Splits a roster into pieces, in the order of sending.
#[must_use]
pub fn pieces(job: &str, entries: Vec<v1::RosterEntry>) -> Vec<v1::Roster> {
    let members = u32::try_from(entries.len()).unwrap_or(u32::MAX);
    let mut pieces: Vec<v1::Roster> = Vec::new();
    let mut bytes = 0;
    for (place, entry) in (0..).zip(entries) {
        let full = |piece: &v1::Roster| piece.entries.len() >= MAX_ENTRIES || bytes >= PIECE_BYTES;
        if pieces.last().is_none_or(full) {
            pieces.push(v1::Roster { job: job.to_owned(), members, place, entries: Vec::new() });
            bytes = 0;
        }
        bytes += entry.encoded_len();
        if let Some(piece) = pieces.last_mut() {
            piece.entries.push(entry);
        }
    }
    pieces
}

/// Returns true if a piece has a plausible size. It is called before any of its keys is parsed.
#[must_use]
pub fn is_in_bounds(piece: &v1::Roster) -> bool {
    let members = piece.members as usize;
    let sound = |entry: &v1::RosterEntry| valid_name(&entry.name) && entry.key.as_ref().is_some_and(mask_key::is_in_bounds);
    (Roster::MIN_MEMBERS..=Roster::MAX_MEMBERS).contains(&members)
        && (1..=MAX_ENTRIES).contains(&piece.entries.len())
        && (piece.place as usize).saturating_add(piece.entries.len()) <= members
        && piece.entries.iter().all(sound)
}

/// Builds the roster of a job from its entries and checks that each key is signed by its party for this job.
/// [`mask_key::check_signer`] checks the CA of the certificates.
///
/// # Errors
/// As [`mask_key::check`]; [`ErrorCode::InvalidInput`] if the keys do not form a valid roster.
pub fn read(entries: &[v1::RosterEntry], job: &str, spec_digest: &[u8; 32], colluders: u32) -> Result<Roster, Fault> {
    let member = |entry: &v1::RosterEntry| {
        let key = entry.key.clone().unwrap_or_default();
        let checked = mask_key::check(&key, job, spec_digest, &entry.name)?;
        Ok(Member { name: entry.name.clone(), identity: checked.identity, public: checked.public })
    };
    let members = entries.iter().map(member).collect::<Result<Vec<_>, Fault>>()?;
    Roster::new(job, *spec_digest, colluders, members)
        .map_err(|e| Fault::new(ErrorCode::InvalidInput, format!("invalid roster: {e}")))
}

/// A roster under assembly. A first piece starts a new roster.
#[derive(Debug, Default)]
pub struct Assembly {
    job: String,
    members: usize,
    entries: Vec<v1::RosterEntry>,
    bytes: usize,
}

impl Assembly {
    /// Adds a piece and returns the entries once all are present.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidInput`] for a piece that is out of bounds or not the next of its roster, and for a roster that is too
    /// long. An error discards the pieces so far.
    pub fn take(&mut self, piece: v1::Roster) -> Result<Option<Vec<v1::RosterEntry>>, Fault> {
        let begun = std::mem::take(self);
        let fault = |what: &str| Fault::new(ErrorCode::InvalidInput, format!("a roster {what}"));
        if !is_in_bounds(&piece) {
            return Err(fault("piece exceeds the size limits"));
        }
        let mut roster = match piece.place {
            0 => Self { job: piece.job, members: piece.members as usize, ..Self::default() },
            next if begun.job == piece.job && begun.members == piece.members as usize && begun.entries.len() == next as usize => {
                begun
            }
            _ => return Err(fault("piece arrived out of order")),
        };
        roster.bytes += piece.entries.iter().map(Message::encoded_len).sum::<usize>();
        if roster.bytes > MAX_BYTES {
            return Err(fault(&format!("exceeds {MAX_BYTES} bytes: its certificates are too long")));
        }
        roster.entries.extend(piece.entries);
        if roster.entries.len() == roster.members {
            return Ok(Some(roster.entries));
        }
        *self = roster;
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn entries(count: usize, certificate: usize) -> Vec<v1::RosterEntry> {
        let key = v1::MaskKey {
            public: vec![1; 32],
            scheme: "ed25519".into(),
            signature: vec![2; 64],
            certificate: "c".repeat(certificate),
        };
        (0..count).map(|place| v1::RosterEntry { name: format!("p-{place}"), key: Some(key.clone()) }).collect()
    }

    #[test]
    fn pieces_fit_frames_and_make_the_roster_again() {
        for (count, certificate, expected) in [(3, 900, 1), (64, 900, 1), (65, 900, 2), (1024, 900, 16), (100, 16 << 10, 7)] {
            let all = entries(count, certificate);
            let pieces = pieces("job", all.clone());
            assert_eq!(pieces.len(), expected, "{count} of {certificate}");
            let mut assembly = Assembly::default();
            for (at, piece) in pieces.iter().enumerate() {
                assert!(piece.encoded_len() < 1 << 19);
                let taken = assembly.take(piece.clone()).unwrap();
                assert_eq!(taken, (at + 1 == expected).then(|| all.clone()));
            }
            // A complete roster leaves nothing behind.
            assert_eq!(assembly.entries.len(), 0);
        }
        assert!(pieces("job", Vec::new()).is_empty());
    }

    #[test]
    fn a_piece_out_of_order_discards_the_roster() {
        let pieces = pieces("job", entries(130, 900));
        assert_eq!(pieces.len(), 3);
        for odd in [
            pieces[2].clone(),
            v1::Roster { job: "other".into(), ..pieces[1].clone() },
            v1::Roster { members: 131, ..pieces[1].clone() },
            v1::Roster { place: 63, ..pieces[1].clone() },
        ] {
            let mut assembly = Assembly::default();
            assert_eq!(assembly.take(pieces[0].clone()).unwrap(), None);
            assert!(assembly.take(odd).is_err());
            assert!(assembly.take(pieces[1].clone()).is_err(), "the first piece is gone");
        }
        // A first piece starts a new roster.
        let mut assembly = Assembly::default();
        for piece in [&pieces[0], &pieces[1], &pieces[0], &pieces[1]] {
            assert_eq!(assembly.take(piece.clone()).unwrap(), None);
        }
        assert_eq!(assembly.take(pieces[2].clone()).unwrap().unwrap().len(), 130);
    }

    #[test]
    fn rosters_are_bounded_before_they_are_read() {
        let good = pieces("job", entries(3, 900)).remove(0);
        assert!(is_in_bounds(&good));
        let key = |change: fn(&mut v1::MaskKey)| {
            let mut piece = good.clone();
            change(piece.entries[1].key.as_mut().unwrap());
            piece
        };
        let mut nameless = good.clone();
        nameless.entries[0].name = "A/b".into();
        let mut keyless = good.clone();
        keyless.entries[2].key = None;
        for bad in [
            v1::Roster { members: 2, ..good.clone() },
            v1::Roster { members: 1025, ..good.clone() },
            v1::Roster { members: u32::MAX, place: u32::MAX, ..good.clone() },
            v1::Roster { place: 1, ..good.clone() },
            v1::Roster { entries: Vec::new(), ..good.clone() },
            v1::Roster { members: 100, entries: entries(65, 9), ..good.clone() },
            nameless,
            keyless,
            key(|key| key.certificate = "c".repeat((16 << 10) + 1)),
            key(|key| key.signature = vec![0; 513]),
            key(|key| key.scheme = "x".repeat(65)),
            key(|key| key.public = vec![0; 33]),
        ] {
            assert!(!is_in_bounds(&bad));
            assert!(Assembly::default().take(bad).is_err());
        }
        // Each piece is within its bounds, but the roster is not.
        let mut assembly = Assembly::default();
        let taken: Result<Vec<_>, _> =
            pieces("job", entries(300, 16 << 10)).into_iter().map(|piece| assembly.take(piece)).collect();
        assert!(taken.unwrap_err().message.contains("certificates are too long"));
        assert_eq!(assembly.bytes, 0);
    }
}
