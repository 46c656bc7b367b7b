//! Jobs as analysts, parties and viewers look them up.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use conclave_proto::error::{ErrorCode, Fault};
use tokio::sync::watch;

use super::jobs::JobRegistry;
use super::view::{Entry, JobFilter, JobView};
use crate::driver::Job;
use crate::status::Status;
use crate::store::StoreError;

impl JobRegistry {
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

    /// Returns the reason of the first job that waits for the operator.
    pub(crate) fn waits_for_operator(&self) -> Option<String> {
        self.lock().queue.waits_for_operator()
    }

    /// Returns the folder of all draws.
    pub(crate) fn draws_folder(&self) -> &Path {
        &self.draws
    }

    /// A job's Zarr store, a folder or a file.
    pub(crate) fn draws_of(&self, id: &str) -> PathBuf {
        Job::current_draws(&self.draws, id)
    }
}
