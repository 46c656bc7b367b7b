//! Costs of the blocks of subsampled releases in a ledger.

use std::collections::HashMap;

use conclave_vault::ledger::block_opened::BlockOpened;
use conclave_vault::ledger::error::LedgerError;
use rusqlite::Connection;

/// Returns the reserve of delta that all blocks of a ledger have taken, units of 2^-60. The table of totals has no column for it: its
/// events have it.
pub(super) fn reserve_spent(connection: &Connection) -> Result<u64, LedgerError> {
    let mut select = connection.prepare("SELECT body FROM events WHERE kind = ?1")?;
    let mut events = select.query([BlockOpened::KIND])?;
    let mut spent = 0_u64;
    while let Some(event) = events.next()? {
        spent = spent.saturating_add(opened(event.get_ref(0)?.as_str().unwrap_or_default())?.reserve);
    }
    Ok(spent)
}

/// Returns the cost of a place in each block of a job, units of 2^-48 of mu², by the block's number.
pub(super) fn price_of_places(connection: &Connection, job: u64) -> Result<HashMap<u64, f64>, LedgerError> {
    let mut select = connection.prepare_cached("SELECT seq, body FROM events WHERE job = ?1 AND kind = ?2")?;
    let mut events = select.query((job, BlockOpened::KIND))?;
    let mut prices = HashMap::new();
    while let Some(event) = events.next()? {
        let block = opened(event.get_ref(1)?.as_str().unwrap_or_default())?;
        prices.insert(event.get(0)?, block.units as f64 / block.releases.max(1) as f64);
    }
    Ok(prices)
}

fn opened(body: &str) -> Result<BlockOpened, LedgerError> {
    BlockOpened::parse(body).map_err(|why| LedgerError::Wrong(format!("a block {why}")))
}
