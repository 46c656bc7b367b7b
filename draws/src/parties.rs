//! The parties' part in a result: their public counts and spending, and how their answers were aggregated.

use conclave_common::job::JobSpec;
use conclave_privacy::accounting::Budget;
use serde::Serialize;

use crate::outcome::PartyOutcome;

/// The aggregation of masked answers, and the noise that protects each party.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AggregationRow {
    /// `secure`: only the sum over the parties was unmasked.
    pub mode: &'static str,
    /// Maximum number of other parties that may collude with the coordinator.
    pub colluders: u32,
    /// Number of parties whose noise then protects each party, which divides its charges.
    pub honest: u32,
    /// Number of parties in the sum.
    pub parties: u32,
}

impl AggregationRow {
    /// Returns the aggregation of a job; `None` for answers without masks.
    #[must_use]
    pub fn from_spec(spec: &JobSpec) -> Option<Self> {
        let secure = spec.aggregation.secure()?;
        let parties = u32::try_from(spec.parties.len()).unwrap_or(u32::MAX);
        Some(Self { mode: "secure", colluders: secure.colluders, honest: spec.honest().get(), parties })
    }
}

/// The job's cost at one party.
#[derive(Debug, Clone, Serialize)]
pub struct PartyRow {
    /// Name.
    pub name: String,
    /// Record count; `null` if it is not public.
    pub records: Option<u64>,
    /// Number of persons, if persons are protected and their number is public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persons: Option<u64>,
    /// The unit of privacy of the party's guarantee.
    pub protects: String,
    /// Number of releases of this job: one per chain and round, including `locate` and warm-up.
    pub queries: u64,
    /// Epsilon of this job by Gaussian differential privacy.
    pub epsilon_spent: f64,
    /// The delta of the job's guarantee, including the part reserved for blocks.
    pub delta: f64,
    /// The job's budget.
    pub epsilon_budget: f64,
    /// Mu squared of this job.
    pub mu_squared_spent: f64,
    /// Epsilon of this job by zero-concentrated differential privacy.
    pub epsilon_zcdp: f64,
}

impl PartyRow {
    pub(crate) fn new(party: &PartyOutcome, budget: &Budget) -> Self {
        Self {
            name: party.name.clone(),
            records: party.metadata.and_then(|h| h.records()),
            persons: party.metadata.and_then(|h| h.persons()),
            protects: party.metadata.map(|h| h.unit()).unwrap_or_default().to_string(),
            queries: party.spent.queries,
            epsilon_spent: party.spent.epsilon(budget),
            delta: budget.promised_delta(),
            epsilon_budget: budget.epsilon,
            mu_squared_spent: party.spent.mu_squared(),
            epsilon_zcdp: party.spent.epsilon_zcdp(budget),
        }
    }
}
