//! Enters the owner's actions and the fingerprints of the data.

use std::collections::BTreeMap;

use super::error::LedgerError;
use super::events::{Data, hex};
use super::handle::{DataStanding, Ledger};
use super::settings::LedgerSettings;

impl Ledger {
    /// Compares the party's data with the ledger's: per column, its name and keyed hash. New columns are entered; others must be unchanged
    /// until the owner confirms a refresh ([`Ledger::refresh`]).
    ///
    /// # Errors
    /// [`LedgerError::Halted`] after any failure of the database.
    pub fn present_data(&mut self, columns: &BTreeMap<String, [u8; 32]>) -> Result<&DataStanding, LedgerError> {
        self.alive()?;
        let columns: BTreeMap<String, String> = columns.iter().map(|(name, hash)| (name.clone(), hex(hash))).collect();
        let known = self.state.columns();
        let changed: Vec<&str> =
            columns.iter().filter(|(n, h)| known.get(*n).is_some_and(|k| k != *h)).map(|(n, _)| n.as_str()).collect();
        if !changed.is_empty() {
            self.data = DataStanding::Changed(changed.join(", "));
            tracing::error!("{}", LedgerError::Data(changed.join(", ")));
            return Ok(&self.data);
        }
        let new: BTreeMap<_, _> = columns.into_iter().filter(|(name, _)| !known.contains_key(name)).collect();
        if !new.is_empty() && self.lost.is_none() {
            let body = Data { columns: new }.body();
            let written = self.write(true, |writer| writer.event(Data::KIND, 0, &body));
            self.fail_stop(written)?;
        }
        self.data = DataStanding::Same;
        Ok(&self.data)
    }

    /// Returns the standing of the data when they were last shown.
    pub fn data(&self) -> &DataStanding {
        &self.data
    }

    /// Returns one keyed hash over all columns that the ledger knows; empty where it knows none.
    pub(super) fn data_fingerprint(&self) -> Vec<u8> {
        let columns: BTreeMap<_, _> = self.state.columns().iter().collect();
        if columns.is_empty() {
            return Vec::new();
        }
        let parts = columns.iter().flat_map(|(name, hash)| [name.as_bytes(), hash.as_bytes()]);
        self.secret.mac("conclave data 1", parts).to_vec()
    }

    /// Confirms, for the owner, that the data have been refreshed: earlier jobs stay refused from here on, new ones continue under the same
    /// budget.
    ///
    /// # Errors
    /// As [`Ledger::open_kept`].
    pub fn refresh(settings: &LedgerSettings, reason: &str) -> Result<(), LedgerError> {
        let mut ledger = Self::open_kept(settings)?;
        if let Some(behind) = ledger.behind() {
            return Err(behind);
        }
        ledger.enter_act("refresh", None, &serde_json::json!({ "reason": reason }).to_string())?;
        ledger.close()
    }

    /// Enters an act of the owner: one word, the job that it concerns, and the particulars as a JSON object.
    ///
    /// # Errors
    /// [`LedgerError::Behind`] while the ledger is behind a head; [`LedgerError::Halted`] after any failure of the database.
    pub fn enter_act(&mut self, act: &str, job: Option<&str>, particulars: &str) -> Result<(), LedgerError> {
        self.alive()?;
        if let Some(behind) = self.behind() {
            return Err(behind);
        }
        let job = job.and_then(|id| self.state.job(id)).map_or(0, |job| job.seq);
        let written = self.write(true, |writer| writer.event(act, job, particulars));
        self.fail_stop(written)
    }
}
