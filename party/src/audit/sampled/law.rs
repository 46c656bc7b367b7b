//! Tests the distribution of answers over records with known contributions: it would show a revealed or reused sample.

use std::path::Path;

use super::design::{Design, Job, OTHERS, RELATIVE, Record};
use super::settings::Prepare;

/// Number of jobs for the test of the distribution.
const JOBS: u64 = 400;
/// Standard errors beyond which a figure is a finding: less than one false finding in 10^6 audits with some hundred figures each.
const FAR: f64 = 6.0;

/// Mean and variance of a release's component along the observed direction.
struct Law {
    mean: f64,
    variance: f64,
    /// Releases of a message.
    each: usize,
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
}

impl Design {
    /// Checks the mean and variance of answers against a Poisson sample of units that all contribute the maximum, and against
    /// noise alone for units that contribute zero; then checks that no two answers are correlated.
    pub(super) fn law(&self, folder: &Path, prepare: &Prepare) -> Result<Vec<String>, String> {
        let (q, n) = (self.audit.probability.get(), OTHERS as f64);
        let mut findings = Vec::new();
        for (part, what) in [(1.0, "contribute the maximum"), (0.0, "contribute zero")] {
            let released = self.released((&self.shard(self.at(part), None), JOBS), &folder.join(what), prepare)?;
            let (mean, variance) = (q * n * RELATIVE * part, 1.0 + q * (1.0 - q) * n * (RELATIVE * part).powi(2));
            let law = Law { mean, variance, each: self.per_message() as usize };
            findings.extend(law.findings(&released).into_iter().map(|finding| format!("for records that {what}, {finding}")));
        }
        Ok(findings)
    }

    /// Checks that no record, whatever its values, moves an answer beyond the range of clamped records and noise.
    pub(super) fn wild(&self, folder: &Path, prepare: &Prepare) -> Result<Vec<String>, String> {
        let mut findings = Vec::new();
        // Enough jobs that the record is in some release's sample, except once in 10^9 audits.
        let out = libm::log(1.0 - self.audit.probability.get()) * f64::from(self.audit.releases);
        let jobs = (-21.0 / out).ceil().max(1.0) as u64;
        let far = (OTHERS + 1) as f64 * RELATIVE + 12.0;
        for (at, wild) in wild(self).into_iter().enumerate() {
            let data = self.shard(self.at(0.0), Some(wild));
            let released = self.released((&data, jobs), &folder.join(format!("wild-{at}")), prepare)?;
            if released.iter().flat_map(|job| job.along.iter().chain(&job.across)).any(|x| x.abs() > far) {
                findings.push(format!("with {wild:?}, a released number exceeds the range of clamped records and noise"));
            }
        }
        Ok(findings)
    }
}

/// Returns records that no loader admits.
pub(super) fn wild(design: &Design) -> Vec<Record> {
    let edge = design.at(1.0);
    let numbers = [f64::NAN, f64::INFINITY, -1e300, 1e300];
    let outcomes = numbers.into_iter().map(|outcome| Record { outcome, predictors: edge.predictors });
    let predictors = numbers.into_iter().map(|wild| Record { outcome: edge.outcome, predictors: [edge.predictors[0], wild] });
    let has_predictors = design.kind.length() > 1;
    outcomes.chain(predictors.filter(|_| has_predictors)).collect()
}

impl Law {
    /// Reports the differences between the answers and this law.
    fn findings(&self, jobs: &[Job]) -> Vec<String> {
        let (variance, centred) = (self.variance, |job: &Job| job.along.iter().map(|x| x - self.mean).collect::<Vec<f64>>());
        let all: Vec<f64> = jobs.iter().flat_map(centred).collect();
        let sums: Vec<f64> = all.chunks(self.each).map(|message| message.iter().sum()).collect();
        let across: Vec<f64> = jobs.iter().flat_map(|job| job.across.iter().copied()).collect();
        let square_of = |values: &[f64]| mean(values.iter().map(|x| x * x));
        let mut findings = Vec::new();
        let mut hold = |what: &str, found: f64, expected: f64, error: f64| {
            if (found - expected).abs() > FAR * error {
                findings.push(format!("{what} is {found:.4} instead of {expected:.4}"));
            }
        };
        let count = all.len() as f64;
        hold("the error of the mean of answers", mean(all.iter().copied()), 0.0, (variance / count).sqrt());
        // A fourth moment slightly above the normal one is the most, for single answers and for each message's sum.
        hold("the variance of answers", square_of(&all), variance, variance * (4.0 / count).sqrt());
        let (messages, of_sum) = (sums.len() as f64, self.each as f64 * variance);
        hold("the variance of a message's sum", square_of(&sums), of_sum, of_sum * (4.0 / messages).sqrt());
        // Lags in the order of the queries: within one message, within one job, and between two jobs.
        for apart in 1..=2 * jobs.first().map_or(0, |job| job.along.len()) {
            let Some(pairs) = all.len().checked_sub(apart).filter(|pairs| *pairs > 0) else { break };
            let common = mean(all.iter().zip(&all[apart..]).map(|(a, b)| a * b));
            hold(&format!("the covariance of answers {apart} apart"), common, 0.0, variance / (pairs as f64).sqrt());
        }
        if !across.is_empty() {
            hold("the mean of orthogonal components", mean(across.iter().copied()), 0.0, count.sqrt().recip());
            hold("the variance of orthogonal components", square_of(&across), 1.0, (4.0 / count).sqrt());
        }
        findings
    }
}
