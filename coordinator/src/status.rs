//! What is known of a job at a moment: what `Get`, `List` and `Watch` show.

use conclave_common::query::{PartyMetadata, Phase};
use conclave_proto::error::Fault;
use conclave_proto::v1;

use crate::party_registry::PartyRegistry;
use conclave_draws::spent::Spent;

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Submitted, and waiting for its turn.
    Queued,
    /// Parties are asked to open it.
    Opening,
    /// Rounds go on.
    Running,
    /// A party is away or does not answer; the chain waits for it, since going on without it would change the posterior.
    Paused,
    /// All draws are made, or the budget ended the run.
    Finished,
    /// The analyst ended it.
    Cancelled,
    /// It can't go on.
    Failed,
}

impl State {
    /// Every state, in the order of a job's life.
    pub(crate) const ALL: [Self; 7] =
        [Self::Queued, Self::Opening, Self::Running, Self::Paused, Self::Finished, Self::Cancelled, Self::Failed];

    /// The name on the wire and in the store.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Opening => "opening",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Finished => "finished",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }

    /// The ended state of that name.
    pub(crate) fn parse_ended(text: &str) -> Option<Self> {
        [Self::Finished, Self::Cancelled, Self::Failed].into_iter().find(|state| state.as_str() == text)
    }

    /// Whether nothing more will happen.
    pub(crate) fn ended(self) -> bool {
        matches!(self, Self::Finished | Self::Cancelled | Self::Failed)
    }
}

/// A job's status.
#[derive(Debug, Clone)]
pub(crate) struct Status {
    /// UUID.
    pub id: String,
    /// The analyst's name for the job.
    pub name: String,
    /// Who submitted it.
    pub analyst: String,
    /// Where it stands.
    pub state: State,
    /// What the sampler is about, once it runs.
    pub phase: Option<Phase>,
    /// Rounds so far.
    pub iteration: u64,
    /// Chains.
    pub chains: u32,
    /// Kept draws per chain so far.
    pub draws: u64,
    /// Draws per chain asked for.
    pub draws_asked: u64,
    /// Of the current phase; 0 before the first decision.
    pub acceptance_rate: f64,
    /// Sampling time so far.
    pub seconds: f64,
    /// Parties that the job waits for.
    pub waiting_for: Vec<String>,
    /// Since when, Unix time in milliseconds; 0 when it does not wait.
    pub waiting_since_ms: i64,
    /// Parties among them whose owners have yet to decide.
    pub awaiting_consent: Vec<String>,
    /// What the parties waited for have said of it.
    pub waiting_reason: String,
    /// Its place in the queue, from 1; 0 once it has begun.
    pub place: u32,
    /// What to beware of while it runs.
    pub warnings: Vec<String>,
    /// Why it failed.
    pub fault: Option<Fault>,
    /// The finished run's object.
    pub result: Option<String>,
    /// One entry per party, in the job's order.
    pub parties: Vec<PartyStatus>,
    /// Unix time in milliseconds.
    pub submitted_ms: i64,
}

/// A party's part in a job.
#[derive(Debug, Clone)]
pub(crate) struct PartyStatus {
    /// Name.
    pub name: String,
    /// What it holds; `None` until the party has opened the job.
    pub metadata: Option<PartyMetadata>,
    /// What the job has spent there.
    pub spent: Spent,
    /// Epsilon of `spent` at the job's delta.
    pub epsilon_spent: f64,
    /// The most that the job may spend.
    pub epsilon_budget: f64,
}

impl Status {
    /// The wire's form; `party_registry` knows who is attached at this moment.
    pub(crate) fn to_wire(&self, party_registry: &PartyRegistry) -> v1::JobStatus {
        let parties = self.parties.iter().map(|party| v1::PartyStatus {
            name: party.name.clone(),
            attached: party_registry.is_attached(&party.name),
            records: party.metadata.and_then(|h| h.records()).unwrap_or(0),
            queries: party.spent.queries,
            epsilon_spent: party.epsilon_spent,
            epsilon_budget: party.epsilon_budget,
        });
        v1::JobStatus {
            job: self.id.clone(),
            name: self.name.clone(),
            analyst: self.analyst.clone(),
            state: self.state.as_str().to_owned(),
            phase: self.phase.map(phase_name).unwrap_or_default().to_owned(),
            iteration: self.iteration,
            chains: self.chains,
            draws: self.draws,
            draws_asked: self.draws_asked,
            acceptance_rate: self.acceptance_rate,
            seconds: self.seconds,
            waiting_for: self.waiting_for.clone(),
            waiting_since_unix_ms: self.waiting_since_ms,
            awaiting_consent: self.awaiting_consent.clone(),
            waiting_reason: self.waiting_reason.clone(),
            warnings: self.warnings.clone(),
            place: self.place,
            error_code: self.fault.as_ref().map(|f| f.code.as_str().to_owned()).unwrap_or_default(),
            error: self.fault.as_ref().map(Fault::to_string).unwrap_or_default(),
            result_json: self.result.clone().unwrap_or_default(),
            parties: parties.collect(),
            submitted_unix_ms: self.submitted_ms,
        }
    }
}

pub(crate) fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Locate => "locate",
        Phase::Warmup => "warmup",
        Phase::Sampling => "sampling",
    }
}
