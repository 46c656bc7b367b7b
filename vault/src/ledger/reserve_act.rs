//! Enters the owner's promise of a larger delta, for blocks of subsampled releases.

use conclave_privacy::accounting::Budget;

use super::delta_reserve::DeltaReserve;
use super::error::LedgerError;
use super::handle::Ledger;
use super::settings::LedgerSettings;

impl Ledger {
    /// Enters the owner's promise of a larger delta from here on, all of it for blocks of subsampled releases. Returns the new budget.
    ///
    /// # Errors
    /// As [`Ledger::open_kept`]; [`LedgerError::Wrong`] where no such delta is possible.
    pub fn add_reserve(settings: &LedgerSettings, added: u64, reason: &str) -> Result<Budget, LedgerError> {
        let mut ledger = Self::open_kept(settings)?;
        if let Some(behind) = ledger.behind() {
            return Err(behind);
        }
        let more = DeltaReserve { added, reason: reason.to_owned() };
        let mut after =
            ledger.state.genesis().cloned().ok_or_else(|| LedgerError::corrupt(&settings.ledger, "it has no first entry"))?;
        after.add_reserve(&more).map_err(|why| LedgerError::Wrong(format!("this {why}")))?;
        ledger.write(true, |writer| writer.event(DeltaReserve::KIND, 0, &more.body()))?;
        ledger.close()?;
        after.budget().map_err(|why| LedgerError::Wrong(why.to_string()))
    }
}
