//! What a party tells of itself on its page of metrics. Nothing of it depends on a record.
//!
//! The page is for the owner's own monitoring, and is made as if an outsider read it: no time that an answer took, no late
//! reply, no count of records, and nothing that changes while an answer is computed. What the answering thread has to tell is
//! noted between messages, after a reply has left; a page that is asked for reads those notes and looks at nothing else.
//! `docs/reference/metrics.md` has the list, `docs/explanation/side-channels.md` the rule.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use conclave_ops::{Page, Source, disk, page};
use conclave_privacy::accounting;
use conclave_privacy::accounting::{Budget, gaussian_dp};
use conclave_proto::convert::AnswerStatus;

use conclave_vault::ledger::Ledger;

/// Sizes are rounded to steps of this many bytes, so that the size of the ledger's file does not leak the length of a released integer.
const SIZE_STEP: u64 = 1 << 20;
const STATUSES: usize = AnswerStatus::ALL.len();

/// The notes; clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meters(Arc<Notes>);

#[derive(Debug, Default)]
struct Notes {
    attached: AtomicBool,
    attachments: AtomicU64,
    /// By the number of their status.
    replies: [AtomicU64; STATUSES],
    jobs_open: AtomicU64,
    spent_units: AtomicU64,
    limit_units: AtomicU64,
    /// Spent if all other parties of masked jobs work together.
    alone_units: AtomicU64,
    releases: AtomicU64,
    ledger_bytes: AtomicU64,
    /// One more than the free bytes; 0 where they can't be told.
    disk_free: AtomicU64,
    /// Why the ledger answers nothing.
    problem: Mutex<Option<String>>,
}

impl Meters {
    /// The stream to the coordinator has opened or ended.
    pub(crate) fn attached(&self, attached: bool) {
        if self.0.attached.swap(attached, Ordering::Relaxed) != attached && attached {
            self.0.attachments.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A reply of this status has left.
    pub(crate) fn replied(&self, status: Option<u32>) {
        if let Some(count) = status.and_then(|status| self.0.replies.get(status as usize)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What the ledger holds, between two messages.
    pub(crate) fn note(&self, ledger: &Ledger, jobs_open: usize) {
        let (spent, limit) = ledger.units();
        self.0.jobs_open.store(jobs_open as u64, Ordering::Relaxed);
        self.0.spent_units.store(spent, Ordering::Relaxed);
        self.0.limit_units.store(limit, Ordering::Relaxed);
        self.0.alone_units.store(ledger.state().alone().units, Ordering::Relaxed);
        self.0.releases.store(ledger.state().answers(), Ordering::Relaxed);
    }

    /// Sizes on the disk, between two messages.
    pub(crate) fn note_sizes(&self, ledger: &Ledger) {
        let steps = |bytes: u64| bytes.div_ceil(SIZE_STEP) * SIZE_STEP;
        self.0.ledger_bytes.store(steps(disk::database_bytes(ledger.path())), Ordering::Relaxed);
        let folder = ledger.path().parent().unwrap_or(ledger.path());
        let free = disk::free_bytes(folder).map_or(0, |free| free / SIZE_STEP * SIZE_STEP + 1);
        self.0.disk_free.store(free, Ordering::Relaxed);
    }

    /// Why the ledger answers nothing, or that it answers again.
    pub(crate) fn set_problem(&self, problem: Option<String>) {
        *self.0.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    /// Whether the ledger answers.
    pub(crate) fn is_well(&self) -> bool {
        self.problem().is_none()
    }

    fn problem(&self) -> Option<String> {
        self.0.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A party's page.
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
                let help = "When the party's certificate ends, Unix time";
                page.gauge("conclave_party_certificate_expiry_timestamp_seconds", help, page::unix_seconds(end))
            }
            Err(_) => Ok(()),
        }
    }

    /// A party that has lost its coordinator is well: it dials again by itself.
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
        page.counter("conclave_party_reconnects", "Times that the party attached again after it had been attached", again)?;
        let replies = AnswerStatus::ALL.map(|status| (name(status).to_owned(), read(&notes.replies[status.to_wire() as usize])));
        page.counters("conclave_party_replies", "Replies that have left, by status", "status", replies)?;
        page.gauge("conclave_party_jobs_open", "Jobs that are open", read(&notes.jobs_open) as f64)
    }

    fn write_budget(&self, page: &mut Page<'_>) -> fmt::Result {
        let notes = &self.meters.0;
        let (spent, limit) = (notes.spent_units.load(Ordering::Relaxed), notes.limit_units.load(Ordering::Relaxed));
        let epsilon_of = |spent: u64| match spent {
            0 => 0.0,
            spent => gaussian_dp::epsilon(accounting::mu_squared(spent).sqrt(), self.budget.delta),
        };
        let epsilon = epsilon_of(spent);
        page.gauge("conclave_party_epsilon_spent", "Epsilon of all that has left, at the budget's delta", epsilon)?;
        let alone = epsilon_of(notes.alone_units.load(Ordering::Relaxed));
        let help = "The same if all other parties of masked jobs work together";
        page.gauge("conclave_party_epsilon_spent_if_all_collude", help, alone)?;
        page.gauge("conclave_party_epsilon_budget", "Epsilon of the data's budget", self.budget.epsilon)?;
        page.gauge(
            "conclave_party_delta",
            "Delta of the data's budget, what is set aside for blocks included",
            self.budget.promised_delta(),
        )?;
        let share = if limit == 0 { 0.0 } else { spent as f64 / limit as f64 };
        page.gauge("conclave_party_budget_spent_ratio", "Share of the budget's mu squared that is spent, 0 to 1", share)?;
        let releases = notes.releases.load(Ordering::Relaxed);
        page.gauge("conclave_party_releases", "Numbers in the ledger that have left, over all jobs", releases as f64)
    }

    fn write_disk(&self, page: &mut Page<'_>) -> fmt::Result {
        let notes = &self.meters.0;
        let answers = f64::from(u8::from(self.meters.problem().is_none()));
        page.gauge("conclave_party_ledger_answers", "1 while the ledger lets the party answer", answers)?;
        let bytes = notes.ledger_bytes.load(Ordering::Relaxed);
        page.gauge("conclave_party_ledger_bytes", "Size of the ledger, in whole MiB", bytes as f64)?;
        match notes.disk_free.load(Ordering::Relaxed).checked_sub(1) {
            Some(free) => page.gauge("conclave_party_disk_free_bytes", "Free space beside the ledger, in whole MiB", free as f64),
            None => Ok(()),
        }
    }
}

/// A status as the page names it.
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
