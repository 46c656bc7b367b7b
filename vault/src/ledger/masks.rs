//! Enters a masked job's key and its roster, once each and for good.

use conclave_privacy::secagg::{MaskPublic, Roster};

use super::error::LedgerError;
use super::events::{MaskKey, RosterEntered, hex};
use super::handle::Ledger;
use super::head::Head;
use super::state::Masks;

impl Ledger {
    /// Returns true for a genuine head of this ledger: a genuine head of another shows that the ledger has been set back.
    ///
    /// # Errors
    /// [`LedgerError::Halted`] after any failure of the database.
    pub fn holds_head(&mut self, head: &Head) -> Result<bool, LedgerError> {
        self.alive()?;
        let held = self.holds(head);
        self.fail_stop(held)
    }

    /// Returns true for a head of entries that the owner has given up for lost, or older: no key that was last used then is used again.
    /// Such keys were deleted before the ledger was unlocked; one that exists nevertheless has been put back.
    pub fn gave_up(&self, head: &Head) -> bool {
        head.seq <= self.state.given_up()
    }

    /// Returns true where the file of the newest head was missing when the ledger was opened: then a set-back ledger cannot be detected,
    /// and no key of masks is kept.
    pub fn had_no_head(&self) -> bool {
        self.had_no_head
    }

    /// The lost part of a ledger that is behind may hold another key or roster of the job.
    fn alive_and_whole(&self) -> Result<(), LedgerError> {
        self.alive()?;
        self.behind().map_or(Ok(()), Err)
    }

    /// Returns the masking of an entered job; `None` for a job that is not entered.
    pub fn masks(&self, job: &str) -> Option<&Masks> {
        self.state.job(job).map(|job| &job.masks)
    }

    /// Returns true for an entered job whose answers leave masked, now or once there is a roster.
    pub fn is_masked(&self, job: &str) -> bool {
        self.masks(job).is_some_and(|masks| *masks != Masks::None)
    }

    /// Enters the public half of a job's mask key, durably: from here on the job is charged only under a roster.
    ///
    /// # Errors
    /// [`LedgerError::Behind`] while the ledger is behind a head; [`LedgerError::Job`] where the job is not open, has another key or was charged
    /// before; [`LedgerError::Halted`] after any failure of the database.
    pub fn enter_mask_key(&mut self, job: &str, public: &MaskPublic) -> Result<(), LedgerError> {
        self.alive_and_whole()?;
        let Some(state) = self.state.job(job).filter(|state| state.open) else {
            return Err(LedgerError::Job(format!("job {job} is not open")));
        };
        match &state.masks {
            Masks::None if state.queries == 0 => {}
            Masks::Keyed(known) if known == public.bytes() => return Ok(()),
            Masks::Under(roster) if roster.has(public) => return Ok(()),
            _ => return Err(LedgerError::Job(format!("job {job} has another key for its masks: submit a new job"))),
        }
        let (seq, body) = (state.seq, MaskKey { public: hex(public.bytes()) }.body());
        let written = self.write(true, |writer| writer.event(MaskKey::KIND, seq, &body));
        self.fail_stop(written)
    }

    /// Enters the roster under whose masks a job's answers leave, durably, with each member's pin and certificate serial number. The same
    /// one again is no error.
    ///
    /// Theorem, masks: a job has one roster and one key for good, and a message under them has one digest; so each mask covers one value at
    /// most. Proof: docs/explanation/proofs.md, section 5.
    ///
    /// # Errors
    /// [`LedgerError::Behind`] while the ledger is behind a head; [`LedgerError::Job`] where the job is not open, has another roster already, or
    /// its key is not in this one; [`LedgerError::Halted`] after any failure of the database.
    pub fn enter_roster(&mut self, job: &str, roster: &Roster, known: &[(bool, String)]) -> Result<(), LedgerError> {
        self.alive_and_whole()?;
        let Some(state) = self.state.job(job).filter(|state| state.open) else {
            return Err(LedgerError::Job(format!("job {job} is not open")));
        };
        let entered = RosterEntered::of(roster, known);
        match &state.masks {
            Masks::Keyed(own) if entered.check(job, &state.spec_digest, own).is_ok() => {}
            Masks::Under(before) if before.digest == entered.digest => return Ok(()),
            Masks::Under(_) => return Err(LedgerError::Job(format!("job {job} has another roster: submit a new job"))),
            _ => return Err(LedgerError::Job(format!("the roster of job {job} is not made with this party's key"))),
        }
        let (seq, body) = (state.seq, entered.body());
        let written = self.write(true, |writer| writer.event(RosterEntered::KIND, seq, &body));
        self.fail_stop(written)
    }
}
