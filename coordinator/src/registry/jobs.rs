//! The registry of all jobs of this coordinator: it accepts jobs, starts their drivers and publishes their status.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;
use conclave_ops::Summary;
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::revoked::RevokedList;
use conclave_proto::version::least_protocol;
use conclave_proto::{PROTOCOL, submission};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::queue::Queue;
use super::stored::restored_status;
use super::submissions::Submissions;
use super::view::{Entry, JobFilter, JobView, SignedSubmission};
use crate::bounds::Bounds;
use crate::clock::now_ms;
use crate::driver::{DriverContext, Job, StopRequest};
use crate::live::Live;
use crate::status::{State, Status};
use crate::store::{JobRow, NewJob, StoreError, SubmittedJob};

/// Every job, and the tasks of running ones. Jobs run side by side, each at its own pace; those beyond [`Bounds::running`] wait
/// their turn.
#[derive(Debug)]
pub(crate) struct JobRegistry {
    /// Handle for the drivers' tasks, which must not keep the registry alive.
    pub(super) me: Weak<Self>,
    pub(super) context: DriverContext,
    pub(super) bounds: Bounds,
    /// Folder of all draws.
    draws: PathBuf,
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

    fn new_live(&self, spec: &JobSpec) -> Option<Arc<Live>> {
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

    /// Restores a stored job: an ended job is shown, any other resumes where its log ends, on its original terms.
    fn restore(&self, row: JobRow) {
        let ended = State::parse_ended(&row.state);
        if ended.is_some() {
            let parties: Vec<String> = row.parties.iter().map(|party| party.name.clone()).collect();
            let reason = row.run.fault.as_ref().map_or_else(|| row.state.clone(), ToString::to_string);
            self.context.party_registry.end(&row.job.id, &reason, &parties);
        }
        match (JobSpec::parse(&row.job.spec), ended) {
            (Ok(spec), None) if row.job.protocol >= least_protocol(&spec) => {
                // Encoded by this program, so it decodes; otherwise the parties would refuse the job.
                let submission = submission::decode(&row.job.submission).unwrap_or_default();
                let metadata: Vec<Option<PartyMetadata>> = row.parties.iter().map(|p| p.metadata).collect();
                let job = Job {
                    id: row.job.id.as_str().into(),
                    draws: Job::draws_folder(&self.draws, &row.job.id),
                    analyst: row.job.analyst,
                    submitted_ms: row.job.submitted_ms,
                    live: self.new_live(&spec),
                    spec,
                    spec_toml: row.job.spec,
                    submission,
                };
                let begun = metadata.iter().all(Option::is_some);
                let waits: Vec<Option<i64>> = row.parties.iter().map(|party| party.waiting_since_ms).collect();
                self.enqueue(Arc::new(job), metadata, &waits);
                if begun {
                    // The parties hold it open already.
                    let mut inner = self.lock();
                    if let Some(turn) = inner.queue.withdraw(&row.job.id) {
                        self.start_driver(&mut inner, turn);
                    }
                }
            }
            (spec, ended) => {
                let status = restored_status(row, spec.ok().as_ref(), ended);
                let (_, shown) = watch::channel(status);
                let entry = Entry { status: shown.clone(), source: None, stop: watch::channel(None).0, live: None };
                self.lock().add(shown.borrow().id.clone(), entry);
            }
        }
    }

    /// Follows the status of a job. Analysts see their own jobs.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`], also for another analyst's job.
    pub(crate) fn watch(&self, id: &str, analyst: &str) -> Result<watch::Receiver<Status>, Fault> {
        self.with_entry(id, analyst, |entry| entry.status.clone())
    }

    /// A job's file, byte for byte.
    ///
    /// # Errors
    /// The errors of [`Self::watch`].
    pub(crate) fn source(&self, id: &str, analyst: &str) -> Result<String, Fault> {
        let source = self.with_entry(id, analyst, |entry| entry.source.clone())?;
        self.source_text(id, source).map(|text| text.to_string())
    }

    /// A job as its analyst may see it.
    ///
    /// # Errors
    /// The errors of [`Self::watch`].
    pub(crate) fn view_for(&self, id: &str, analyst: &str) -> Result<JobView, Fault> {
        let view = self.with_entry(id, analyst, JobView::of)?;
        self.with_source(id, view)
    }

    /// Source of a job; that of an ended job is read from the store.
    fn source_text(&self, id: &str, source: Option<Arc<str>>) -> Result<Arc<str>, Fault> {
        if let Some(source) = source {
            return Ok(source);
        }
        let failed = |e: StoreError| Fault::new(ErrorCode::Internal, e.to_string());
        let row = self.context.store.reader(id).and_then(|reader| reader.job()).map_err(failed)?;
        let gone = || Fault::new(ErrorCode::Internal, format!("the store no longer has the file of job {id}"));
        row.map(|row| row.job.spec.into()).ok_or_else(gone)
    }

    fn with_source(&self, id: &str, view: JobView) -> Result<JobView, Fault> {
        let source = Some(view.source).filter(|source| !source.is_empty());
        Ok(JobView { source: self.source_text(id, source)?, ..view })
    }

    fn with_entry<T>(&self, id: &str, analyst: &str, what: impl FnOnce(&Entry) -> T) -> Result<T, Fault> {
        let inner = self.lock();
        let entry = inner.entries.get(id).filter(|entry| entry.status.borrow().analyst == analyst);
        entry.map(what).ok_or_else(|| {
            Fault::new(
                ErrorCode::NotFound,
                format!("{analyst} has no job {id} at this coordinator: `conclave jobs` lists the jobs"),
            )
        })
    }

    /// A job's status, for a party that the job names.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`], also for a job that does not name the party.
    pub(crate) fn status_for_party(&self, id: &str, party: &str) -> Result<Status, Fault> {
        let inner = self.lock();
        let status = inner.entries.get(id).map(|entry| entry.status.borrow().clone());
        status.filter(|status| status.parties.iter().any(|p| p.name == party)).ok_or_else(|| {
            Fault::new(ErrorCode::NotFound, format!("the coordinator has no job {id} that names {party} among its parties"))
        })
    }

    /// An analyst's jobs, in the order of submission.
    pub(crate) fn list(&self, analyst: &str) -> Vec<Status> {
        let inner = self.lock();
        let all = inner.order.iter().filter_map(|id| inner.entries.get(id)).map(|entry| entry.status.borrow().clone());
        all.filter(|status| status.analyst == analyst).collect()
    }

    /// Calls `look` with the status of each selected job, in the order of submission.
    pub(crate) fn for_each(&self, filter: &JobFilter, mut look: impl FnMut(&Status)) {
        let inner = self.lock();
        for entry in inner.order.iter().filter_map(|id| inner.entries.get(id)) {
            let status = entry.status.borrow();
            if filter.includes(&status) {
                look(&status);
            }
        }
    }

    /// Returns the folder of all draws.
    pub(crate) fn draws_folder(&self) -> &Path {
        &self.draws
    }

    /// Returns the reason of the first job that waits for the operator.
    pub(crate) fn waits_for_operator(&self) -> Option<String> {
        self.lock().queue.waits_for_operator()
    }

    /// A job, if the filter selects it.
    pub(crate) fn view(&self, id: &str, filter: &JobFilter) -> Option<JobView> {
        let view = self.lock().entries.get(id).filter(|entry| filter.includes(&entry.status.borrow())).map(JobView::of)?;
        let shown = self
            .with_source(id, view.clone())
            .inspect_err(|fault| tracing::warn!(job = id, %fault, "a job's file can't be read"));
        Some(shown.unwrap_or(view))
    }

    /// Number of job files kept in memory.
    #[cfg(test)]
    pub(crate) fn texts_in_memory(&self) -> usize {
        self.lock().entries.values().filter(|entry| entry.source.is_some()).count()
    }

    /// Durations of the store's latest commits.
    pub(crate) fn commit_times(&self) -> Option<Summary<1>> {
        self.context.store.commit_times()
    }

    /// Returns true once jobs are no longer run.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Cancels a job and waits until it has ended; an ended job is left as it is.
    ///
    /// # Errors
    /// The errors of [`Self::watch`].
    pub(crate) async fn cancel(&self, id: &str, analyst: &str) -> Result<Status, Fault> {
        let mut status = self.watch(id, analyst)?;
        {
            let mut inner = self.lock();
            if let Some(entry) = inner.entries.get(id) {
                // A coordinator that is stopping keeps stopping.
                entry.stop.send_if_modified(|stop| stop.is_none() && stop.replace(StopRequest::Cancel).is_none());
            }
            // A job that waits for its turn ends without it.
            if !inner.closed
                && let Some(turn) = inner.queue.withdraw(id)
            {
                self.start_driver(&mut inner, turn);
            }
        }
        self.changed.notify_one();
        // The driver's end of the channel closes after the last status.
        let ended = status.wait_for(|status| status.state.has_ended()).await.map(|status| status.clone());
        Ok(ended.unwrap_or_else(|_| status.borrow().clone()))
    }

    /// Takes over the operator's list of retired members, and ends the unfinished jobs that need one of them.
    pub(crate) fn retire(&self, list: RevokedList) {
        self.context.party_registry.set_retired(list);
        let mut inner = self.lock();
        let needs = |entry: &Entry| {
            let status = entry.status.borrow();
            let parties: Vec<String> = status.parties.iter().map(|party| party.name.clone()).collect();
            !status.state.has_ended() && self.context.party_registry.retired_member(&status.analyst, &parties).is_some()
        };
        let ended: Vec<String> = inner.entries.iter().filter(|(_, entry)| needs(entry)).map(|(id, _)| id.clone()).collect();
        for id in ended {
            if let Some(entry) = inner.entries.get(&id) {
                entry.stop.send_if_modified(|stop| stop.is_none() && stop.replace(StopRequest::Retire).is_none());
            }
            tracing::warn!(job = id, "the job ends: its analyst or one of its parties has been retired");
            // A job that waits for its turn ends without it.
            if !inner.closed
                && let Some(turn) = inner.queue.withdraw(&id)
            {
                self.start_driver(&mut inner, turn);
            }
        }
        drop(inner);
        self.changed.notify_one();
    }

    /// A job's Zarr store, a folder or a file.
    pub(crate) fn draws_of(&self, id: &str) -> PathBuf {
        Job::current_draws(&self.draws, id)
    }

    /// Stops every driver and leaves its job unfinished in the store.
    pub(crate) async fn close(&self) {
        let mut drivers = {
            let mut inner = self.lock();
            inner.closed = true;
            for entry in inner.entries.values() {
                entry.stop.send_if_modified(|stop| stop.is_none() && stop.replace(StopRequest::Shutdown).is_none());
            }
            std::mem::take(&mut inner.drivers)
        };
        while let Some(joined) = drivers.join_next().await {
            if let Err(error) = joined {
                tracing::error!(%error, "a driver failed");
            }
        }
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
