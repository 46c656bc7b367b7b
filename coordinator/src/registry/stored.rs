//! Status of a stored job that is not resumed.

use conclave_common::job::JobSpec;
use conclave_common::query::{PartyMetadata, Phase};
use conclave_draws::spent::Spent;
use conclave_inference::sampler::settled;
use conclave_proto::error::{ErrorCode, Fault};

use crate::status::{PartyStatus, State, Status};
use crate::store::JobRow;

/// Builds the status of a stored job that is not resumed. Either it has ended, or its file no longer parses, or an earlier
/// version began it with other public constants.
pub(super) fn restored_status(row: JobRow, spec: Option<&JobSpec>, ended: Option<State>) -> Status {
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
        seconds: row.run.seconds,
        fault: row.run.fault.or_else(|| ended.is_none().then(unfit)),
        state: ended.unwrap_or(State::Failed),
        result: row.run.result,
        submitted_ms: row.job.submitted_ms,
        ..Status::default()
    }
}
