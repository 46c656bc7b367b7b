//! The analyst: submits jobs, cancels them, and remembers their reported states.

use conclave_coordinator::simulated::SimulatedCoordinator;
use conclave_proto::error::Fault;
use conclave_proto::v1::{JobStatus, OpenJob};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::fixture::{ANALYST, Fixture};

/// One job of a list.
pub(crate) struct Job {
    pub(crate) kind: usize,
    pub(crate) signed: OpenJob,
    /// True where the job is to run.
    pub(crate) wanted: bool,
    /// True once the coordinator has confirmed the job.
    pub(crate) accepted: bool,
    submitting: Option<JoinHandle<Result<String, Fault>>>,
    cancelling: Option<JoinHandle<Result<JobStatus, Fault>>>,
    pub(crate) cancelled: bool,
    /// Final state, as the analyst saw it.
    pub(crate) ended: Option<JobStatus>,
}

pub(crate) struct Jobs(pub Vec<Job>);

impl Jobs {
    pub(crate) fn new(fixture: &Fixture, kinds: &[usize]) -> Self {
        let job = |(at, kind): (usize, &usize)| Job {
            kind: *kind,
            signed: fixture.kinds[*kind].signed[at].clone(),
            wanted: at == 0,
            accepted: false,
            submitting: None,
            cancelling: None,
            cancelled: false,
            ended: None,
        };
        Self(kinds.iter().enumerate().map(job).collect())
    }

    pub(crate) fn number(&self, id: &str) -> Option<usize> {
        self.0.iter().position(|job| job.signed.job == id)
    }

    /// Returns true once every job has ended.
    pub(crate) fn all_ended(&self) -> bool {
        self.0.iter().all(|job| job.ended.is_some())
    }

    /// Drops pending calls: the coordinator that would have answered them is gone.
    pub(crate) fn forget_calls(&mut self) {
        for job in &mut self.0 {
            (job.submitting, job.cancelling) = (None, None);
        }
    }

    pub(crate) fn cancel(&mut self, at: usize, runtime: &Runtime, coordinator: &SimulatedCoordinator) {
        let at = at % self.0.len();
        let job = &mut self.0[at];
        if job.accepted && job.cancelling.is_none() {
            job.cancelling = Some(runtime.spawn(coordinator.cancel(job.signed.job.clone(), ANALYST.into())));
        }
    }

    /// Submits wanted jobs that are not accepted yet, and collects replies.
    pub(crate) fn look(&mut self, runtime: &Runtime, coordinator: &SimulatedCoordinator) {
        for job in &mut self.0 {
            job.submit(runtime, coordinator);
            if let Some(call) = job.cancelling.take_if(|call| call.is_finished()) {
                let status = runtime.block_on(call).expect("no panic").expect("a job that was accepted");
                job.cancelled = true;
                job.note(status);
            }
            if job.accepted {
                let status = coordinator.status(&job.signed.job, ANALYST).expect("a job that was accepted");
                job.note(status);
            }
        }
    }
}

impl Job {
    fn submit(&mut self, runtime: &Runtime, coordinator: &SimulatedCoordinator) {
        if let Some(call) = self.submitting.take_if(|call| call.is_finished()) {
            // The coordinator refuses it until every party has attached once; then it is submitted again.
            if let Ok(id) = runtime.block_on(call).expect("no panic") {
                assert_eq!(id, self.signed.job);
                self.accepted = true;
            }
        }
        if self.wanted && !self.accepted && self.submitting.is_none() {
            let OpenJob { spec_toml, analyst, submission, .. } = self.signed.clone();
            let submission = submission.expect("a signature");
            self.submitting = Some(runtime.spawn(coordinator.submit(spec_toml, analyst, submission)));
        }
    }

    fn note(&mut self, status: JobStatus) {
        if !matches!(status.state.as_str(), "finished" | "cancelled" | "failed") {
            assert!(self.ended.is_none(), "a job that had ended is {} again", status.state);
            return;
        }
        match &self.ended {
            None => self.ended = Some(status),
            Some(before) => {
                let what = |s: &JobStatus| (s.state.clone(), s.draws, s.error.clone(), s.result_json.clone());
                assert_eq!(what(before), what(&status), "an ended job has changed");
            }
        }
    }
}
