//! How the parties of a job come to mask their answers: each signs a key, all get the roster of all keys and confirm it, and every answer
//! says which message it is of.
//!
//! The coordinator makes the roster once, keeps it before anybody has it, and sends the same bytes for ever after: a party takes no second
//! one. It learns no mask and no party's own number; what it checks here finds faults, and no party's privacy rests on it.

use std::sync::Arc;

use conclave_common::query::{Opened, Round};
use conclave_privacy::secagg::{CONFIRMATION_LANES, Member, Roster, opened};
use conclave_proto::echo::Echo;
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1::coordinator_frame::Body;
use conclave_proto::{mask_key, roster, v1};
use prost::Message as _;

/// A job's masking, as far as it has come.
#[derive(Debug)]
pub(super) struct Masking {
    job: Arc<str>,
    spec_digest: [u8; 32],
    names: Vec<String>,
    colluders: u32,
    /// Each with what it was found to be.
    keys: Vec<Option<(v1::MaskKey, Member)>>,
    entered: Option<Entered>,
    /// What each party said to the roster on its present stream.
    confirmed: Vec<Option<[u64; CONFIRMATION_LANES]>>,
    /// Whether all have confirmed it, and their masks were seen to cancel.
    stands: bool,
}

/// Whom a confirmation lets be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Confirmed {
    /// Nobody: others have yet to confirm.
    NotAll,
    /// Everybody: it was the last.
    All,
    /// The party that confirmed, on a new stream.
    This,
}

/// The roster, once it is kept.
#[derive(Debug)]
struct Entered {
    digest: [u8; 32],
    pieces: Vec<Arc<Body>>,
}

impl Masking {
    /// Nothing yet.
    pub(super) fn new(job: Arc<str>, spec_digest: [u8; 32], names: &[String], colluders: u32) -> Self {
        let (keys, confirmed) = (vec![None; names.len()], vec![None; names.len()]);
        Self { job, spec_digest, names: names.to_vec(), colluders, keys, entered: None, confirmed, stands: false }
    }

    /// Takes up the roster that was kept before a restart.
    ///
    /// # Errors
    /// [`ErrorCode::Internal`] where it is none: this job can't go on.
    pub(super) fn resume(&mut self, kept: &[u8]) -> Result<(), Fault> {
        let whole = v1::Roster::decode(kept).map_err(|e| Fault::new(ErrorCode::Internal, format!("the kept roster: {e}")))?;
        let checked =
            |entry: &v1::RosterEntry| member(&self.job, &self.spec_digest, &entry.name, &entry.key.clone().unwrap_or_default());
        let members = whole.entries.iter().map(checked).collect::<Result<Vec<_>, Fault>>()?;
        self.enter(whole.entries, members)
    }

    /// Takes in the key with which a party has opened the job. A party's key is the same at every opening.
    ///
    /// # Errors
    /// [`ErrorCode::Unauthenticated`] for a key that is none or is not this party's; [`ErrorCode::Conflict`] for a second one.
    pub(super) fn keyed(&mut self, party: usize, key: Option<v1::MaskKey>) -> Result<(), Fault> {
        let name = &self.names[party];
        let at = |fault: Fault| fault.at_party(name.clone());
        let key = key.ok_or_else(|| {
            at(Fault::new(
                ErrorCode::Policy,
                format!("{name} has opened the job without a key for masks: its software is too old for it"),
            ))
        })?;
        let known = self.keys[party].as_ref().map(|(known, _)| known);
        if known == Some(&key) {
            return Ok(());
        }
        if known.is_some_and(|known| known.public != key.public) {
            let message = format!("{name} has another key for this job's masks than before: submit the job anew");
            return Err(at(Fault::new(ErrorCode::Conflict, message)));
        }
        let member = member(&self.job, &self.spec_digest, name, &key).map_err(at)?;
        self.keys[party].get_or_insert((key, member));
        Ok(())
    }

    /// Makes the roster, once every party's key is there; the bytes to be kept before anybody has it.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidInput`] where the keys make none.
    pub(super) fn make(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        if self.entered.is_some() || self.keys.iter().any(Option::is_none) {
            return Ok(None);
        }
        let keys = || self.keys.iter().flatten();
        let entry = |(key, member): &(v1::MaskKey, Member)| v1::RosterEntry { name: member.name.clone(), key: Some(key.clone()) };
        let entries: Vec<v1::RosterEntry> = keys().map(entry).collect();
        let checked: Vec<Member> = keys().map(|(_, member)| member.clone()).collect();
        let members = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        let whole = v1::Roster { job: self.job.to_string(), members, place: 0, entries: entries.clone() };
        self.enter(entries, checked)?;
        Ok(Some(whole.encode_to_vec()))
    }

    fn enter(&mut self, entries: Vec<v1::RosterEntry>, members: Vec<Member>) -> Result<(), Fault> {
        let made = Roster::new(&self.job, self.spec_digest, self.colluders, members)
            .map_err(|e| Fault::new(ErrorCode::InvalidInput, format!("the parties' keys make no roster: {e}")))?;
        let pieces = roster::pieces(&self.job, entries).into_iter().map(|piece| Arc::new(Body::Roster(piece))).collect();
        self.entered = Some(Entered { digest: made.digest(), pieces });
        Ok(())
    }

    /// The roster, ready to send; nothing before it is made.
    pub(super) fn pieces(&self) -> &[Arc<Body>] {
        self.entered.as_ref().map(|entered| entered.pieces.as_slice()).unwrap_or_default()
    }

    /// Digest of the roster, once it is made.
    pub(super) fn digest(&self) -> Option<[u8; 32]> {
        self.entered.as_ref().map(|entered| entered.digest)
    }

    /// A party's stream is gone, and what it said on it.
    pub(super) fn forget(&mut self, party: usize) {
        self.confirmed[party] = None;
    }

    /// Takes in that a party has entered the roster; whom rounds may be asked from now on.
    ///
    /// # Errors
    /// [`ErrorCode::Internal`] for another roster than was sent, or masks that do not cancel.
    pub(super) fn accepted(&mut self, party: usize, accepted: &v1::RosterAccepted) -> Result<Confirmed, Fault> {
        let broke = |what: &str| {
            let name = &self.names[party];
            Fault::new(ErrorCode::Internal, format!("{name} {what}: submit the job anew")).at_party(name.clone())
        };
        let confirm = <[u64; CONFIRMATION_LANES]>::try_from(accepted.confirm.as_slice());
        let (Some(entered), Ok(confirm)) = (&self.entered, confirm) else {
            return Err(broke("confirmed a roster that it was not sent"));
        };
        if accepted.digest != entered.digest {
            return Err(broke("has entered another roster than it was sent"));
        }
        self.confirmed[party] = Some(confirm);
        if !self.stands && self.confirmed.iter().all(Option::is_some) {
            let sum = |lane: usize| opened(self.confirmed.iter().flatten().map(|confirm| confirm[lane].cast_signed()));
            if (0..CONFIRMATION_LANES).any(|lane| sum(lane) != 0) {
                return Err(Fault::new(ErrorCode::Internal, NOT_CANCELLED));
            }
            self.stands = true;
            return Ok(Confirmed::All);
        }
        Ok(if self.stands { Confirmed::This } else { Confirmed::NotAll })
    }

    /// Whether a party may be asked: all have confirmed the roster once, and it has on its present stream.
    pub(super) fn may_ask(&self, party: usize) -> bool {
        self.stands && self.confirmed[party].is_some()
    }

    /// Whether a party has yet to confirm the roster.
    pub(super) fn owes(&self, party: usize) -> bool {
        self.confirmed[party].is_none()
    }

    /// The digest of a round's message; `None` before there is a roster.
    pub(super) fn round_digest(&self, round: &Round) -> Option<[u8; 32]> {
        self.digest().map(|roster| round.digest_under(&roster))
    }
}

/// What is said of masks that do not cancel: whose is wrong can't be told without opening what they cover.
pub(super) const NOT_CANCELLED: &str = "the masks of the parties' answers do not cancel. Whose are wrong can't be told without opening what they \
     cover: the owners have to compare the fingerprints of the roster that their `conclave-party status` shows, and the job has to be submitted anew";

/// A party's place in the roster, by the key that it has signed.
fn member(job: &str, spec_digest: &[u8; 32], name: &str, key: &v1::MaskKey) -> Result<Member, Fault> {
    let checked = mask_key::check(key, job, spec_digest, name)?;
    Ok(Member { name: name.to_owned(), identity: checked.identity, public: checked.public })
}

/// An answer as it is kept: its masked integers, and the mask of nothing after them.
///
/// # Errors
/// What the party sent instead.
pub(super) fn covered(
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
        (Some(_), Some(_)) => Err(format!("an answer to another message than it was asked in round {iteration}")),
        (Some(_), None) => Err(format!("an answer to round {iteration} that is not masked")),
        (None, Some(_)) => Err(format!("a masked answer to round {iteration}, of a job that has no masks")),
    }
}

/// Whether a round is of a job whose answers are masked.
pub(super) fn is_masked(round: &Round) -> bool {
    round.opened == Opened::SumAlone
}

#[cfg(test)]
#[path = "tests/masking.rs"]
mod tests;
