//! Ends jobs whose permit has expired: their queries are refused before they reach the vault, and the consent is withdrawn durably.
//!
//! A withdrawn consent is never given again, so a clock that is set back later reopens nothing. Within a process the clock never runs
//! back, and it starts no earlier than the newest entry of the ledger.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use conclave_ops::Clock;
use conclave_vault::consent::{ConsentStore, Decider, Standing};

use crate::error::StartError;
use crate::ledger_views::latest_entry_ms;
use crate::owner::permit::{PermitError, check_stored};

/// The permits of approved jobs. Clones share them.
#[derive(Clone)]
pub(crate) struct Permits(Arc<Shared>);

struct Shared {
    /// Held while the file is read or written.
    store: Mutex<ConsentStore>,
    /// Permits of approved jobs, as stored. Never locked while a file is read or written.
    of_job: Mutex<HashMap<String, String>>,
    /// The latest time that was seen, Unix time in milliseconds.
    latest_ms: AtomicI64,
    clock: fn() -> i64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is a single assignment or a transaction, so the content is usable even after a panic of a holder.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Permits {
    /// Reads the permits beside a ledger, and withdraws the consent to every job whose permit has expired.
    ///
    /// # Errors
    /// Fails if the decisions or the ledger can't be read.
    pub(crate) fn open(ledger: &Path) -> Result<Self, StartError> {
        Self::with_clock(ledger, || Clock::Party.now_ms())
    }

    /// Reads the permits as [`Permits::open`] does, with a clock that returns Unix time in milliseconds.
    ///
    /// # Errors
    /// As [`Permits::open`].
    pub(crate) fn with_clock(ledger: &Path, clock: fn() -> i64) -> Result<Self, StartError> {
        let shared = Shared {
            store: Mutex::new(ConsentStore::open(ledger)?),
            of_job: Mutex::default(),
            latest_ms: AtomicI64::new(latest_entry_ms(ledger)?),
            clock,
        };
        let permits = Self(Arc::new(shared));
        permits.refresh()?;
        permits.end_expired();
        Ok(permits)
    }

    fn now_ms(&self) -> i64 {
        let now = (self.0.clock)();
        self.0.latest_ms.fetch_max(now, Ordering::Relaxed).max(now)
    }

    /// Reads the permits of all approved jobs again.
    ///
    /// # Errors
    /// Fails if the decisions can't be read; the known permits stay.
    pub(crate) fn refresh(&self) -> Result<(), StartError> {
        let requests = lock(&self.0.store).requests()?;
        let approved = requests.into_iter().filter(|request| request.standing() == Standing::Approved);
        let permits = approved.filter_map(|request| Some((request.job, request.permit?))).collect();
        *lock(&self.0.of_job) = permits;
        Ok(())
    }

    /// Checks a job's permit. Reads no file.
    ///
    /// # Errors
    /// [`PermitError::Expired`], [`PermitError::Unreadable`].
    pub(crate) fn check(&self, job: &str) -> Result<(), PermitError> {
        let now = self.now_ms();
        lock(&self.0.of_job).get(job).map_or(Ok(()), |permit| check_stored(permit, now))
    }

    /// Withdraws the consent to every job whose permit has expired, and returns true if there was one. Blocks: it writes a file.
    pub(crate) fn end_expired(&self) -> bool {
        let now = self.now_ms();
        let over = |(job, permit): (&String, &String)| Some((job.clone(), check_stored(permit, now).err()?));
        let expired: Vec<(String, PermitError)> = lock(&self.0.of_job).iter().filter_map(over).collect();
        for (job, why) in &expired {
            let withdrawn = lock(&self.0.store).decide(job, Standing::Revoked, Decider::Policy, &why.to_string());
            match withdrawn {
                // The permit stays known: queries that are on their way are refused by it.
                Ok(()) => tracing::warn!(%job, code = why.code(), "the consent is withdrawn: {why}"),
                Err(e) if e.is_input() => {}
                Err(e) => {
                    tracing::error!(%job, code = why.code(), "{why}; its queries are refused, but this can't be recorded: {e}")
                }
            }
        }
        !expired.is_empty()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::cell::Cell;
    use std::path::PathBuf;

    use conclave_vault::ledger::Ledger;
    use conclave_vault::testing::{JOB, MEAN_TOML, budget, entry, open_request};
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::owner::permit::Permit;

    thread_local! {
        static NOW: Cell<i64> = const { Cell::new(0) };
    }
    const DAY_MS: i64 = 86_400_000;

    fn now() -> i64 {
        NOW.get()
    }

    struct Fixture {
        _folder: tempfile::TempDir,
        ledger: PathBuf,
        /// The first moment after the permit.
        end: i64,
    }

    impl Fixture {
        /// Approves a job through the next day.
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let ledger = folder.path().join("ledger.sqlite");
            Ledger::init(&ledger, "hospital-a", &budget()).unwrap();
            let today = Clock::Party.now_ms() / DAY_MS;
            NOW.set(today * DAY_MS);
            let day = time::OffsetDateTime::from_unix_timestamp((today + 1) * 86_400).unwrap().date();
            let permit = Permit::new("care", "EC 1", &day.to_string(), now()).unwrap();
            let mut store = ConsentStore::open(&ledger).unwrap();
            let digest: [u8; 32] = Sha256::digest(MEAN_TOML.as_bytes()).into();
            store.ask(&open_request(MEAN_TOML), &digest).unwrap();
            let stored = serde_json::to_string(&permit).unwrap();
            store.decide_under(JOB, Standing::Approved, Decider::Owner, "", Some(&stored)).unwrap();
            Self { _folder: folder, ledger, end: (today + 2) * DAY_MS }
        }

        fn standing(&self) -> Standing {
            ConsentStore::open(&self.ledger).unwrap().standing(JOB).unwrap().unwrap()
        }
    }

    #[test]
    fn an_expired_job_is_refused_and_withdrawn_for_good() {
        let fixture = Fixture::new();
        let permits = Permits::with_clock(&fixture.ledger, now).unwrap();
        NOW.set(fixture.end - 1);
        assert_eq!((permits.check(JOB), permits.end_expired(), permits.check("other")), (Ok(()), false, Ok(())));
        NOW.set(fixture.end);
        assert_eq!(permits.check(JOB).unwrap_err().code(), "permit_expired");
        assert!(permits.end_expired());
        let request = ConsentStore::open(&fixture.ledger).unwrap().request(JOB).unwrap();
        let decided = request.decided.unwrap();
        assert_eq!((decided.standing, decided.decider.as_str()), (Standing::Revoked, "policy"));
        assert!(decided.reason.starts_with("permit_expired: ") && request.permit.unwrap().contains("EC 1"), "{}", decided.reason);
        // A clock that is set back reopens nothing, in this process and in the next.
        NOW.set(fixture.end - 5 * DAY_MS);
        assert!(permits.check(JOB).is_err());
        drop(permits);
        Permits::with_clock(&fixture.ledger, now).unwrap();
        assert_eq!(fixture.standing(), Standing::Revoked);
        let again = ConsentStore::open(&fixture.ledger).unwrap().decide(JOB, Standing::Approved, Decider::Owner, "");
        assert!(again.is_err());
    }

    #[test]
    fn a_start_after_the_end_withdraws_the_consent() {
        let fixture = Fixture::new();
        NOW.set(fixture.end + 3 * DAY_MS);
        Permits::with_clock(&fixture.ledger, now).unwrap();
        assert_eq!(fixture.standing(), Standing::Revoked);
    }

    /// The clock starts no earlier than the ledger's newest entry.
    #[test]
    fn a_clock_behind_the_ledger_is_not_believed() {
        let fixture = Fixture::new();
        let mut ledger = Ledger::open(&fixture.ledger, "hospital-a", &budget()).unwrap();
        ledger.open_job(&entry("other", budget())).unwrap();
        ledger.close().unwrap();
        NOW.set(0);
        let permits = Permits::with_clock(&fixture.ledger, now).unwrap();
        assert!(permits.now_ms() > Clock::Party.now_ms() - 60_000, "{}", permits.now_ms());
    }

    #[test]
    fn a_permit_that_cannot_be_read_ends_its_job() {
        let fixture = Fixture::new();
        rusqlite::Connection::open(ConsentStore::path_of(&fixture.ledger))
            .unwrap()
            .execute("UPDATE decisions SET permit = '{\"until\":\"later\"}'", [])
            .unwrap();
        Permits::with_clock(&fixture.ledger, now).unwrap();
        assert_eq!(fixture.standing(), Standing::Revoked);
    }
}
