//! The audit's report: the claim, the lower bounds, and the findings against the claim.

use serde::Serialize;

use super::statistics::Samples;

/// The audit's results.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    /// True if there are no findings.
    pub(crate) holds: bool,
    /// The mu that the budget admits under the filter.
    pub(crate) mu_claimed: f64,
    /// The mu charged for the queries of one replicate: within a few millionths of the claim.
    pub(crate) mu_charged: f64,
    /// Lower bound on the actual mu, at 95% confidence.
    pub(crate) mu_lower: f64,
    /// Lower bound at 99.9% confidence; above the claim it is a finding.
    pub(crate) mu_lower_999: f64,
    /// The mu at which the best test has the observed error rate.
    pub(crate) mu_estimate: f64,
    /// The budget's epsilon.
    pub(crate) epsilon_claimed: f64,
    /// The budget's delta.
    pub(crate) delta: f64,
    /// Lower bound on epsilon at that delta, from the error rates only, at 95% confidence.
    pub(crate) epsilon_lower: f64,
    /// The epsilon that corresponds to `mu_lower`.
    pub(crate) epsilon_at_mu_lower: f64,
    /// Number of parties whose noise sets the price of the queries.
    pub(crate) honest: u32,
    /// True if all other parties collude; the claim is then the ledger's figure for that case.
    pub(crate) all_collude: bool,
    /// Replicates in each world.
    pub(crate) replicates: u64,
    /// Queries of a replicate.
    pub(crate) queries: u32,
    /// Replicates without the record that the test classified as with it, and their total.
    pub(crate) false_positives: (u64, u64),
    /// Replicates with the record that the test classified as without it, and their total.
    pub(crate) false_negatives: (u64, u64),
    /// Findings, in sentences.
    pub(crate) findings: Vec<String>,
    /// Duration in seconds.
    pub(crate) seconds: f64,
    #[serde(skip)]
    pub(crate) samples: Option<std::sync::Arc<Samples>>,
    #[serde(skip)]
    pub(crate) threshold: f64,
}
