//! Metrics of a party. None of them depends on a record.
//!
//! The page is for the owner's own monitoring, but is designed as if an outsider read it: it has no answer times, no late
//! replies, no record counts, and nothing that changes while an answer is computed. The answering thread notes its figures
//! between messages, after a reply was sent; a request for the page reads those notes and nothing else.
//! `docs/reference/metrics.md` lists the metrics, `docs/explanation/side-channels.md` states the rule.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use conclave_ops::private_files::with_suffix;
use conclave_ops::{Page, Source, disk, page};
use conclave_privacy::accounting;
use conclave_privacy::accounting::{Budget, gaussian_dp};
use conclave_proto::convert::AnswerStatus;

use conclave_vault::ledger::Ledger;

/// Rounding step of sizes in bytes: the size of the ledger's file must not reveal the length of a released integer.
const SIZE_STEP: u64 = 1 << 20;
const STATUSES: usize = AnswerStatus::ALL.len();

/// Current figures; clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meters(Arc<Notes>);

#[derive(Debug, Default)]
struct Notes {
    attached: AtomicBool,
    attachments: AtomicU64,
    /// Counts by status number.
    replies: [AtomicU64; STATUSES],
    jobs_open: AtomicU64,
    spent_units: AtomicU64,
    limit_units: AtomicU64,
    /// Spent units under full collusion of the other parties of masked jobs.
    alone_units: AtomicU64,
    releases: AtomicU64,
    ledger_bytes: AtomicU64,
    ledger_log_bytes: AtomicU64,
    /// Free bytes plus one; 0 if unknown.
    disk_free: AtomicU64,
    /// Reason why the ledger answers nothing.
    problem: Mutex<Option<String>>,
    /// Obstacle to the ledger's next write.
    obstacle: Mutex<Option<String>>,
}

impl Meters {
    /// Records that the stream to the coordinator has opened or ended.
    pub(crate) fn attached(&self, attached: bool) {
        if self.0.attached.swap(attached, Ordering::Relaxed) != attached && attached {
            self.0.attachments.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a sent reply by its status.
    pub(crate) fn replied(&self, status: Option<u32>) {
        if let Some(count) = status.and_then(|status| self.0.replies.get(status as usize)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records the ledger's totals, between two messages.
    pub(crate) fn note(&self, ledger: &Ledger, jobs_open: usize) {
        let (spent, limit) = ledger.units();
        self.0.jobs_open.store(jobs_open as u64, Ordering::Relaxed);
        self.0.spent_units.store(spent, Ordering::Relaxed);
        self.0.limit_units.store(limit, Ordering::Relaxed);
        self.0.alone_units.store(ledger.state().alone().units, Ordering::Relaxed);
        self.0.releases.store(ledger.state().answers(), Ordering::Relaxed);
    }

    /// Records sizes on the disk, between two messages.
    pub(crate) fn note_sizes(&self, ledger: &Ledger) {
        let steps = |bytes: u64| bytes.div_ceil(SIZE_STEP) * SIZE_STEP;
        self.0.ledger_bytes.store(steps(disk::database_bytes(ledger.path())), Ordering::Relaxed);
        let log = disk::file_bytes(&with_suffix(ledger.path(), "-wal"));
        self.0.ledger_log_bytes.store(steps(log), Ordering::Relaxed);
        let folder = ledger.path().parent().unwrap_or(ledger.path());
        let free = disk::free_bytes(folder).map_or(0, |free| free / SIZE_STEP * SIZE_STEP + 1);
        self.0.disk_free.store(free, Ordering::Relaxed);
    }

    /// Records why the ledger answers nothing, or clears the problem.
    pub(crate) fn set_problem(&self, problem: Option<String>) {
        *self.0.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    /// Records an obstacle to the ledger's next write, or its end.
    pub(crate) fn set_obstacle(&self, obstacle: Option<String>) {
        *self.0.obstacle.lock().unwrap_or_else(PoisonError::into_inner) = obstacle;
    }

    /// Returns true if the ledger answers.
    pub(crate) fn is_well(&self) -> bool {
        self.problem().is_none()
    }

    fn problem(&self) -> Option<String> {
        let noted = |notes: &Mutex<Option<String>>| notes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        noted(&self.0.problem).or_else(|| noted(&self.0.obstacle))
    }
}

/// The metrics page of a party.
#[derive(Debug)]
pub(crate) struct PartyPage {
    pub(crate) meters: Meters,
    pub(crate) budget: Budget,
    pub(crate) certificate: PathBuf,
    pub(crate) started: SystemTime,
}

impl Source for PartyPage {
    fn write(&self, page: &mut Page<'_>) -> fmt::Result {
        page.process(self.started, concat!("conclave-party ", env!("CARGO_PKG_VERSION")))?;
        self.write_link(page)?;
        self.write_budget(page)?;
        self.write_disk(page)?;
        let pem = std::fs::read_to_string(&self.certificate).unwrap_or_default();
        match conclave_proto::ca::not_after(&pem) {
            Ok(end) => {
                let help = "End of the party's certificate, Unix time";
                page.gauge("conclave_party_certificate_expiry_timestamp_seconds", help, page::unix_seconds(end))
            }
            Err(_) => Ok(()),
        }
    }

    /// Reports the ledger's problem, if any. A party without its coordinator is healthy: it redials by itself.
    fn health(&self) -> Result<(), String> {
        self.meters.problem().map_or(Ok(()), Err)
    }
}

impl PartyPage {
    fn write_link(&self, page: &mut Page<'_>) -> fmt::Result {
        let notes = &self.meters.0;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let attached = f64::from(u8::from(notes.attached.load(Ordering::Relaxed)));
        page.gauge("conclave_party_attached", "1 while the coordinator holds this party's stream", attached)?;
        let again = read(&notes.attachments).saturating_sub(1);
        page.counter("conclave_party_reconnects", "Number of times the party attached again after an earlier attachment", again)?;
        let replies = AnswerStatus::ALL.map(|status| (name(status).to_owned(), read(&notes.replies[status.to_wire() as usize])));
        page.counters("conclave_party_replies", "Replies sent, by status", "status", replies)?;
        page.gauge("conclave_party_jobs_open", "Open jobs", read(&notes.jobs_open) as f64)
    }

    fn write_budget(&self, page: &mut Page<'_>) -> fmt::Result {
        let notes = &self.meters.0;
        let (spent, limit) = (notes.spent_units.load(Ordering::Relaxed), notes.limit_units.load(Ordering::Relaxed));
        let epsilon_of = |spent: u64| match spent {
            0 => 0.0,
            spent => gaussian_dp::epsilon(accounting::mu_squared(spent).sqrt(), self.budget.delta),
        };
        let epsilon = epsilon_of(spent);
        page.gauge("conclave_party_epsilon_spent", "Epsilon of all releases, at the budget's delta", epsilon)?;
        let alone = epsilon_of(notes.alone_units.load(Ordering::Relaxed));
        let help = "Epsilon of all releases if all other parties of masked jobs collude";
        page.gauge("conclave_party_epsilon_spent_if_all_collude", help, alone)?;
        page.gauge("conclave_party_epsilon_budget", "Epsilon of the data's budget", self.budget.epsilon)?;
        page.gauge(
            "conclave_party_delta",
            "Delta of the data's budget, the reserve for blocks included",
            self.budget.promised_delta(),
        )?;
        let share = if limit == 0 { 0.0 } else { spent as f64 / limit as f64 };
        page.gauge("conclave_party_budget_spent_ratio", "Share of the budget's mu squared that is spent, 0 to 1", share)?;
        let releases = notes.releases.load(Ordering::Relaxed);
        page.gauge("conclave_party_releases", "Released numbers in the ledger, over all jobs", releases as f64)
    }

    fn write_disk(&self, page: &mut Page<'_>) -> fmt::Result {
        let notes = &self.meters.0;
        let answers = f64::from(u8::from(self.meters.problem().is_none()));
        page.gauge("conclave_party_ledger_answers", "1 while the ledger lets the party answer", answers)?;
        let bytes = notes.ledger_bytes.load(Ordering::Relaxed);
        page.gauge("conclave_party_ledger_bytes", "Size of the ledger, in whole MiB", bytes as f64)?;
        let log = notes.ledger_log_bytes.load(Ordering::Relaxed);
        page.gauge("conclave_party_ledger_log_bytes", "Size of the ledger's write-ahead log, in whole MiB", log as f64)?;
        match notes.disk_free.load(Ordering::Relaxed).checked_sub(1) {
            Some(free) => page.gauge("conclave_party_disk_free_bytes", "Free space beside the ledger, in whole MiB", free as f64),
            None => Ok(()),
        }
    }
}

/// Returns the name of a status on the page.
fn name(status: AnswerStatus) -> &'static str {
    match status {
        AnswerStatus::Released => "released",
        AnswerStatus::Budget => "budget",
        AnswerStatus::Invalid => "invalid",
        AnswerStatus::Conflict => "conflict",
        AnswerStatus::Halted => "halted",
        AnswerStatus::UnknownJob => "unknown-job",
        AnswerStatus::Policy => "policy",
        AnswerStatus::Attempt => "attempt",
        AnswerStatus::Behind => "behind",
    }
}
