//! The coordinator's metrics page. All of it is public by nature: no record reaches the coordinator.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use conclave_ops::private_files::with_suffix;
use conclave_ops::{Page, Source, disk, page};

use crate::driver::DriverContext;
use crate::health::Health;
use crate::registry::{JobFilter, JobRegistry};
use crate::status::{State, Status};

/// Maximum number of running jobs with lines of their own; the counts cover all jobs.
const MAX_JOBS: usize = 50;
/// Maximum number of parties with lines of their own.
const MAX_PARTIES: usize = 100;

/// The coordinator's page.
#[derive(Debug)]
pub(crate) struct CoordinatorPage {
    pub(crate) job_registry: Arc<JobRegistry>,
    pub(crate) context: DriverContext,
    pub(crate) health: Health,
    pub(crate) store: PathBuf,
    pub(crate) draws: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) started: SystemTime,
}

impl Source for CoordinatorPage {
    fn write(&self, page: &mut Page<'_>) -> fmt::Result {
        page.process(self.started, concat!("conclave-coordinator ", env!("CARGO_PKG_VERSION")))?;
        page.process_usage()?;
        let (states, running, waiting) = self.jobs();
        page.gauges("conclave_coordinator_jobs", "Jobs by state, ended ones included", "state", states)?;
        write_running(page, &running)?;
        page.gauges(
            "conclave_coordinator_waiting_since_timestamp_seconds",
            "Start of the longest wait for a party that jobs wait for, Unix time",
            "party",
            waiting,
        )?;
        let mut seen = self.context.party_registry.seen();
        seen.retain(|(party, attached)| *attached || !self.context.party_registry.is_retired(party));
        let attached = seen.iter().filter(|(_, here)| *here).count();
        page.gauge("conclave_coordinator_parties_attached", "Parties whose stream is open", attached as f64)?;
        let here = seen.into_iter().take(MAX_PARTIES).map(|(party, here)| (party, f64::from(u8::from(here))));
        let help = "1 for a party whose stream is open, 0 for one that attached before";
        page.gauges("conclave_coordinator_party_attached", help, "party", here)?;
        self.context.counters.write(page)?;
        self.write_store(page)?;
        let pem = std::fs::read_to_string(&self.certificate).unwrap_or_default();
        if let Ok(end) = conclave_proto::ca::not_after(&pem) {
            let help = "Expiry of the coordinator's certificate, Unix time";
            page.gauge("conclave_coordinator_certificate_expiry_timestamp_seconds", help, page::unix_seconds(end))?;
        }
        Ok(())
    }

    fn health(&self) -> Result<(), String> {
        self.health.now()
    }
}

/// Figures of a running job.
struct Running {
    job: String,
    rounds: f64,
    draws: f64,
    acceptance_rate: f64,
}

type Lines = Vec<(String, f64)>;

impl CoordinatorPage {
    /// Jobs by state, running jobs, and the parties waited for.
    fn jobs(&self) -> (Lines, Vec<Running>, Lines) {
        let mut states: BTreeMap<&'static str, f64> = State::ALL.iter().map(|state| (state.as_str(), 0.0)).collect();
        let (mut running, mut waiting) = (Vec::new(), BTreeMap::<String, f64>::new());
        self.job_registry.for_each(&JobFilter::All, |status: &Status| {
            *states.entry(status.state.as_str()).or_default() += 1.0;
            if status.state.has_ended() {
                return;
            }
            if status.iteration > 0 && running.len() < MAX_JOBS {
                running.push(Running {
                    job: status.id.clone(),
                    rounds: status.iteration as f64,
                    draws: status.draws as f64,
                    acceptance_rate: status.acceptance_rate,
                });
            }
            // A queued job waits for no party yet.
            let waits = status.parties.iter().filter(|party| status.waiting_for.contains(&party.name));
            for (party, since_ms) in waits.filter_map(|party| Some((&party.name, party.waiting_since_ms?))) {
                let since = since_ms as f64 / 1e3;
                if waiting.len() < MAX_PARTIES || waiting.contains_key(party) {
                    let earliest = waiting.entry(party.clone()).or_insert(since);
                    *earliest = earliest.min(since);
                }
            }
        });
        let states = states.into_iter().map(|(state, jobs)| (state.to_owned(), jobs)).collect();
        (states, running, waiting.into_iter().collect())
    }

    fn write_store(&self, page: &mut Page<'_>) -> fmt::Result {
        let store = &self.context.store;
        page.histogram("conclave_coordinator_store_commit_seconds", "Duration of the store's commits", store.commit_seconds())?;
        let failed = f64::from(u8::from(store.check().is_err()));
        page.gauge("conclave_coordinator_store_failed", "1 if the store can no longer be written", failed)?;
        page.gauge("conclave_coordinator_store_bytes", "Size of the store", disk::database_bytes(&self.store) as f64)?;
        let log = disk::file_bytes(&with_suffix(&self.store, "-wal"));
        page.gauge("conclave_coordinator_store_log_bytes", "Size of the store's write-ahead log", log as f64)?;
        let folder = self.store.parent().unwrap_or(&self.store);
        if let Some(free) = disk::free_bytes(folder) {
            page.gauge("conclave_coordinator_disk_free_bytes", "Free space beside the store", free as f64)?;
        }
        let waits = f64::from(u8::from(self.job_registry.waits_for_operator().is_some()));
        page.gauge("conclave_coordinator_draws_failed", "1 if a job waits because its draws can't be written", waits)?;
        match disk::free_bytes(&self.draws) {
            Some(free) => page.gauge("conclave_coordinator_draws_disk_free_bytes", "Free space for draws", free as f64),
            None => Ok(()),
        }
    }
}

fn write_running(page: &mut Page<'_>, running: &[Running]) -> fmt::Result {
    let of = |value: fn(&Running) -> f64| running.iter().map(move |job| (job.job.clone(), value(job)));
    page.gauges("conclave_coordinator_job_rounds", "Rounds of a job that has not ended", "job", of(|j| j.rounds))?;
    page.gauges("conclave_coordinator_job_draws", "Kept draws per chain of a job that has not ended", "job", of(|j| j.draws))?;
    let help = "Acceptance rate of a job in its current phase";
    page.gauges("conclave_coordinator_job_acceptance_rate", help, "job", of(|j| j.acceptance_rate))
}
