//! How a job's answers come to leave masked: its key and its roster are entered, once each and for ever.

use conclave_privacy::secagg::{MaskPublic, Roster};

use super::error::LedgerError;
use super::events::{MaskKey, RosterEntered, hex};
use super::handle::Ledger;
use super::head::Head;
use super::state::Masks;

impl Ledger {
    /// Whether a genuine head is of this ledger: one that is not shows that the ledger has been set back.
    ///
    /// # Errors
    /// [`LedgerError::Halted`] after any failure of the database.
    pub fn holds_head(&mut self, head: &Head) -> Result<bool, LedgerError> {
        self.alive()?;
        let held = self.holds(head);
        self.fail_stop(held)
    }

    /// Whether a head is of entries that the owner has given up for lost, or older: no key that was last used then is used again. Those of the time
    /// were deleted before the ledger was unlocked; one that is there all the same has been put back.
    pub fn gave_up(&self, head: &Head) -> bool {
        head.seq <= self.state.given_up()
    }

    /// Whether the file of the newest head was not there when the ledger was opened: then nothing tells whether the ledger was set back, and no key
    /// of masks is kept.
    pub fn had_no_head(&self) -> bool {
        self.had_no_head
    }

    /// What is lost of a ledger that is behind may hold another key or roster of the job.
    fn alive_and_whole(&self) -> Result<(), LedgerError> {
        self.alive()?;
        self.behind().map_or(Ok(()), Err)
    }

    /// How an entered job's answers leave; `None` for a job that is not entered.
    pub fn masks(&self, job: &str) -> Option<&Masks> {
        self.state.job(job).map(|job| &job.masks)
    }

    /// Whether an entered job's answers leave masked, now or once there is a roster.
    pub fn is_masked(&self, job: &str) -> bool {
        self.masks(job).is_some_and(|masks| *masks != Masks::None)
    }

    /// Enters the public half of the key that a job's answers will be masked with, durably: from here on nothing of it is charged without a
    /// roster.
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

    /// Enters the roster under whose masks a job's answers leave, durably, with whether each member was pinned and the serial number of its
    /// certificate. The same one again is no error.
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
