//! From the file's text to a valid [`JobSpec`].

mod exp_family;
mod model;
mod parameters;
mod plan;
mod regression;
mod sampler;

use std::collections::{BTreeMap, BTreeSet};

use parameters::Parameters;

use super::keys::{self, nearest};
use super::raw::{AutoOr, KEYS, RawClip, RawColumn, RawJob, RawLevel, RawPrivacy};
use super::{
    Algorithm, ClipRule, ColumnSpec, JobError, JobSpec, MAX_BOUND, MAX_BYTES, MAX_CHAINS, MAX_COLUMNS, MAX_NAME, ModelSpec,
    PrivacySpec, ProposalKind,
};
use crate::accounting::Budget;
use crate::mechanism::NoiseScale;

const DEFAULT_CLIP_WATCH_SHARE: f64 = 0.02;
const MAX_PARTIES: usize = 10_000;

pub(super) fn parse(text: &str) -> Result<JobSpec, JobError> {
    if text.len() > MAX_BYTES {
        return Err(JobError::new("job", format!("the file has {} bytes; at most {MAX_BYTES} are read", text.len())));
    }
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| JobError::new("job", e.to_string()))?;
    keys::check(&table, &KEYS).map_err(|e| JobError::new(e.path.clone(), e.to_string()))?;
    let raw: RawJob = toml::from_str(text).map_err(|e| JobError::new("job", e.to_string()))?;

    if raw.name.trim().is_empty() {
        return Err(JobError::new("name", "give the job a name"));
    }
    short("name", &raw.name)?;
    if let Some(id) = &raw.extends {
        job_id(id)?;
    }
    let algorithm = algorithm(&raw.algorithm)?;
    let parties = parties(raw.parties)?;
    let columns = columns(&raw.columns)?;
    let power = model::power(&raw.model)?;
    let model = model::model(raw.model, &columns)?;
    let names = model.parameter_names();
    let constraints = model.constraints();
    let units = model.units(&columns);
    let priors = parameters::priors(&raw.prior, &names, &constraints, &units)?;
    let support = parameters::support(&raw.parameters, &names, &constraints, &units, &priors)?;
    let sampler = sampler::sampler(
        raw.sampler,
        &Parameters { names: &names, constraints: &constraints, priors: &priors, support: &support },
    )?;
    let privacy = privacy(&raw.privacy, sampler.proposal, parties.len())?;
    bounded(&model, algorithm, &privacy)?;
    let plan = raw.plan.map(|plan| plan::plan(plan, &parties, &names)).transpose()?;
    let auto_noise = !matches!(raw.privacy.noise_sd, Some(AutoOr::Value(_)));
    let spec = JobSpec {
        name: raw.name,
        extends: raw.extends,
        algorithm,
        parties,
        model,
        power,
        columns,
        priors,
        support,
        sampler,
        privacy,
        plan,
    };
    if spec.privacy.clip.is_some() && spec.sampler.chains >= MAX_CHAINS {
        let message = format!("at most {} with an explicit clip, whose watch asks beside them", MAX_CHAINS - 1);
        return Err(JobError::new("sampler.chains", message));
    }
    exp_family::resolve(spec, auto_noise)
}

/// An id stands in reports and attributes as it is written.
fn job_id(id: &str) -> Result<(), JobError> {
    let plain = id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if !id.is_empty() && id.len() <= MAX_NAME && plain {
        return Ok(());
    }
    Err(JobError::new("extends", "must be the id of a job, as `conclave jobs` shows it"))
}

fn algorithm(name: &str) -> Result<Algorithm, JobError> {
    match name {
        "penalty" => Ok(Algorithm::Penalty),
        "penalty-exp-family" => Ok(Algorithm::PenaltyExpFamily),
        other => Err(JobError::new("algorithm", format!("unknown algorithm `{other}`; use `penalty` or `penalty-exp-family`"))),
    }
}

fn parties(names: Vec<String>) -> Result<Vec<String>, JobError> {
    if names.is_empty() {
        return Err(JobError::new("parties", "name at least one party"));
    }
    if names.len() > MAX_PARTIES {
        return Err(JobError::new("parties", format!("at most {MAX_PARTIES} parties")));
    }
    let mut seen = BTreeSet::new();
    for name in &names {
        short("parties", name)?;
        if !seen.insert(name.as_str()) {
            return Err(JobError::new("parties", format!("party `{name}` is named twice; its records would count twice")));
        }
    }
    Ok(names)
}

fn columns(raw: &BTreeMap<String, RawColumn>) -> Result<BTreeMap<String, ColumnSpec>, JobError> {
    if raw.len() > MAX_COLUMNS {
        return Err(JobError::new("columns", format!("{} are declared; at most {MAX_COLUMNS}", raw.len())));
    }
    raw.iter().map(|(name, c)| short("columns", name).and_then(|()| Ok((name.clone(), column(name, c)?)))).collect()
}

fn short(key: &str, name: &str) -> Result<(), JobError> {
    if name.len() <= MAX_NAME {
        return Ok(());
    }
    let start: String = name.chars().take(20).collect();
    Err(JobError::new(key, format!("`{start}…` is longer than {MAX_NAME} bytes")))
}

fn column(name: &str, raw: &RawColumn) -> Result<ColumnSpec, JobError> {
    let key = format!("columns.{name}");
    match (raw.min, raw.max, raw.binary, &raw.levels) {
        (None, None, None | Some(false), Some(written)) => levels(key, written),
        (None, None, Some(true), None) => Ok(ColumnSpec::Binary),
        (Some(min), Some(max), None | Some(false), None) => {
            let sound = min.abs() <= MAX_BOUND && max.abs() <= MAX_BOUND && max - min >= MAX_BOUND.recip();
            if sound {
                Ok(ColumnSpec::Numeric { min, max })
            } else {
                let limits = format!("within ±{MAX_BOUND:e}, and with min < max");
                Err(JobError::new(key, format!("bounds must be finite, {limits}, not min = {min}, max = {max}")))
            }
        }
        _ => Err(JobError::new(key, "declare either { min = …, max = … }, { binary = true } or { levels = […] }")),
    }
}

/// The most levels of a column: each but the first is a parameter.
const MAX_LEVELS: usize = 256;

fn levels(key: String, written: &[RawLevel]) -> Result<ColumnSpec, JobError> {
    let texts: Vec<String> = written.iter().map(RawLevel::text).collect();
    if !(2..=MAX_LEVELS).contains(&texts.len()) {
        return Err(JobError::new(key, format!("needs 2 to {MAX_LEVELS} levels, not {}", texts.len())));
    }
    for (at, text) in texts.iter().enumerate() {
        short(&key, text)?;
        if text.is_empty() || text.trim() != text || text.chars().any(char::is_control) {
            return Err(JobError::new(
                key,
                format!("the level {text:?} is empty, or has blanks around it or control characters in it"),
            ));
        }
        let before = ColumnSpec::Levels(texts[..at].to_vec());
        if !before.level_of(text).is_nan() {
            return Err(JobError::new(key, format!("the level {text:?} is named twice")));
        }
    }
    Ok(ColumnSpec::Levels(texts))
}

fn privacy(raw: &RawPrivacy, proposal: ProposalKind, parties: usize) -> Result<PrivacySpec, JobError> {
    if !(raw.epsilon.is_finite() && raw.epsilon > 0.0) {
        return Err(JobError::new("privacy.epsilon", format!("must be a positive number, not {}", raw.epsilon)));
    }
    if !(raw.delta > 0.0 && raw.delta < 1.0) {
        return Err(JobError::new("privacy.delta", format!("must lie strictly between 0 and 1, not {}", raw.delta)));
    }
    let budget = Budget::new(raw.epsilon, raw.delta).map_err(|e| JobError::new("privacy", e.to_string()))?;
    let sd = match &raw.noise_sd {
        None => proposal.total_noise_sd() / (parties as f64).sqrt(),
        Some(AutoOr::Word(w)) if w == "auto" => proposal.total_noise_sd() / (parties as f64).sqrt(),
        Some(AutoOr::Value(v)) => *v,
        Some(AutoOr::Word(w)) => {
            return Err(JobError::new("privacy.noise_sd", format!("must be \"auto\" or a number, not \"{w}\"")));
        }
    };
    let noise = NoiseScale::from_sd(sd).map_err(|e| JobError::new("privacy.noise_sd", e.to_string()))?;
    let clip = clip(raw.clip.as_ref())?;
    let clip_watch_share = clip_watch_share(raw.clip_watch_share, clip.is_some())?;
    Ok(PrivacySpec { budget, noise, clip, clip_watch_share })
}

/// The clip watch can't be turned off: a clip that bites displaces the posterior and nothing else shows it.
fn clip_watch_share(raw: Option<f64>, explicit: bool) -> Result<f64, JobError> {
    let wrong = |message: String| Err(JobError::new("privacy.clip_watch_share", message));
    match raw {
        Some(_) if !explicit => wrong("there is no explicit clip to watch: the public bound never cuts a record's ratio".into()),
        Some(share) if share > 0.0 && share <= 0.5 => Ok(share),
        Some(share) => wrong(format!("must be above 0 and at most 0.5, not {share}")),
        None => Ok(if explicit { DEFAULT_CLIP_WATCH_SHARE } else { 0.0 }),
    }
}

/// What a record can contribute is limited by the model's public bound or by an explicit clip.
fn bounded(model: &ModelSpec, algorithm: Algorithm, privacy: &PrivacySpec) -> Result<(), JobError> {
    // Algorithm 3 releases statistics within their public ranges.
    if algorithm == Algorithm::PenaltyExpFamily || privacy.clip.is_some() || model.has_public_bound() {
        return Ok(());
    }
    let message = format!(
        "the model `{}` has no public bound on one record's log ratio, so \"auto\" has nothing to stand for: give clip = {{ slope = … }} \
         (per unit of a step's length) or clip = … (per record)",
        model.kind()
    );
    Err(JobError::new("privacy.clip", message))
}

fn clip(raw: Option<&RawClip>) -> Result<Option<ClipRule>, JobError> {
    let positive = |v: f64| {
        if v.is_finite() && v > 0.0 { Ok(v) } else { Err(JobError::new("privacy.clip", format!("must be positive, not {v}"))) }
    };
    match raw {
        None => Ok(None),
        Some(RawClip::Word(w)) if w == "auto" => Ok(None),
        Some(RawClip::Value(v)) => positive(*v).map(|v| Some(ClipRule::PerRecord(v))),
        Some(RawClip::Slope { slope }) => positive(*slope).map(|v| Some(ClipRule::Slope(v))),
        Some(RawClip::Word(w)) => {
            let message = format!("must be \"auto\", a number or {{ slope = a number }}, not \"{w}\"");
            Err(JobError::new("privacy.clip", message))
        }
    }
}

fn known_parameters<'a>(
    table: &str,
    written: impl Iterator<Item = &'a String>,
    names: &[String],
    also: &[&str],
) -> Result<(), JobError> {
    for key in written {
        if !names.contains(key) && !also.contains(&key.as_str()) {
            let hint =
                nearest(key, names.iter().map(String::as_str)).map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default();
            let message = format!("the model has no parameter `{key}`{hint}; it has {}", names.join(", "));
            return Err(JobError::new(format!("{table}.{key}"), message));
        }
    }
    Ok(())
}

fn required<T>(key: &str, value: Option<T>) -> Result<T, JobError> {
    value.ok_or_else(|| JobError::new(key, "missing; the model needs it"))
}
