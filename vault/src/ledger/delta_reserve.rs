//! Manages the reserve of delta that blocks of subsampled releases take: set aside when the ledger is made, or added by its owner later.
//!
//! The budget of a ledger is never divided again: charges were granted up to its `mu²`, which belongs to its delta. So a later reserve is
//! added on top, and the guarantee is weaker by it from then on, for all earlier and later releases.

use conclave_privacy::accounting::RESERVE_LOG2;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::error::LedgerError;
use super::events::{Genesis, event};
use super::wrong::Wrong;

/// Event: the owner promises a larger delta, for blocks of subsampled releases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeltaReserve {
    /// Addition to the reserve, units of 2^-60.
    pub(super) added: u64,
    /// Reason, in the owner's words.
    pub(super) reason: String,
}
event!(DeltaReserve, "delta-reserve");

/// Converts a part of delta to units of 2^-60, rounded down; `None` outside (0, 1) or below a unit.
pub fn reserve_units(delta: f64) -> Option<u64> {
    let units = delta * (1_u64 << RESERVE_LOG2) as f64;
    (1.0..(1_u64 << RESERVE_LOG2) as f64).contains(&units).then_some(units as u64)
}

/// Rounds a delta as it is written and read: without the last digits that adding up its parts leaves.
pub fn written(delta: f64) -> f64 {
    format!("{delta:.9e}").parse().unwrap_or(delta)
}

/// Converts a reserve to the delta that is written.
pub fn reserve(units: u64) -> f64 {
    // Whole units: 1e-7 has eleven digits of them.
    let delta = units as f64 / (1_u64 << RESERVE_LOG2) as f64;
    format!("{delta:.8e}").parse().unwrap_or(delta)
}

impl Genesis {
    /// Adds the owner's later promise.
    pub(super) fn add_reserve(&mut self, more: &DeltaReserve) -> Result<(), Wrong> {
        let reserve = self.reserve.checked_add(more.added).filter(|_| more.added > 0).ok_or(Wrong::Reserve)?;
        let budget = self.budget()?.reserving(reserve);
        if budget.promised_delta() >= 1.0 {
            return Err(Wrong::Reserve);
        }
        self.reserve = reserve;
        Ok(())
    }
}

/// Adds the promises in the table of events, for readers of no more of a ledger.
pub(super) fn added(connection: &Connection, genesis: &mut Genesis) -> Result<(), LedgerError> {
    let mut select = connection.prepare("SELECT body FROM events WHERE kind = ?1 ORDER BY seq")?;
    let mut events = select.query([DeltaReserve::KIND])?;
    while let Some(event) = events.next()? {
        let more = DeltaReserve::parse(event.get_ref(0)?.as_str().unwrap_or_default());
        more.and_then(|more| genesis.add_reserve(&more))
            .map_err(|why| LedgerError::Wrong(format!("a reserve of delta {why}")))?;
    }
    Ok(())
}
