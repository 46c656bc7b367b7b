//! The table `[policy]`: the owner's limits on every job.

use std::time::Duration;

use conclave_common::schema::BUILT;
use conclave_common::settings;
use conclave_common::settings::{Fault, Value, each, one_of, positive, within};
use conclave_privacy::mechanism::QueryKind;

use super::name::name;
use conclave_vault::config::policy::{Approve, Policy, ReplyDelay, SiteParameters};

/// Minimum noise unless the policy sets one. It keeps the slack for discrete noise negligible over the whole ledger, so that
/// quiet, almost free queries can't exhaust the ledger itself.
const MIN_NOISE_SD: f64 = 0.01;

settings! {
    pub(super) struct RawPolicy {
        approve: Approve = Approve::Manual => one_of(&[("manual", Approve::Manual), ("automatic", Approve::Automatic)]),
        analysts: Option<Vec<String>> => each(name),
        models: Option<Vec<String>> => each(word(BUILT)),
        max_epsilon_per_job: Option<f64> => positive,
        max_epsilon_per_analyst: Option<f64> => positive,
        tell_budget: bool = true,
        over_commit: bool = false,
        site_parameters: SiteParameters = SiteParameters::Ask => one_of(&[
            ("ask", SiteParameters::Ask),
            ("allow", SiteParameters::Allow),
            ("never", SiteParameters::Never),
        ]),
        min_noise_sd: f64 = MIN_NOISE_SD => within(0.0..f64::INFINITY),
        min_noise_multiplier: f64 = 0.0 => within(0.0..f64::INFINITY),
        releases: Option<Vec<String>> => each(word(&QueryKind::RELEASES)),
        max_iterations_per_job: Option<u64> => within(1..),
        columns: Option<Vec<String>>,
        max_memory_mib: Option<u64> => within(1..),
        reply_delay_ms: ReplyDelay = ReplyDelay::Auto => reply_delay,
    }
}

/// Reads one of these words.
fn word(known: &[&'static str]) -> impl Fn(&Value) -> Result<String, Fault> {
    let known: Vec<_> = known.iter().map(|word| (*word, *word)).collect();
    move |value| one_of(&known)(value).map(str::to_owned)
}

impl RawPolicy {
    pub(super) fn check(self) -> Result<Policy, String> {
        let earlier = || Policy::RELEASES_OF_OLD.map(str::to_owned).to_vec();
        let releases = self.releases.or_else(|| (self.approve == Approve::Automatic).then(earlier));
        if let Some(columns) = &self.columns {
            if columns.is_empty() {
                return Err("`policy.columns` is empty: name the columns that jobs may use, or remove it".into());
            }
            if let Some(twice) = columns.iter().enumerate().find_map(|(i, c)| columns[..i].contains(c).then_some(c)) {
                return Err(format!("`policy.columns` names {twice:?} twice"));
            }
        }
        Ok(Policy {
            approve: self.approve,
            max_iterations_per_job: self.max_iterations_per_job,
            analysts: self.analysts,
            models: self.models,
            max_epsilon_per_job: self.max_epsilon_per_job,
            max_epsilon_per_analyst: self.max_epsilon_per_analyst,
            releases,
            min_noise_sd: self.min_noise_sd,
            min_noise_multiplier: self.min_noise_multiplier,
            columns: self.columns,
            max_memory_mib: self.max_memory_mib,
            reply_delay: self.reply_delay_ms,
            tell_budget: self.tell_budget,
            over_commit: self.over_commit,
            site_parameters: self.site_parameters,
        })
    }
}

/// Maximum delay in milliseconds: after more than a minute the coordinator would consider the party gone.
const MAX_REPLY_DELAY_MS: f64 = 60_000.0;

fn reply_delay(value: &Value) -> Result<ReplyDelay, Fault> {
    let millis = match value {
        Value::String(word) if word == "auto" => return Ok(ReplyDelay::Auto),
        Value::Integer(0) => return Ok(ReplyDelay::Off),
        Value::Integer(millis) => *millis as f64,
        Value::Float(millis) => *millis,
        _ => f64::NAN,
    };
    if millis > 0.0 && millis <= MAX_REPLY_DELAY_MS {
        return Ok(ReplyDelay::Fixed(Duration::from_secs_f64(millis * 1e-3)));
    }
    let message =
        format!("must be \"auto\", or a number of milliseconds up to {MAX_REPLY_DELAY_MS}, 0 for no delay, not {value}");
    Err(Fault::of(message))
}
