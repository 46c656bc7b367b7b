//! Manages jobs whose answers leave masked: the party's key as they open, the roster of all keys, and the key's end.
//!
//! A key is on disk and in the ledger before its public half leaves; a roster is in the ledger before it is confirmed; and no query of a
//! job is answered before that. When a job ends, its end is entered and then its key is deleted.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use conclave_common::job::{JobSpec, Secure};
use conclave_proto::convert::AnswerStatus;
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::revoked::{RevokedFile, RevokedList};
use conclave_proto::roster::{self, Assembly};
use conclave_proto::v1::{self, party_frame::Body};

use super::answerer::Answerer;
use super::consent::refusal;
use super::masking::{Masking, RosterMasks};
use super::reply::{ReplySender, reply};
use super::secrecy::{AtWork, NOT_ADMITTED, Secrecy};
use crate::ledger::{Masks, RosterMember};
use crate::ports::MaskKeySigner;
use crate::secure::{JobKey, MaskKeyError, MaskKeys, Pins, RosterCheck, RosterRefusal, SecureSettings};

/// Interval between searches for unused keys.
const LOOK: Duration = Duration::from_secs(3600);
/// Difference of the clocks beyond which this machine's is not trusted.
const DAY: Duration = Duration::from_secs(86_400);
/// Interval between readings of the list of revoked certificates while a masked job is asked.
const REVOKED: Duration = Duration::from_secs(1);
/// Attempts to read an unreadable list, and the wait after each.
const READ: u32 = 5;
const WRITTEN: Duration = Duration::from_millis(100);

impl Answerer {
    /// Admits masked jobs as the owner's settings allow; without it none is admitted. Keys of jobs that the ledger has closed, or never
    /// knew, are deleted.
    ///
    /// # Errors
    /// A folder of keys that cannot be read or written.
    pub fn with_secrecy(mut self, parts: Secrecy) -> Result<Self, MaskKeyError> {
        let (state, set_back) = (self.ledger.state(), self.ledger.behind().is_some());
        let no_head = self.ledger.had_no_head();
        let is_open = |job: &str| state.job(job).is_some_and(|job| job.open && job.masks != Masks::None);
        // An older ledger lacks the jobs that came later; one without a head cannot show that it is older.
        let kept = |job: &str| set_back || (!no_head && is_open(job));
        for job in parts.keys.sweep(kept)? {
            let why = if no_head { "the note of the ledger's head was not there" } else { "the job is not open" };
            tracing::info!(%job, "the key of the job's masks is deleted: {why}");
        }
        self.secrecy = Some(AtWork { parts, assembly: Assembly::default(), looked: None, revoked: None });
        Ok(self)
    }

    /// Returns the owner's settings for masked jobs.
    pub(super) fn secure_settings(&self) -> Option<&SecureSettings> {
        self.secrecy.as_ref().map(|at_work| &at_work.parts.settings)
    }

    /// Returns the masking of a job that the ledger has entered, with the party's key for its masks, which is sent at every opening.
    ///
    /// # Errors
    /// [`ErrorCode::Conflict`] where the key that the ledger has entered is gone: the job cannot continue here, and gets no second key.
    /// [`ErrorCode::Unreachable`] where its owner has to repair something.
    pub(super) fn masking_of(
        &mut self,
        job: &str,
        spec: &JobSpec,
        digest: [u8; 32],
    ) -> Result<(Masking, Option<Box<v1::MaskKey>>), Fault> {
        if !spec.aggregation.is_secure() {
            return Ok((Masking::Local, None));
        }
        let masks = self.ledger.masks(job).cloned().unwrap_or(Masks::None);
        let key = match masks {
            Masks::None => self.first_key(job, digest)?,
            Masks::Keyed(public) => self.known_key(job, digest, |key| *key.public().bytes() == public)?,
            Masks::Under(ref roster) => self.known_key(job, digest, |key| roster.has(&key.public()))?,
        };
        let signed = Box::new(key.signed.clone());
        let masking = match masks {
            Masks::Under(entered) => {
                let roster = entered.roster(job, &digest).map_err(|why| dead(job, &why.to_string()))?;
                let agreed = RosterMasks::agree(&roster, &self.party, &key.secret).map_err(|why| dead(job, &why.to_string()))?;
                Masking::Under(Box::new(agreed))
            }
            _ => Masking::Keyed(key.secret),
        };
        Ok((masking, Some(signed)))
    }

    /// Makes the key of a job that has none: on disk, then in the ledger, and only then on the wire.
    fn first_key(&mut self, job: &str, digest: [u8; 32]) -> Result<JobKey, Fault> {
        let (keys, signer) = self.key_parts()?;
        // A key without an entry has never left: a crash came between.
        keys.delete(job).map_err(|e| unkept(job, &e))?;
        let key = keys.make(&*signer, job, digest, self.ledger.head()).map_err(|e| unkept(job, &e))?;
        self.ledger.enter_mask_key(job, &key.public()).map_err(super::faults::ledger_fault)?;
        // Now the file is newer than the ledger's entry.
        keys.rewrite(key, self.ledger.head(), Duration::ZERO, SystemTime::now()).map_err(|e| unkept(job, &e))
    }

    /// Loads the key of a job that has one, if it is the key that the ledger has entered and this is the ledger it was used with.
    fn known_key(&mut self, job: &str, digest: [u8; 32], is_own: impl Fn(&JobKey) -> bool) -> Result<JobKey, Fault> {
        let (keys, _) = self.key_parts()?;
        let loaded = match keys.load(job, &digest) {
            Err(e @ MaskKeyError::Io { .. }) => return Err(unkept(job, &e)),
            loaded => loaded.map_err(|e| dead(job, &e.to_string()))?,
        };
        if loaded.as_ref().is_some_and(|key| self.ledger.gave_up(&key.head)) {
            keys.delete(job).map_err(|e| unkept(job, &e))?;
            return Err(dead(job, "it was used before the ledger was unlocked, and has been put back since"));
        }
        let key = loaded.filter(is_own).ok_or_else(|| dead(job, "it is not there"))?;
        if !self.ledger.holds_head(&key.head).map_err(super::faults::ledger_fault)? {
            tracing::error!(%job, "the key of the job's masks has been used with a ledger that went further than this one: this ledger was set back");
            let message = "its ledger is behind what it has answered: its owner has to restore or unlock it";
            return Err(Fault::new(ErrorCode::Unreachable, message));
        }
        // An opening does not count as a use.
        let used = keys.used(job).map_err(|e| unkept(job, &e))?;
        keys.rewrite(key, self.ledger.head(), Duration::ZERO, used).map_err(|e| unkept(job, &e))
    }

    /// Returns how long a masked job's key has been unused that is not open, or had been when it was opened. The wall clock counts only
    /// while it agrees with the coordinator's, since a wrong one would end the job for ever; without it, the time since this process
    /// began counts, which a coordinator can only shorten.
    pub(super) fn idle_before(&self, job: &str, now: Instant) -> Duration {
        let Some(at_work) = &self.secrecy else { return Duration::ZERO };
        let idle = at_work.parts.keys.idle(job, SystemTime::now()).unwrap_or_default();
        let is_known = self.clock_agrees() && idle < Duration::MAX;
        if is_known { idle } else { idle.min(now.saturating_duration_since(self.started)) }
    }

    /// Returns true while this machine's clock is within a day of the coordinator's.
    fn clock_agrees(&self) -> bool {
        self.coordinator_clock.is_some_and(|(date, at)| {
            let (theirs, own) = (date + at.elapsed(), SystemTime::now());
            own.duration_since(theirs).unwrap_or_else(|ahead| ahead.duration()) <= DAY
        })
    }

    /// Notes the coordinator's clock, and looks for unused keys again.
    pub(super) fn meet_clock(&mut self, date: Option<SystemTime>) {
        self.coordinator_clock = date.map(|date| (date, Instant::now()));
        if !self.clock_agrees() {
            tracing::warn!("this machine's clock can't be confirmed by the coordinator's: no key of masks is deleted by it");
        }
        if let Some(at_work) = &mut self.secrecy {
            at_work.looked = None;
        }
    }

    fn key_parts(&self) -> Result<(MaskKeys, Arc<dyn MaskKeySigner>), Fault> {
        let at_work = self.secrecy.as_ref().ok_or_else(|| Fault::new(ErrorCode::Policy, NOT_ADMITTED))?;
        Ok((at_work.parts.keys.clone(), Arc::clone(&at_work.parts.signer)))
    }

    /// Takes a piece of the roster of keys under which a job's answers will be masked; enters and confirms the whole roster.
    pub(super) fn take_roster(&mut self, piece: v1::Roster, outbox: &ReplySender) {
        let job = piece.job.clone();
        let Some(at_work) = &mut self.secrecy else { return };
        let entries = match at_work.assembly.take(piece) {
            Ok(None) => return,
            Ok(Some(entries)) => entries,
            Err(fault) => return reply(outbox, refusal(job, &fault.at_party(self.party.clone()))),
        };
        match self.enter_roster(&job, &entries) {
            Ok(Some(accepted)) => reply(outbox, Body::RosterAccepted(accepted)),
            // The job is not open here, or is not masked.
            Ok(None) => tracing::warn!("a roster of a job that is not open here, or whose answers are not masked"),
            Err(fault) => {
                tracing::warn!(%job, "roster refused: {fault}");
                reply(outbox, refusal(job, &fault.at_party(self.party.clone())));
            }
        }
    }

    fn enter_roster(&mut self, job: &str, entries: &[v1::RosterEntry]) -> Result<Option<v1::RosterAccepted>, Fault> {
        let Some(active) = self.jobs.get(job) else { return Ok(None) };
        let Some(secure) = active.spec.aggregation.secure().cloned() else { return Ok(None) };
        let digest = active.digest;
        let agreed = match (&active.masking, self.ledger.masks(job)) {
            (Masking::Under(masks), _) => {
                if !masks.has_seen(entries) {
                    same_roster(&masks.roster(), job, &digest, secure.colluders, entries)?;
                }
                None
            }
            (Masking::Keyed(secret), Some(Masks::Keyed(_))) => {
                let checked = self.check_roster(job, &secure, entries)?;
                let agreed = RosterMasks::agree(&checked.roster, &self.party, secret);
                let agreed = agreed.map_err(|why| Fault::new(ErrorCode::Policy, format!("the roster can't be used: {why}")))?;
                let known: Vec<(bool, String)> = checked.standing.into_iter().map(|s| (s.pinned, s.serial)).collect();
                self.ledger.enter_roster(job, &checked.roster, &known).map_err(super::faults::ledger_fault)?;
                Some(agreed)
            }
            _ => return Ok(None),
        };
        let Some(active) = self.jobs.get_mut(job) else { return Ok(None) };
        if let Some(agreed) = agreed {
            tracing::info!(%job, "the roster of keys is entered: answers leave masked");
            active.masking = Masking::Under(Box::new(agreed));
        }
        let Masking::Under(masks) = &mut active.masking else { return Ok(None) };
        masks.sees(entries);
        let accepted = v1::RosterAccepted { job: job.to_owned(), digest: masks.roster().to_vec(), confirm: masks.confirmation() };
        Ok(Some(accepted))
    }

    fn check_roster(
        &self,
        job: &str,
        secure: &Secure,
        entries: &[v1::RosterEntry],
    ) -> Result<crate::secure::CheckedRoster, Fault> {
        let (Some(at_work), Some(active)) = (&self.secrecy, self.jobs.get(job)) else {
            return Err(Fault::new(ErrorCode::Policy, NOT_ADMITTED));
        };
        let Masking::Keyed(secret) = &active.masking else { return Err(Fault::new(ErrorCode::Policy, NOT_ADMITTED)) };
        let parts = &at_work.parts;
        let repair = |what: &str, why: &dyn std::fmt::Display| {
            tracing::error!("{what}: {why}");
            Fault::new(ErrorCode::Unreachable, format!("its owner has to repair {what}"))
        };
        let path = parts.ca.clone();
        let ca_pem = std::fs::read_to_string(&path).map_err(|e| repair("its copy of the CA's certificate", &e))?;
        let revoked = parts.revoked.as_deref().map(|path| RevokedFile::at(path).read()).transpose();
        let revoked = revoked.map_err(|fault| repair("its list of revoked certificates", &fault))?;
        let check = RosterCheck {
            job,
            spec_digest: &active.digest,
            parties: &active.spec.parties,
            colluders: secure.colluders,
            members: &Pins::of_members(&secure.members),
            own: (&self.party, secret.public()),
            ca_pem: &ca_pem,
            revoked: revoked.as_ref(),
            settings: &parts.settings,
            moment: SystemTime::now(),
        };
        let code =
            |refused: &RosterRefusal| if *refused == RosterRefusal::Revoked { ErrorCode::Revoked } else { ErrorCode::Policy };
        check.check(entries).map_err(|refused| Fault::new(code(&refused), refused.to_string()))
    }

    /// Closes a masked job with a revoked member before it answers. It reads no record and is no part of the message's service, which
    /// begins after it.
    ///
    /// # Errors
    /// [`AnswerStatus::Policy`] if the job was closed; as [`Answerer::close_revoked`].
    pub(super) fn check_members(&mut self, job: &str) -> Result<(), AnswerStatus> {
        if !self.jobs.get(job).is_some_and(|job| job.masking.is_secure()) {
            return Ok(());
        }
        self.close_revoked(Instant::now())?;
        if self.jobs.contains_key(job) { Ok(()) } else { Err(AnswerStatus::Policy) }
    }

    /// Closes masked jobs with a roster member that was revoked since the roster was entered, by name or by the serial number of its
    /// certificate. The list is read once a second while masked jobs are asked, at no time that the coordinator chooses, and even if it has
    /// not changed: a job may have been opened since.
    ///
    /// # Errors
    /// [`AnswerStatus::Halted`] while the list cannot be read: any member may be on it, so no query is answered; and perhaps none is, so no
    /// job is closed, which would be final.
    pub(super) fn close_revoked(&mut self, now: Instant) -> Result<(), AnswerStatus> {
        let Some(at_work) = &mut self.secrecy else { return Ok(()) };
        let Some(path) = &at_work.parts.revoked else { return Ok(()) };
        if at_work.revoked.is_some_and(|looked| now.duration_since(looked) < REVOKED) {
            return Ok(());
        }
        let list = patiently_read(&RevokedFile::at(path)).map_err(|fault| {
            tracing::error!("masked jobs are not answered until this is repaired: {fault}");
            AnswerStatus::Halted
        });
        self.pacer.passed();
        let list = list?;
        at_work.revoked = Some(now);
        let is_revoked =
            |member: &&RosterMember| list.has_member(&format!("party/{}", member.name)) || list.has_serial(&member.serial);
        let of = |job: &String| self.ledger.masks(job).and_then(Masks::roster);
        let hit = |job: &String| Some((job.clone(), of(job)?.members.iter().find(is_revoked)?.name.clone()));
        for (job, member) in self.jobs.keys().filter_map(hit).collect::<Vec<_>>() {
            tracing::warn!(%job, member, "a member of the job's roster has been revoked: the job is closed");
            let party = &self.party;
            let why =
                format!("the certificate of party/{member}, a member of this masked job, was revoked by the owner of {party}");
            self.close_revoked_job(&job, "a member was revoked", Fault::new(ErrorCode::Revoked, why));
        }
        Ok(())
    }

    /// Deletes the key of a job that has ended. After a failure, which is logged for the owner, the next start deletes it.
    pub(super) fn forget_key(&mut self, job: &str) {
        let Some(at_work) = &self.secrecy else { return };
        if let Err(e) = at_work.parts.keys.delete(job) {
            tracing::error!(%job, "the key of the job's masks can't be deleted, and has to be by hand: {e}");
        }
    }

    /// Closes masked jobs whose keys have been unused for the time that the owner sets: a coordinator need never report that a job has
    /// ended.
    ///
    /// Returns true if it has looked.
    pub(super) fn close_unused(&mut self, now: Instant) -> bool {
        let Some(at_work) = &mut self.secrecy else { return false };
        if at_work.looked.is_some_and(|looked| now.duration_since(looked) < LOOK) {
            return false;
        }
        at_work.looked = Some(now);
        let days = at_work.parts.settings.keep_key_days;
        let most = Duration::from_secs(u64::from(days) * 86_400);
        let listed = at_work.parts.keys.list().unwrap_or_else(|e| {
            tracing::error!("the keys of masks can't be listed: {e}");
            Vec::new()
        });
        for job in listed {
            let open = self.jobs.get(&job);
            let age = open.map_or_else(|| self.idle_before(&job, now), |active| active.idle(now));
            if age >= most {
                tracing::warn!(%job, "the key of the job's masks has not been used for {days} days (secure.keep_key_days): the job is closed");
                // A failure has been logged, and the ledger answers no more.
                drop(self.close(&job, "its key of masks was not used"));
            } else if open.is_some() {
                self.note_use(&job, age);
            }
        }
        true
    }

    /// Writes into a key's file how long ago it was used, which no other file keeps over a restart, and the ledger's head, so that the key
    /// is never used with an older copy of the ledger.
    fn note_use(&self, job: &str, age: Duration) {
        let (Some(at_work), Some(active)) = (&self.secrecy, self.jobs.get(job)) else { return };
        let keys = &at_work.parts.keys;
        let noted = keys.load(job, &active.digest).and_then(|key| match key {
            // A wrong clock moves no last use, which would make the key seem older or newer once it is set right.
            Some(key) if !self.clock_agrees() => keys.rewrite(key, self.ledger.head(), Duration::ZERO, keys.used(job)?).map(drop),
            Some(key) => keys.rewrite(key, self.ledger.head(), age, SystemTime::now()).map(drop),
            None => Ok(()),
        });
        if let Err(e) = noted {
            tracing::error!(%job, "when the key of the job's masks was used can't be noted: {e}");
        }
    }
}

/// Reads a list; one that is being written while it is read is complete soon after.
fn patiently_read(file: &RevokedFile) -> Result<RevokedList, Fault> {
    for _ in 1..READ {
        if let Ok(list) = file.read() {
            return Ok(list);
        }
        std::thread::sleep(WRITTEN);
    }
    file.read()
}

/// Checks that entries are the roster that was entered. Certificates may have expired or been renewed since, and do not count any more.
fn same_roster(
    entered: &[u8; 32],
    job: &str,
    digest: &[u8; 32],
    colluders: u32,
    entries: &[v1::RosterEntry],
) -> Result<(), Fault> {
    match roster::read(entries, job, digest, colluders) {
        Ok(roster) if roster.digest() == *entered => Ok(()),
        _ => Err(Fault::new(ErrorCode::Conflict, "the job has another roster here, and gets no second one: submit it again")),
    }
}

/// The fault of a job that cannot continue here.
fn dead(job: &str, why: &str) -> Fault {
    tracing::error!(%job, "the key of the job's masks can't be used: {why}");
    let message = "the key of the job's masks is not there any more, and no second one is made: submit the job again";
    Fault::new(ErrorCode::Conflict, message)
}

/// The fault of a key that its owner has to repair.
fn unkept(job: &str, why: &dyn std::fmt::Display) -> Fault {
    tracing::error!(%job, "the key of the job's masks can't be kept: {why}");
    Fault::new(ErrorCode::Unreachable, "it can't keep the key of the job's masks: its owner has to repair that")
}
