//! Status of a job at one moment, as `Get`, `List` and `Watch` show it.

use conclave_common::job::{Algorithm, HmcTest, JobSpec};
use conclave_common::query::{PartyMetadata, Phase};
use conclave_pages::verdict::{Grade, Verdict, state_words};
use conclave_pages::waiting;
use conclave_proto::error::Fault;
use conclave_proto::v1;

use crate::party_registry::PartyRegistry;
use conclave_draws::spent::Spent;

/// The reason, up to the colon, of a queued job that resumes once the operator has removed an obstacle.
pub(crate) const WAITS_FOR_OPERATOR: &str = "waiting for the operator";

/// State of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum State {
    /// Submitted, and waiting for its turn.
    #[default]
    Queued,
    /// Parties are asked to open it.
    Opening,
    /// Rounds are in progress.
    Running,
    /// A party is away or does not answer. The chains wait for it, because continuing without it would change the posterior.
    Paused,
    /// All draws are made, or the budget ended the run.
    Finished,
    /// The analyst cancelled it.
    Cancelled,
    /// It can't continue.
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

    /// Parses the name of an ended state.
    pub(crate) fn parse_ended(text: &str) -> Option<Self> {
        [Self::Finished, Self::Cancelled, Self::Failed].into_iter().find(|state| state.as_str() == text)
    }

    /// Returns true for an ended state, which is final.
    pub(crate) fn has_ended(self) -> bool {
        matches!(self, Self::Finished | Self::Cancelled | Self::Failed)
    }
}

/// A job's status.
#[derive(Debug, Clone, Default)]
pub(crate) struct Status {
    /// UUID.
    pub id: String,
    /// The analyst's name for the job.
    pub name: String,
    /// The submitting analyst.
    pub analyst: String,
    /// State of the job.
    pub state: State,
    /// Phase of the sampler, once it runs.
    pub phase: Option<Phase>,
    /// Rounds so far.
    pub iteration: u64,
    /// Number of chains.
    pub chains: u32,
    /// Kept draws per chain so far.
    pub draws: u64,
    /// Draws per chain that were requested.
    pub draws_asked: u64,
    /// Acceptance rate of the current phase; 0 before the first decision.
    pub acceptance_rate: f64,
    /// True for draws that are no proposals, or whose steps have no test: their acceptance rate has no meaning.
    pub never_rejects: bool,
    /// Sampling time so far.
    pub seconds: f64,
    /// Parties that the job waits for.
    pub waiting_for: Vec<String>,
    /// Start of the wait, Unix time in milliseconds; 0 when it does not wait.
    pub waiting_since_ms: i64,
    /// Parties among them whose owners have yet to decide.
    pub awaiting_consent: Vec<String>,
    /// Reasons why it waits for these parties.
    pub waiting_reason: String,
    /// Its place in the queue, from 1; 0 once it has begun.
    pub place: u32,
    /// Warnings that hold while it runs.
    pub warnings: Vec<String>,
    /// Reason why it failed.
    pub fault: Option<Fault>,
    /// Result object of the run, as JSON, once it has ended.
    pub result: Option<String>,
    /// Grade of that result.
    pub grade: Option<Grade>,
    /// One entry per party, in the job's order.
    pub parties: Vec<PartyStatus>,
    /// Time of submission, Unix time in milliseconds.
    pub submitted_ms: i64,
}

/// A party's part in a job.
#[derive(Debug, Clone, Default)]
pub(crate) struct PartyStatus {
    /// Name.
    pub name: String,
    /// Its public metadata; `None` until the party has opened the job.
    pub metadata: Option<PartyMetadata>,
    /// Charges of the job at the party.
    pub spent: Spent,
    /// Epsilon of `spent` at the job's delta.
    pub epsilon_spent: f64,
    /// Maximum epsilon that the job may spend.
    pub epsilon_budget: f64,
    /// Time since which the job waits for it, Unix time in milliseconds; `None` if it does not wait.
    pub waiting_since_ms: Option<i64>,
}

impl Status {
    /// Returns true for a job that resumes once the operator has removed an obstacle.
    pub(crate) fn waits_for_operator(&self) -> bool {
        self.state == State::Queued && self.waiting_reason.starts_with(WAITS_FOR_OPERATOR)
    }

    /// Returns since when the job waits for each party.
    pub(crate) fn waits(&self) -> Vec<Option<i64>> {
        self.parties.iter().map(|party| party.waiting_since_ms).collect()
    }

    /// Converts to the wire format; `party_registry` knows which parties are attached.
    pub(crate) fn to_wire(&self, party_registry: &PartyRegistry) -> v1::JobStatus {
        let parties = self.parties.iter().map(|party| v1::PartyStatus {
            name: party.name.clone(),
            attached: party_registry.is_attached(&party.name),
            records: party.metadata.and_then(|h| h.records()).unwrap_or(0),
            queries: party.spent.queries,
            epsilon_spent: party.epsilon_spent,
            epsilon_budget: party.epsilon_budget,
            software: party_registry.software(&party.name),
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
            acceptance_rate: if self.never_rejects { 0.0 } else { self.acceptance_rate },
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
            verdict: self.grade.map(Grade::words).unwrap_or_default().to_owned(),
        }
    }

    /// Returns the acceptance rate; `None` for a job without one, and before its first decision.
    pub(crate) fn acceptance(&self) -> Option<f64> {
        (!self.never_rejects && self.draws > 0).then_some(self.acceptance_rate)
    }

    /// Returns true for a job that waits for owners' decisions, and for nothing else.
    pub(crate) fn waits_for_consent(&self) -> bool {
        waiting::is_for_consent(&self.waiting_for, &self.awaiting_consent)
    }

    /// Returns the words for the state, which distinguish a run without an adequate answer and a job that waits for consent.
    pub(crate) fn state_words(&self) -> String {
        state_words(self.state.as_str(), self.grade.map(Grade::words).unwrap_or_default(), self.waits_for_consent())
    }
}

/// Returns true for a job whose draws are no proposals, or whose steps have no test.
pub(crate) fn never_rejects(spec: &JobSpec) -> bool {
    let untested = spec.algorithm.is_unadjusted() || (spec.algorithm == Algorithm::Hmc && spec.sampler.hmc.test == HmcTest::None);
    !spec.algorithm.proposes() || (untested && !spec.is_polished())
}

/// Returns the grade of a result object.
pub(crate) fn grade_of(result: Option<&str>) -> Option<Grade> {
    let parsed = serde_json::from_str(result?).ok()?;
    Some(Verdict::of(&parsed).grade)
}

pub(crate) fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Locate => "locate",
        Phase::Warmup => "warmup",
        Phase::Sampling => "sampling",
    }
}
