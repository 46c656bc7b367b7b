//! Masking of a job's answers: each party signs a key, all receive the roster of keys and confirm it, and every answer names its
//! message.
//!
//! The coordinator makes the roster once, stores it before any party receives it, and always sends the same bytes: a party
//! accepts no second roster. It learns no mask and no single party's number. Its checks here find faults; no party's privacy
//! depends on them.

use std::sync::Arc;

use conclave_common::query::{Opened, Round};
use conclave_privacy::secagg::{CONFIRMATION_LANES, Member, Roster, opened};
use conclave_proto::echo::Echo;
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1::coordinator_frame::Body;
use conclave_proto::{mask_key, roster, v1};
use prost::Message as _;

/// Masking state of a job.
#[derive(Debug)]
pub(super) struct Masking {
    job: Arc<str>,
    spec_digest: [u8; 32],
    names: Vec<String>,
    colluders: u32,
    /// Each party's key and its checked roster entry.
    keys: Vec<Option<(v1::MaskKey, Member)>>,
    stored: Option<StoredRoster>,
    /// Each party's confirmation on its current stream.
    confirmed: Vec<Option<[u64; CONFIRMATION_LANES]>>,
    /// True once all parties have confirmed and their masks were found to cancel.
    all_confirmed: bool,
}

/// Parties that may be asked after a confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Confirmed {
    /// None: others have yet to confirm.
    NotAll,
    /// All: this was the last confirmation.
    All,
    /// The party that confirmed, on a new stream.
    This,
}

/// The roster, once it is stored.
#[derive(Debug)]
struct StoredRoster {
    digest: [u8; 32],
    pieces: Vec<Arc<Body>>,
}

impl Masking {
    /// Initial state, without keys.
    pub(super) fn new(job: Arc<str>, spec_digest: [u8; 32], names: &[String], colluders: u32) -> Self {
        let (keys, confirmed) = (vec![None; names.len()], vec![None; names.len()]);
        Self { job, spec_digest, names: names.to_vec(), colluders, keys, stored: None, confirmed, all_confirmed: false }
    }

    /// Restores the roster that was stored before a restart.
    ///
    /// # Errors
    /// [`ErrorCode::Internal`] for an invalid roster: this job can't continue.
    pub(super) fn resume(&mut self, kept: &[u8]) -> Result<(), Fault> {
        let whole =
            v1::Roster::decode(kept).map_err(|e| Fault::new(ErrorCode::Internal, format!("invalid stored roster: {e}")))?;
        let checked =
            |entry: &v1::RosterEntry| member(&self.job, &self.spec_digest, &entry.name, &entry.key.clone().unwrap_or_default());
        let members = whole.entries.iter().map(checked).collect::<Result<Vec<_>, Fault>>()?;
        self.set_roster(whole.entries, members)
    }

    /// Accepts the key with which a party opened the job. A party's key is the same at every opening.
    ///
    /// # Errors
    /// [`ErrorCode::Policy`] for a missing key, [`ErrorCode::Unauthenticated`] for an invalid one or one of another party,
    /// [`ErrorCode::Conflict`] for a second one.
    pub(super) fn accept_key(&mut self, party: usize, key: Option<v1::MaskKey>) -> Result<(), Fault> {
        let name = &self.names[party];
        let at = |fault: Fault| fault.at_party(name.clone());
        let key = key.ok_or_else(|| {
            at(Fault::new(
                ErrorCode::Policy,
                format!("{name} opened the job without a masking key: its software is too old, and has to be upgraded"),
            ))
        })?;
        let known = self.keys[party].as_ref().map(|(known, _)| known);
        if known == Some(&key) {
            return Ok(());
        }
        if known.is_some_and(|known| known.public != key.public) {
            let message = format!("{name} sent a different masking key for this job than before: submit the job again");
            return Err(at(Fault::new(ErrorCode::Conflict, message)));
        }
        let member = member(&self.job, &self.spec_digest, name, &key).map_err(at)?;
        self.keys[party].get_or_insert((key, member));
        Ok(())
    }

    /// Makes the roster once every party's key is there; returns the bytes to store before any party receives them.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidInput`] if the keys do not form a valid roster.
    pub(super) fn make(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        if self.stored.is_some() || self.keys.iter().any(Option::is_none) {
            return Ok(None);
        }
        let keys = || self.keys.iter().flatten();
        let entry = |(key, member): &(v1::MaskKey, Member)| v1::RosterEntry { name: member.name.clone(), key: Some(key.clone()) };
        let entries: Vec<v1::RosterEntry> = keys().map(entry).collect();
        let checked: Vec<Member> = keys().map(|(_, member)| member.clone()).collect();
        let members = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        let whole = v1::Roster { job: self.job.to_string(), members, place: 0, entries: entries.clone() };
        self.set_roster(entries, checked)?;
        Ok(Some(whole.encode_to_vec()))
    }

    fn set_roster(&mut self, entries: Vec<v1::RosterEntry>, members: Vec<Member>) -> Result<(), Fault> {
        let made = Roster::new(&self.job, self.spec_digest, self.colluders, members)
            .map_err(|e| Fault::new(ErrorCode::InvalidInput, format!("the parties' keys do not form a valid roster: {e}")))?;
        let pieces = roster::pieces(&self.job, entries).into_iter().map(|piece| Arc::new(Body::Roster(piece))).collect();
        self.stored = Some(StoredRoster { digest: made.digest(), pieces });
        Ok(())
    }

    /// The roster's frames; empty before it is made.
    pub(super) fn pieces(&self) -> &[Arc<Body>] {
        self.stored.as_ref().map(|stored| stored.pieces.as_slice()).unwrap_or_default()
    }

    /// Digest of the roster, once it is made.
    pub(super) fn digest(&self) -> Option<[u8; 32]> {
        self.stored.as_ref().map(|stored| stored.digest)
    }

    /// Discards a party's confirmation when its stream has ended.
    pub(super) fn forget(&mut self, party: usize) {
        self.confirmed[party] = None;
    }

    /// Accepts a party's confirmation of the roster; returns the parties that may be asked from now on.
    ///
    /// # Errors
    /// [`ErrorCode::Internal`] for a different roster from the one that was sent, or for masks that do not cancel.
    pub(super) fn confirm(&mut self, party: usize, accepted: &v1::RosterAccepted) -> Result<Confirmed, Fault> {
        let broke = |what: &str| {
            let name = &self.names[party];
            Fault::new(ErrorCode::Internal, format!("{name} {what}: submit the job again")).at_party(name.clone())
        };
        let confirm = <[u64; CONFIRMATION_LANES]>::try_from(accepted.confirm.as_slice());
        let (Some(stored), Ok(confirm)) = (&self.stored, confirm) else {
            return Err(broke("confirmed a roster that it was not sent"));
        };
        if accepted.digest != stored.digest {
            return Err(broke("confirmed a different roster from the one that it was sent"));
        }
        self.confirmed[party] = Some(confirm);
        if !self.all_confirmed && self.confirmed.iter().all(Option::is_some) {
            let sum = |lane: usize| opened(self.confirmed.iter().flatten().map(|confirm| confirm[lane].cast_signed()));
            if (0..CONFIRMATION_LANES).any(|lane| sum(lane) != 0) {
                return Err(Fault::new(ErrorCode::Internal, NOT_CANCELLED));
            }
            self.all_confirmed = true;
            return Ok(Confirmed::All);
        }
        Ok(if self.all_confirmed { Confirmed::This } else { Confirmed::NotAll })
    }

    /// Returns true if all have confirmed the roster once, and this party has confirmed it on its current stream.
    pub(super) fn can_ask(&self, party: usize) -> bool {
        self.all_confirmed && self.confirmed[party].is_some()
    }

    /// Returns true if a party has yet to confirm the roster on its current stream.
    pub(super) fn is_unconfirmed(&self, party: usize) -> bool {
        self.confirmed[party].is_none()
    }

    /// Digest of a round's message; `None` before there is a roster.
    pub(super) fn round_digest(&self, round: &Round) -> Option<[u8; 32]> {
        self.digest().map(|roster| round.digest_under(&roster))
    }
}

/// Message for masks that do not cancel. The faulty party can't be identified without revealing the masked values.
pub(super) const NOT_CANCELLED: &str = "the masks of the parties' answers do not cancel. The faulty party can't be identified without revealing the masked \
     values: the owners have to compare the roster fingerprints that `conclave-party status` shows, and the job has to be submitted again";

/// Checks a party's signed key and returns its roster entry.
fn member(job: &str, spec_digest: &[u8; 32], name: &str, key: &v1::MaskKey) -> Result<Member, Fault> {
    let checked = mask_key::check(key, job, spec_digest, name)?;
    Ok(Member { name: name.to_owned(), identity: checked.identity, public: checked.public })
}

/// Checks the echo of an answer. A masked answer gets the check lane, the mask of zero, appended; an unmasked one is returned
/// unchanged.
///
/// # Errors
/// A description of what the party sent instead.
pub(super) fn with_check_lane(
    mut releases: Vec<i64>,
    echo: Option<Echo>,
    (iteration, digest): (u64, Option<[u8; 32]>),
) -> Result<Vec<i64>, String> {
    match (digest, echo) {
        (None, None) => Ok(releases),
        (Some(digest), Some(echo)) if echo.digest == digest => {
            releases.push(echo.check.cast_signed());
            Ok(releases)
        }
        (Some(_), Some(_)) => {
            Err(format!("an answer to a different message from the one that it was asked in round {iteration}"))
        }
        (Some(_), None) => Err(format!("an unmasked answer to round {iteration}")),
        (None, Some(_)) => Err(format!("a masked answer to round {iteration} of a job without masks")),
    }
}

/// Returns true if the round opens only the sum of its answers.
pub(super) fn is_masked(round: &Round) -> bool {
    round.opened == Opened::SumAlone
}

#[cfg(test)]
#[path = "tests/masking.rs"]
mod tests;
