//! Restores stored jobs: those that have not ended resume, and the others are shown.

use std::sync::Arc;

use conclave_common::job::JobSpec;
use conclave_common::query::{PartyMetadata, Phase};
use conclave_draws::spent::Spent;
use conclave_inference::sampler::settled;
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::submission;
use conclave_proto::version::least_protocol;
use tokio::sync::watch;

use super::jobs::JobRegistry;
use super::view::Entry;
use crate::driver::Job;
use crate::status::{PartyStatus, State, Status, grade_of, never_rejects};
use crate::store::JobRow;

impl JobRegistry {
    /// Restores a stored job: an ended job is shown, any other resumes where its log ends, on its original terms.
    pub(super) fn restore(&self, row: JobRow) {
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
}

/// Builds the status of a stored job that is not resumed. Either it has ended, or its file no longer parses, or an earlier
/// version began it with other public constants.
fn restored_status(row: JobRow, spec: Option<&JobSpec>, ended: Option<State>) -> Status {
    let budget = spec.map(|spec| spec.privacy.budget);
    let unfit = || {
        Fault::new(
            ErrorCode::Internal,
            match spec {
                None => "this version of the coordinator can't read the job's file: submit it again",
                Some(_) => "was begun by an earlier version; submit it again (its finished draws are kept)",
            },
        )
    };
    let parties = row.parties.into_iter().map(|party| {
        let spent = Spent { queries: party.queries, units: party.charge_units };
        PartyStatus {
            name: party.name,
            metadata: party.metadata,
            spent,
            epsilon_spent: budget.map(|b| spent.epsilon(&b)).unwrap_or_default(),
            epsilon_budget: budget.map(|b| b.epsilon).unwrap_or_default(),
            waiting_since_ms: None,
        }
    });
    let parties: Vec<PartyStatus> = parties.collect();
    let metadata: Option<Vec<PartyMetadata>> = parties.iter().map(|party| party.metadata).collect();
    let settled = spec.zip(metadata).map(|(spec, metadata)| settled(spec, &metadata).sampler.chains);
    Status {
        parties,
        id: row.job.id,
        name: row.job.name,
        analyst: row.job.analyst,
        phase: (row.run.draws > 0).then_some(Phase::Sampling),
        iteration: row.run.iterations,
        chains: settled.or(spec.map(|s| s.sampler.chains)).unwrap_or_default(),
        draws: row.run.draws,
        draws_asked: spec.map(|s| s.draws_asked()).unwrap_or_default(),
        acceptance_rate: row.run.acceptance_rate,
        never_rejects: spec.is_some_and(never_rejects),
        seconds: row.run.seconds,
        fault: row.run.fault.or_else(|| ended.is_none().then(unfit)),
        state: ended.unwrap_or(State::Failed),
        grade: grade_of(row.run.result.as_deref()),
        result: row.run.result,
        submitted_ms: row.job.submitted_ms,
        ..Status::default()
    }
}
