//! Inspects a ledger for its owner: reads and verifies every entry, and compares its head. Takes no lock and writes nothing, so
//! it can be used while the party runs.

use std::time::Duration;

use conclave_vault::clock::now_ms;
use conclave_vault::ledger::behind::holds;
use conclave_vault::ledger::block_opened::BlockOpened;
use conclave_vault::ledger::entry::Entry;
use conclave_vault::ledger::error::LedgerError;
use conclave_vault::ledger::secret::Secret;
use conclave_vault::ledger::settings::LedgerSettings;
use conclave_vault::ledger::{head, schema, verify};

/// Period over which a rate is measured.
pub(crate) const RECENTLY: Duration = Duration::from_secs(7 * 86_400);

/// The result for a ledger whose entries are all valid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Inspection {
    pub entries: u64,
    /// Number of genuine heads in the head file.
    pub heads: usize,
    /// If a head is missing from the ledger: its number and that of the ledger's last entry. The ledger is then locked.
    pub behind: Option<(u64, u64)>,
    /// Total number of charged releases.
    pub releases: u64,
    /// Releases charged within the last [`RECENTLY`].
    pub recent: u64,
    /// Mean price of the recent releases, or of all if none is recent, in mu² each; 0 before the first.
    pub price: f64,
    /// The same at the noise floor given to [`inspect`].
    pub price_at_floor: f64,
}

/// Verifies a ledger without its lock. `floor` is the minimum noise of the owner's policy, in log-likelihood units.
///
/// # Errors
/// The errors of [`conclave_vault::ledger::Ledger::open_kept`], except those of the lock.
pub(crate) fn inspect(settings: &LedgerSettings, floor: f64) -> Result<Inspection, LedgerError> {
    let path = &settings.ledger;
    let mut connection = schema::connect_read_only(path)?;
    let secret = Secret::load(&settings.secret)?;
    // Read before the entries: a running party continues to write, and its head file is never ahead of its ledger.
    let heads = head::read(&settings.head_file, &secret, &settings.party)?;
    let connection = connection.transaction()?;
    let now = now_ms();
    let since = now.saturating_sub(i64::try_from(RECENTLY.as_millis()).unwrap_or(i64::MAX));
    let (mut all, mut recent) = (Prices::default(), Prices::default());
    let state = verify::read(&connection, path, &verify::Layout::PRESENT, |entry, _| {
        if let Entry::Charge(charge) = entry {
            let at_floor = charge.charge as f64 * (charge.s as f64 * conclave_privacy::mechanism::STEP / floor).powi(2);
            all.add(charge.charge as f64, at_floor);
            if charge.time_ms >= since {
                recent.add(charge.charge as f64, at_floor);
            }
        }
        if let Entry::Event(event) = entry
            && event.kind == BlockOpened::KIND
            && let Ok(block) = BlockOpened::parse(event.body)
        {
            // The cost of its releases, but not a release itself. Its noise does not depend on the floor.
            all.pay(block.units as f64);
            if event.time_ms >= since {
                recent.pay(block.units as f64);
            }
        }
        Ok(())
    })?;
    settings.check_genesis(path, state.genesis())?;
    settings.check(path, &state, &secret)?;
    let mut behind = None;
    for head in &heads {
        if !holds(&connection, &state, head)? {
            behind = behind.max(Some((head.seq, state.seq())));
        }
    }
    let priced = if recent.count > 0 { recent } else { all };
    let (price, price_at_floor) = priced.means();
    Ok(Inspection {
        entries: state.seq(),
        heads: heads.len(),
        behind,
        releases: all.count,
        recent: recent.count,
        price,
        price_at_floor,
    })
}

#[derive(Debug, Clone, Copy, Default)]
struct Prices {
    count: u64,
    units: f64,
    at_floor: f64,
}

impl Prices {
    fn add(&mut self, units: f64, at_floor: f64) {
        self.count += 1;
        self.units += units;
        self.at_floor += at_floor;
    }

    fn pay(&mut self, units: f64) {
        self.units += units;
        self.at_floor += units;
    }

    fn means(&self) -> (f64, f64) {
        let each = conclave_privacy::accounting::mu_squared(1) / self.count.max(1) as f64;
        (self.units * each, self.at_floor * each)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conclave_vault::ledger::Ledger;
    use conclave_vault::testing::{JOB, budget, entry, key};

    #[test]
    fn a_ledger_in_use_is_verified_and_an_older_copy_is_found_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.sqlite");
        let settings = LedgerSettings::beside(&path, "a", &budget());
        assert!(matches!(inspect(&settings, 1.0), Err(LedgerError::Missing(_))));
        settings.init().unwrap();
        let fresh = inspect(&settings, 1.0).unwrap();
        assert_eq!((fresh.entries, fresh.releases, fresh.behind, fresh.price), (1, 0, None, 0.0));
        let older = folder.path().join("older");
        std::fs::copy(&path, &older).unwrap();

        let mut ledger = Ledger::open_kept(&settings).unwrap();
        ledger.open_job(&entry(JOB, budget())).unwrap();
        ledger.charge(JOB, 0, &[key(0, 1, 1 << 20), key(1, 2, 1 << 20)]).unwrap();
        let held = inspect(&settings, 2.0).unwrap();
        assert_eq!((held.releases, held.recent, held.behind), (2, 2, None));
        assert_eq!(held.entries, ledger.state().seq());
        // The charge was for noise of 1, and twice the noise costs a quarter.
        assert!(held.price > 0.0 && (held.price_at_floor / held.price - 0.25).abs() < 1e-9, "{held:?}");
        let last = ledger.state().seq();
        ledger.close().unwrap();

        for suffix in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(folder.path().join(format!("ledger.sqlite{suffix}")));
        }
        std::fs::copy(&older, &path).unwrap();
        let (lost, at) = inspect(&settings, 1.0).unwrap().behind.unwrap();
        assert!(lost > last && at == 1, "{lost} {at}");
        let before = std::fs::read(&path).unwrap();
        inspect(&settings, 1.0).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), before, "nothing is written");
    }
}
