//! The audit's report: the claim, the lower bounds, and what speaks against the claim.

use serde::Serialize;

use super::statistics::Samples;

/// What the audit found.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    /// Whether nothing speaks against the claim.
    pub(crate) holds: bool,
    /// The mu that the budget admits, by the filter.
    pub(crate) mu_claimed: f64,
    /// What the queries of one replicate cost, as mu: all but a few millionths of the claim.
    pub(crate) mu_charged: f64,
    /// Lower bound on the mu that was given, at 95% confidence.
    pub(crate) mu_lower: f64,
    /// The same at 99.9%: above the claim, it is a finding.
    pub(crate) mu_lower_999: f64,
    /// The mu at which the best test errs as often as was seen.
    pub(crate) mu_estimate: f64,
    /// The budget's epsilon.
    pub(crate) epsilon_claimed: f64,
    /// The budget's delta.
    pub(crate) delta: f64,
    /// Lower bound on epsilon at that delta from the error rates alone, at 95% confidence.
    pub(crate) epsilon_lower: f64,
    /// The epsilon that belongs to `mu_lower`.
    pub(crate) epsilon_at_mu_lower: f64,
    /// How many parties' noise the queries are priced by.
    pub(crate) honest: u32,
    /// Whether all others were taken to collude, and the claim is what the ledger says of that.
    pub(crate) all_collude: bool,
    /// Replicates in each world.
    pub(crate) replicates: u64,
    /// Queries of a replicate.
    pub(crate) queries: u32,
    /// Replicates without the record that the test takes for ones with it, and of how many.
    pub(crate) false_positives: (u64, u64),
    /// The other way round.
    pub(crate) false_negatives: (u64, u64),
    /// What is wrong, in sentences.
    pub(crate) findings: Vec<String>,
    /// How long it took.
    pub(crate) seconds: f64,
    #[serde(skip)]
    pub(crate) samples: Option<std::sync::Arc<Samples>>,
    #[serde(skip)]
    pub(crate) threshold: f64,
}
