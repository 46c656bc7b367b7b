//! Locks a ledger that lacks a checkpoint its party has published: it answers no query until its owner unlocks it.

use rusqlite::Connection;

use super::error::LedgerError;
use super::handle::Ledger;
use super::head::Head;
use super::state::LedgerState;
use super::verify;

impl Ledger {
    /// Notes a synced commit: its last entry is the head now.
    pub(super) fn move_head(&mut self) -> Result<(), LedgerError> {
        self.head = Head::new(&self.secret, &self.party, self.state.seq(), self.state.hash());
        self.head_file.write(self.head)
    }

    /// Returns why the ledger answers no query until its owner unlocks it, if it does not.
    pub fn behind(&self) -> Option<LedgerError> {
        let lost = self.lost?;
        Some(LedgerError::Behind { file: self.path.clone(), lost: lost.seq, last: self.state.seq() })
    }

    /// Compares the ledger with a head that the coordinator shows. One that this party did not make is ignored; a genuine one that the
    /// ledger does not hold locks it, and is kept in the head file for the owner to unlock.
    ///
    /// # Errors
    /// [`LedgerError::Halted`] where ledger or head file fail.
    pub fn meet_head(&mut self, shown: &[u8]) -> Result<(), LedgerError> {
        self.alive()?;
        if shown.is_empty() {
            return Ok(());
        }
        let Some(head) = Head::from_bytes(shown).filter(|head| head.is_genuine(&self.secret, &self.party)) else {
            tracing::warn!("the coordinator shows a head that this party's ledger never had; ignored");
            return Ok(());
        };
        let met = self.try_meet(head);
        self.fail_stop(met)
    }

    fn try_meet(&mut self, head: Head) -> Result<(), LedgerError> {
        if self.lost.is_some_and(|lost| lost.seq >= head.seq) || self.holds(&head)? {
            return Ok(());
        }
        self.lock_behind(head, "the coordinator");
        self.head_file.write(head)?;
        self.head_file.sync()
    }

    pub(super) fn lock_behind(&mut self, head: Head, shown_by: &str) {
        self.lost = Some(head);
        if let Some(why) = self.behind() {
            tracing::error!("{shown_by} shows a head of this party's that its ledger does not hold: {why}");
        }
    }

    /// Returns true for a genuine head of this chain, or of one that its owner has given up for lost.
    pub(super) fn holds(&self, head: &Head) -> Result<bool, LedgerError> {
        holds(&self.connection, &self.state, head)
    }
}

/// Same as [`Ledger::holds`], for a ledger that is only read.
pub fn holds(connection: &Connection, state: &LedgerState, head: &Head) -> Result<bool, LedgerError> {
    if head.seq <= state.given_up() {
        return Ok(true);
    }
    if head.seq >= state.seq() {
        return Ok(head.seq == state.seq() && head.hash == state.hash());
    }
    Ok(verify::hash_at(connection, head.seq)? == Some(head.hash))
}
