//! The table `[policy]`: the owner's limits on every job.

use std::time::Duration;

use conclave_privacy::mechanism::QueryKind;
use conclave_proto::identity::valid_name;
use serde::Deserialize;

use super::unknown::unknown;
use conclave_vault::config::policy::{Approve, Policy, ReplyDelay};

/// Minimum noise unless the policy sets one. It keeps the slack for discrete noise negligible over the whole ledger, so that
/// quiet, almost free queries can't exhaust the ledger itself.
const MIN_NOISE_SD: f64 = 0.01;

/// Model kinds that a policy may name, planned ones included.
const MODELS: [&str; 13] = [
    "logistic",
    "gaussian_mean",
    "bernoulli",
    "poisson_mean",
    "multinomial",
    "naive_bayes",
    "linear",
    "poisson",
    "negative_binomial",
    "student_t",
    "gaussian_mixture",
    "weibull",
    "banana",
];

#[derive(Deserialize, Default)]
pub(super) struct RawPolicy {
    approve: Option<String>,
    analysts: Option<Vec<String>>,
    models: Option<Vec<String>>,
    max_epsilon_per_job: Option<f64>,
    max_epsilon_per_analyst: Option<f64>,
    min_noise_sd: Option<f64>,
    min_noise_multiplier: Option<f64>,
    releases: Option<Vec<String>>,
    max_iterations_per_job: Option<i64>,
    columns: Option<Vec<String>>,
    max_memory_mib: Option<i64>,
    reply_delay_ms: Option<toml::Value>,
    tell_budget: Option<bool>,
}

impl RawPolicy {
    pub(super) fn check(self) -> Result<Policy, String> {
        let approve = match self.approve.as_deref() {
            None | Some("manual") => Approve::Manual,
            Some("automatic") => Approve::Automatic,
            Some(other) => return Err(unknown("policy.approve", other, &["manual", "automatic"])),
        };
        let max_iterations_per_job = match self.max_iterations_per_job {
            None => None,
            Some(rounds) => Some(u64::try_from(rounds).ok().filter(|rounds| *rounds > 0).ok_or_else(|| {
                format!("`policy.max_iterations_per_job` is {rounds}: it must be a number of rounds, 1 or more")
            })?),
        };
        let max_memory_mib = match self.max_memory_mib {
            None => None,
            Some(mib) => Some(
                u64::try_from(mib)
                    .ok()
                    .filter(|mib| *mib > 0)
                    .ok_or_else(|| format!("`policy.max_memory_mib` is {mib}: it must be a number of mebibytes, 1 or more"))?,
            ),
        };
        let reply_delay = reply_delay(self.reply_delay_ms.as_ref())?;
        positive("policy.max_epsilon_per_job", self.max_epsilon_per_job)?;
        positive("policy.max_epsilon_per_analyst", self.max_epsilon_per_analyst)?;
        for (key, least) in [("min_noise_sd", self.min_noise_sd), ("min_noise_multiplier", self.min_noise_multiplier)] {
            if let Some(least) = least.filter(|least| !(least.is_finite() && *least >= 0.0)) {
                return Err(format!("`policy.{key}` is {least}: it must be a finite number, 0 or more"));
            }
        }
        for model in self.models.iter().flatten() {
            if !MODELS.contains(&model.as_str()) {
                return Err(unknown("policy.models", model, &MODELS));
            }
        }
        for release in self.releases.iter().flatten() {
            if !QueryKind::RELEASES.contains(&release.as_str()) {
                return Err(unknown("policy.releases", release, &QueryKind::RELEASES));
            }
        }
        let earlier = || Policy::RELEASES_OF_OLD.map(str::to_owned).to_vec();
        let releases = self.releases.or_else(|| (approve == Approve::Automatic).then(earlier));
        for analyst in self.analysts.iter().flatten() {
            if !valid_name(analyst) {
                return Err(format!("`policy.analysts` contains {analyst:?}: a name is 1 to 63 of a-z, 0-9 and -"));
            }
        }
        if let Some(columns) = &self.columns {
            if columns.is_empty() {
                return Err("`policy.columns` is empty: name the columns that jobs may use, or remove it".into());
            }
            if let Some(twice) = columns.iter().enumerate().find_map(|(i, c)| columns[..i].contains(c).then_some(c)) {
                return Err(format!("`policy.columns` names {twice:?} twice"));
            }
        }
        Ok(Policy {
            approve,
            max_iterations_per_job,
            analysts: self.analysts,
            models: self.models,
            max_epsilon_per_job: self.max_epsilon_per_job,
            max_epsilon_per_analyst: self.max_epsilon_per_analyst,
            releases,
            min_noise_sd: self.min_noise_sd.unwrap_or(MIN_NOISE_SD),
            min_noise_multiplier: self.min_noise_multiplier.unwrap_or(0.0),
            columns: self.columns,
            max_memory_mib,
            reply_delay,
            tell_budget: self.tell_budget.unwrap_or(true),
        })
    }
}

/// Maximum delay in milliseconds: after more than a minute the coordinator would consider the party gone.
const MAX_REPLY_DELAY_MS: f64 = 60_000.0;

fn reply_delay(value: Option<&toml::Value>) -> Result<ReplyDelay, String> {
    let millis = match value {
        None => return Ok(ReplyDelay::Auto),
        Some(toml::Value::String(word)) if word == "auto" => return Ok(ReplyDelay::Auto),
        Some(toml::Value::Integer(0)) => return Ok(ReplyDelay::Off),
        Some(toml::Value::Integer(millis)) => *millis as f64,
        Some(toml::Value::Float(millis)) => *millis,
        Some(_) => f64::NAN,
    };
    if !(millis > 0.0 && millis <= MAX_REPLY_DELAY_MS) {
        return Err(format!(
            "`policy.reply_delay_ms` must be \"auto\", or a number of milliseconds up to {MAX_REPLY_DELAY_MS}, 0 for no delay"
        ));
    }
    Ok(ReplyDelay::Fixed(Duration::from_secs_f64(millis * 1e-3)))
}

fn positive(key: &str, value: Option<f64>) -> Result<(), String> {
    match value {
        Some(v) if !(v.is_finite() && v > 0.0) => Err(format!("`{key}` is {v}: it must be a finite number above 0")),
        _ => Ok(()),
    }
}
