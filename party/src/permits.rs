//! Ends jobs whose permit has expired: they are neither opened nor charged while it has, and are let go. The owner's consent stays.
//!
//! Both copies of a permit count, that in the file of decisions and that in the ledger. Within a process the clock never runs back, and it
//! is never behind what the ledger has settled: so a clock that is set back later reopens nothing. Should a clock have run ahead instead,
//! the owner confirms the right time (`conclave-party confirm-clock`), and the permits hold again.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use conclave_ops::Clock;
use conclave_vault::consent::{ConsentStore, Standing};
use conclave_vault::ports::Permission;

use crate::error::StartError;
use crate::ledger_views::{approvals, settled_ms};
use crate::owner::permit::PermitError;
use crate::owner::terms::Terms;

/// The permits of approved jobs. Clones share them.
#[derive(Clone)]
pub(crate) struct Permits(Arc<Shared>);

struct Shared {
    ledger: PathBuf,
    /// Held while the file is read.
    store: Mutex<ConsentStore>,
    /// The terms of approved jobs. Never locked while a file is read.
    of_job: Mutex<HashMap<String, Terms>>,
    /// Jobs whose permit has ended, and differences that have been logged: each is reported once.
    reported: Mutex<HashSet<String>>,
    /// The latest time that was seen, Unix time in milliseconds.
    latest_ms: AtomicI64,
    clock: fn() -> i64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is a single assignment, so the content is usable even after a panic of a holder.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Permits {
    /// Reads the permits beside a ledger and in it.
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
            ledger: ledger.to_owned(),
            store: Mutex::new(ConsentStore::open(ledger)?),
            of_job: Mutex::default(),
            reported: Mutex::default(),
            latest_ms: AtomicI64::new(settled_ms(ledger)?),
            clock,
        };
        let permits = Self(Arc::new(shared));
        permits.refresh()?;
        Ok(permits)
    }

    fn now_ms(&self) -> i64 {
        let now = (self.0.clock)();
        self.0.latest_ms.fetch_max(now, Ordering::Relaxed).max(now)
    }

    /// Reads the permits of all approved jobs again. A difference between both copies of a permit is logged.
    ///
    /// # Errors
    /// Fails if the decisions or the ledger can't be read; the known permits stay.
    pub(crate) fn refresh(&self) -> Result<(), StartError> {
        let requests = lock(&self.0.store).requests()?;
        let mut entered = approvals(&self.0.ledger)?;
        let approved = requests.into_iter().filter(|request| request.standing() == Standing::Approved);
        let of_job: HashMap<String, Terms> = approved
            .map(|request| {
                let terms = Terms::new(&request, entered.remove(&request.job));
                (request.job, terms)
            })
            .collect();
        for (job, terms) in &of_job {
            for difference in terms.disagreements() {
                if lock(&self.0.reported).insert(format!("{job} {difference}")) {
                    tracing::error!(%job, "{difference}");
                }
            }
        }
        *lock(&self.0.of_job) = of_job;
        Ok(())
    }

    /// Checks a job's permit. Reads no file: a job that is not known yet has none.
    ///
    /// # Errors
    /// [`PermitError::Expired`], [`PermitError::Unreadable`].
    pub(crate) fn check(&self, job: &str) -> Result<(), PermitError> {
        let now = self.now_ms();
        lock(&self.0.of_job).get(job).map_or(Ok(()), |terms| terms.check(now))
    }

    /// Returns the jobs whose permit has ended since the last call, each with the reason.
    pub(crate) fn lapsed(&self) -> Vec<(String, PermitError)> {
        let now = self.now_ms();
        let over = |(job, terms): (&String, &Terms)| Some((job.clone(), terms.check(now).err()?));
        let ended: Vec<(String, PermitError)> = lock(&self.0.of_job).iter().filter_map(over).collect();
        let mut reported = lock(&self.0.reported);
        ended.into_iter().filter(|(job, _)| reported.insert(job.clone())).collect()
    }
}

/// The vault asks before it opens a job, and before each charge.
impl Permission for Permits {
    fn check(&self, job: &str) -> Result<(), String> {
        // A job that was approved a moment ago may not have been read yet.
        if !lock(&self.0.of_job).contains_key(job) {
            self.refresh().map_err(|e| {
                tracing::error!(%job, "permits can't be read: {e}");
                PermitError::Unread.to_string()
            })?;
        }
        Permits::check(self, job).map_err(|why| why.to_string())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::cell::Cell;
    use std::path::PathBuf;

    use conclave_vault::consent::Decider;
    use conclave_vault::ledger::{JobEntry, Ledger};
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
    fn an_expired_job_is_refused_and_its_consent_stays() {
        let fixture = Fixture::new();
        let permits = Permits::with_clock(&fixture.ledger, now).unwrap();
        let gate: &dyn Permission = &permits;
        NOW.set(fixture.end - 1);
        assert_eq!((permits.check(JOB), permits.lapsed(), permits.check("other")), (Ok(()), Vec::new(), Ok(())));
        assert_eq!((gate.check(JOB), gate.check("other")), (Ok(()), Ok(())));
        NOW.set(fixture.end);
        assert_eq!(permits.check(JOB).unwrap_err().code(), "permit_expired");
        assert!(gate.check(JOB).unwrap_err().starts_with("permit_expired: "));
        let lapsed = permits.lapsed();
        assert_eq!((lapsed.len(), lapsed[0].0.as_str(), lapsed[0].1.code()), (1, JOB, "permit_expired"));
        assert!(permits.lapsed().is_empty(), "it is reported twice");
        assert_eq!(fixture.standing(), Standing::Approved);
        // A clock that is set back reopens nothing in this process.
        NOW.set(fixture.end - 5 * DAY_MS);
        assert!(permits.check(JOB).is_err());
    }

    /// The clock starts no earlier than the ledger's entries, unless the owner has confirmed it since.
    #[test]
    fn a_clock_behind_the_ledger_is_not_believed_until_it_is_confirmed() {
        let fixture = Fixture::new();
        let enter = |act: &str| {
            let mut ledger = Ledger::open(&fixture.ledger, "hospital-a", &budget()).unwrap();
            ledger.enter_act(act, None, "{}").unwrap();
            ledger.close().unwrap();
        };
        enter("note");
        NOW.set(0);
        let started = Permits::with_clock(&fixture.ledger, now).unwrap();
        assert!(started.now_ms() > Clock::Party.now_ms() - 60_000, "{}", started.now_ms());
        // Entries of a clock that ran ahead by years: the permit has ended, until the owner confirms the clock.
        let ahead = "UPDATE events SET time_ms = ?1 WHERE kind = 'note'";
        rusqlite::Connection::open(&fixture.ledger).unwrap().execute(ahead, [fixture.end + 4000 * DAY_MS]).unwrap();
        NOW.set(fixture.end - 1);
        assert!(Permits::with_clock(&fixture.ledger, now).unwrap().check(JOB).is_err());
        let clock = "INSERT INTO events (seq, time_ms, kind, job, body, hash) VALUES (1000, ?1, 'clock', 0, '{}', x'00')";
        rusqlite::Connection::open(&fixture.ledger).unwrap().execute(clock, [fixture.end - 2]).unwrap();
        let confirmed = Permits::with_clock(&fixture.ledger, now).unwrap();
        assert_eq!((confirmed.now_ms(), confirmed.check(JOB)), (fixture.end - 1, Ok(())));
    }

    #[test]
    fn a_permit_that_cannot_be_read_ends_its_job() {
        let fixture = Fixture::new();
        rusqlite::Connection::open(ConsentStore::path_of(&fixture.ledger))
            .unwrap()
            .execute("UPDATE decisions SET permit = '{\"until\":\"later\"}'", [])
            .unwrap();
        let permits = Permits::with_clock(&fixture.ledger, now).unwrap();
        assert_eq!(permits.check(JOB).unwrap_err().code(), "permit_unreadable");
    }

    /// A permit that was removed from the file of decisions, or given a later day there, still ends as the ledger says.
    #[test]
    fn the_permit_in_the_ledger_counts_too() {
        let fixture = Fixture::new();
        let stored = ConsentStore::open(&fixture.ledger).unwrap().request(JOB).unwrap().permit.unwrap();
        let approval = format!("{{\"by\":\"owner\",\"permit\":{stored}}}");
        let mut ledger = Ledger::open(&fixture.ledger, "hospital-a", &budget()).unwrap();
        ledger.open_job(&JobEntry { approval: Some(&approval), ..entry(JOB, budget()) }).unwrap();
        ledger.close().unwrap();
        let decisions = rusqlite::Connection::open(ConsentStore::path_of(&fixture.ledger)).unwrap();
        for changed in ["NULL", "'{\"until\":\"2999-01-01\"}'"] {
            decisions.execute(&format!("UPDATE decisions SET permit = {changed}"), []).unwrap();
            NOW.set(fixture.end - 1);
            let permits = Permits::with_clock(&fixture.ledger, now).unwrap();
            assert_eq!(permits.check(JOB), Ok(()));
            NOW.set(fixture.end);
            assert_eq!(permits.check(JOB).unwrap_err().code(), "permit_expired", "{changed}");
        }
    }

    /// An approval is known before the file is read again: no query slips in between.
    #[test]
    fn a_job_that_was_just_approved_is_checked_at_once() {
        let fixture = Fixture::new();
        let permits = Permits::with_clock(&fixture.ledger, now).unwrap();
        let mut store = ConsentStore::open(&fixture.ledger).unwrap();
        let late = conclave_proto::v1::OpenJob { job: "late".to_owned(), ..open_request(MEAN_TOML) };
        store.ask(&late, &[7; 32]).unwrap();
        store.decide_under("late", Standing::Approved, Decider::Policy, "", Some("{\"until\":\"2020-01-01\"}")).unwrap();
        assert!(Permission::check(&permits, "late").unwrap_err().starts_with("permit_expired: "));
    }
}
