//! The registry of all jobs of this coordinator: it accepts jobs, starts their drivers and publishes their status.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use conclave_common::job::JobSpec;
use conclave_ops::Summary;
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::{PROTOCOL, submission};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::queue::Queue;
use super::submissions::Submissions;
use super::view::{Entry, SignedSubmission};
use crate::bounds::Bounds;
use crate::clock::now_ms;
use crate::driver::{DriverContext, Job};
use crate::live::Live;
use crate::store::{JobRow, NewJob, SubmittedJob};

/// Every job, and the tasks of running ones. Jobs run side by side, each at its own pace; those beyond [`Bounds::running`] wait
/// their turn.
#[derive(Debug)]
pub(crate) struct JobRegistry {
    /// Handle for the drivers' tasks, which must not keep the registry alive.
    pub(super) me: Weak<Self>,
    pub(super) context: DriverContext,
    pub(super) bounds: Bounds,
    /// Folder of all draws.
    pub(super) draws: PathBuf,
    /// Keeps the chains of running jobs for viewers.
    watchable: bool,
    /// Notified when the order of the queue may have changed.
    pub(super) changed: Arc<Notify>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
pub(super) struct Inner {
    pub(super) entries: BTreeMap<String, Entry>,
    /// Ids in the order of submission.
    pub(super) order: Vec<String>,
    pub(super) queue: Queue,
    pub(super) submissions: Submissions,
    pub(super) drivers: JoinSet<()>,
    pub(super) closed: bool,
}

/// Maximum number of ended jobs whose chains are kept.
const SHOWN: usize = 16;

impl JobRegistry {
    /// Opens a registry of the stored jobs and resumes those that have not ended. `watchable` keeps their chains for viewers.
    pub(crate) fn open(context: DriverContext, draws: PathBuf, rows: Vec<JobRow>, watchable: bool, bounds: Bounds) -> Arc<Self> {
        let registry = Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            context,
            bounds,
            draws,
            watchable,
            changed: Arc::default(),
            inner: Mutex::default(),
        });
        for row in rows {
            registry.restore(row);
        }
        registry.start_ready_jobs();
        registry.spawn_scheduler();
        registry
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        // Entries are added whole, so the registry is readable even if a holder panicked.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts a job and starts it.
    ///
    /// # Errors
    /// An invalid job file, parties that never attached, too many jobs of one analyst: nothing is spent and nothing kept then.
    pub(crate) async fn submit(&self, spec_toml: String, analyst: &str, signed: SignedSubmission) -> Result<String, Fault> {
        let spec = JobSpec::parse(&spec_toml).map_err(|e| Fault::new(ErrorCode::InvalidInput, e.to_string()))?;
        spec.check_new().map_err(|e| Fault::new(ErrorCode::InvalidInput, e.to_string()))?;
        self.require_known(&spec.parties)?;
        if let Some(member) = self.context.party_registry.retired_member(analyst, &spec.parties) {
            let message = format!("the coordinator's operator has retired {member}: leave it out, or ask the operator");
            return Err(Fault::new(ErrorCode::Policy, message));
        }
        let SignedSubmission { job: id, submission } = signed;
        if let Some(known) = self.lock().entries.get(&id) {
            // The same submission again: its reply was lost on the way.
            return if known.status.borrow().analyst == analyst { Ok(id) } else { Err(id_conflict(&id)) };
        }
        let _pending = self.admit(analyst)?;
        let job = Job {
            id: id.as_str().into(),
            analyst: analyst.to_owned(),
            draws: Job::draws_folder(&self.draws, &id),
            submitted_ms: now_ms(),
            live: self.new_live(&spec),
            spec,
            spec_toml,
            submission,
        };
        let store = &self.context.store;
        let submitted = SubmittedJob {
            id: id.clone(),
            name: job.spec.name.clone(),
            analyst: job.analyst.clone(),
            spec: job.spec_toml.clone(),
            submitted_ms: job.submitted_ms,
            submission: submission::encode(&job.submission),
            protocol: PROTOCOL,
        };
        store.insert_job(NewJob { job: submitted, parties: job.spec.parties.clone() });
        store.barrier().await.map_err(|e| Fault::new(ErrorCode::Internal, e.to_string()))?;
        let metadata = vec![None; job.spec.parties.len()];
        self.enqueue(Arc::new(job), metadata, &[]);
        self.start_ready_jobs();
        Ok(id)
    }

    pub(super) fn new_live(&self, spec: &JobSpec) -> Option<Arc<Live>> {
        self.watchable.then(|| Arc::new(Live::new(spec.sampler.chains as usize, spec.parties.len())))
    }

    fn require_known(&self, parties: &[String]) -> Result<(), Fault> {
        let (unknown, known) = self.context.party_registry.unknown(parties);
        let Some(first) = unknown.first() else { return Ok(()) };
        let known = match known.is_empty() {
            true => "none has attached yet".to_owned(),
            false => format!("known are {}", known.join(", ")),
        };
        let message = format!(
            "parties: `{first}` has never attached to this coordinator ({known}): correct the name, or have its owner \
             start conclave-party once"
        );
        Err(Fault::new(ErrorCode::InvalidInput, message).at_party(first.clone()))
    }

    /// Durations of the store's latest commits.
    pub(crate) fn commit_times(&self) -> Option<Summary<1>> {
        self.context.store.commit_times()
    }

    /// Returns true once jobs are no longer run.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }
}

impl Drop for JobRegistry {
    fn drop(&mut self) {
        self.changed.notify_one();
    }
}

fn id_conflict(id: &str) -> Fault {
    Fault::new(ErrorCode::Conflict, format!("job {id} belongs to another analyst"))
}

impl Inner {
    pub(super) fn add(&mut self, id: String, entry: Entry) {
        if entry.live.is_some() {
            let Self { entries, order, .. } = self;
            let over = |id: &&String| entries.get(*id).is_some_and(|e| e.live.is_some() && e.status.borrow().state.has_ended());
            let old: Vec<String> = order.iter().rev().filter(over).skip(SHOWN).cloned().collect();
            old.iter().for_each(|id| entries.get_mut(id).into_iter().for_each(|entry| entry.live = None));
        }
        self.order.push(id.clone());
        self.entries.insert(id, entry);
    }
}
