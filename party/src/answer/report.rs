//! The report of an own answer: a file for the owner, and a table.

use conclave_inference::sampler::{Check, OwnAnswer, OwnRow};
use serde::Serialize;

use crate::config::PartyConfig;
use crate::error::StartError;
use crate::owner::JobView;
use crate::verify;

/// The first line of everything that shows an own answer.
pub(crate) const WARNING: &str = "WARNING: this answer is computed from this owner's records without noise. Passing it on is a release of these \
                                  records without protection.";

/// An own answer, as it is written.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    warning: &'static str,
    /// The job's id.
    job: String,
    name: String,
    party: String,
    /// Rounds of the log.
    rounds: u64,
    /// The digest that `verify` reports.
    log_digest: Option<String>,
    adequacy: Adequacy,
    /// Adequacy of the joint answer, whose sds stand beside the own ones.
    joint_adequacy: Verdict,
    /// Effective share of the draws: 1 if the owner's likelihood is a normal law.
    efficiency: f64,
    /// On the scale of the priors.
    parameters: Vec<Parameter>,
}

#[derive(Debug, Serialize)]
struct Verdict {
    adequate: bool,
    reasons: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Adequacy {
    #[serde(flatten)]
    verdict: Verdict,
    checks: serde_json::Map<String, serde_json::Value>,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Parameter {
    #[serde(flatten)]
    row: OwnRow,
    /// Share of the variance that is due to the other owners' noise; absent if the releases do not determine it.
    noise_share: Option<f64>,
}

fn verdict(reasons: Vec<String>) -> Verdict {
    Verdict { adequate: reasons.is_empty(), reasons }
}

impl Report {
    pub(super) fn new(config: &PartyConfig, job: &JobView, log: &verify::Report, answer: OwnAnswer) -> Self {
        let OwnAnswer { rows, inference, joint_reasons, efficiency } = answer;
        let check = |check: &Check| (check.name.to_owned(), serde_json::json!({ "value": check.value, "limit": check.limit }));
        let shares = inference.noise_share.into_iter().chain(std::iter::repeat(None));
        Self {
            warning: WARNING,
            job: job.request.job.clone(),
            name: job.name().to_owned(),
            party: config.name.clone(),
            rounds: log.rounds,
            log_digest: log.log_digest.clone(),
            adequacy: Adequacy {
                checks: inference.checks.iter().map(check).collect(),
                verdict: verdict(inference.reasons),
                warnings: inference.warnings,
            },
            joint_adequacy: verdict(joint_reasons),
            efficiency,
            parameters: rows.into_iter().zip(shares).map(|(row, noise_share)| Parameter { row, noise_share }).collect(),
        }
    }

    /// Returns the content of the file.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn json(&self) -> Result<String, StartError> {
        let text = serde_json::to_string_pretty(self).map_err(|e| StartError::System(e.to_string()))?;
        Ok(text + "\n")
    }

    /// Returns the answer as lines of a table.
    pub(crate) fn table(&self) -> String {
        let mut lines = vec![
            format!("job {} ({}), owner {}: {} rounds, log verified", self.job, self.name, self.party, self.rounds),
            format!(
                "{:<20} | {:>9} {:>9} | {:>9} {:>9} {:>9} | {:>9} {:>9}",
                "Parameter", "mean", "sd", "5 %", "50 %", "95 %", "sd joint", "sd alone"
            ),
        ];
        lines.extend(self.parameters.iter().map(|Parameter { row, .. }| {
            let (own, joint, alone) = (&row.own, &row.joint, &row.alone);
            format!(
                "{:<20} | {:>9.4} {:>9.4} | {:>9.4} {:>9.4} {:>9.4} | {:>9.4} {:>9.4}",
                row.name, own.mean, own.sd, own.q5, own.q50, own.q95, joint.sd, alone.sd
            )
        }));
        let state = |verdict: &Verdict| if verdict.adequate { "adequate" } else { "NOT ADEQUATE" };
        lines.push(format!(
            "own answer: {}; joint answer: {}. sd joint: the job's answer; sd alone: these records by themselves",
            state(&self.adequacy.verdict),
            state(&self.joint_adequacy)
        ));
        lines.extend(self.adequacy.verdict.reasons.iter().chain(&self.adequacy.warnings).map(|reason| format!("- {reason}")));
        lines.join("\n")
    }
}
