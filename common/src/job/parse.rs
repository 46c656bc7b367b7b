//! From the file's text to a valid [`JobSpec`].

use std::collections::{BTreeMap, BTreeSet};

use super::keys::{self, nearest};
use super::raw::{AutoOr, KEYS, RawColumn, RawInterval, RawJob, RawModel, RawPrivacy, RawRadius, RawSampler, RawWarmup};
use super::{
    Algorithm, ColumnSpec, DEFAULT_BOX, Interval, JobError, JobSpec, MAX_CHAINS, ModelSpec, PrivacySpec, ProposalKind, Radius,
    SamplerSpec, Warmup, model_spec,
};
use crate::accounting::Budget;
use crate::mechanism::NoiseScale;
use crate::prior::Prior;

const DEFAULT_PRIOR: &str = "normal(0, 2.5)";
const DEFAULT_LOCATE_SHARE: f64 = 0.2;
const MAX_PARTIES: usize = 10_000;

pub(super) fn parse(text: &str) -> Result<JobSpec, JobError> {
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| JobError::new("job", e.to_string()))?;
    keys::check(&table, &KEYS).map_err(|e| JobError::new(e.path.clone(), e.to_string()))?;
    let raw: RawJob = toml::from_str(text).map_err(|e| JobError::new("job", e.to_string()))?;

    if raw.name.trim().is_empty() {
        return Err(JobError::new("name", "give the job a name"));
    }
    let algorithm = algorithm(&raw.algorithm)?;
    let parties = parties(raw.parties)?;
    let columns = columns(&raw.columns)?;
    let model = model(raw.model, &columns)?;
    let names = model.parameter_names();
    let priors = priors(&raw.prior, &names)?;
    let support = support(&raw.parameters, &names)?;
    let sampler = sampler(raw.sampler, &names, &support)?;
    let privacy = privacy(&raw.privacy, sampler.proposal, parties.len())?;
    Ok(JobSpec { name: raw.name, algorithm, parties, model, columns, priors, support, sampler, privacy })
}

fn algorithm(name: &str) -> Result<Algorithm, JobError> {
    match name {
        "penalty" => Ok(Algorithm::Penalty),
        "penalty-exp-family" => Err(JobError::new("algorithm", "`penalty-exp-family` is not built yet; use `penalty`")),
        other => Err(JobError::new("algorithm", format!("unknown algorithm `{other}`; use `penalty`"))),
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
        if !seen.insert(name.as_str()) {
            return Err(JobError::new("parties", format!("party `{name}` is named twice; its records would count twice")));
        }
    }
    Ok(names)
}

fn columns(raw: &BTreeMap<String, RawColumn>) -> Result<BTreeMap<String, ColumnSpec>, JobError> {
    raw.iter().map(|(name, c)| Ok((name.clone(), column(name, c)?))).collect()
}

fn column(name: &str, raw: &RawColumn) -> Result<ColumnSpec, JobError> {
    let key = format!("columns.{name}");
    match (raw.min, raw.max, raw.binary, &raw.levels) {
        (_, _, _, Some(_)) => {
            Err(JobError::new(key, "categorical columns (`levels`) are not built yet; code them as 0/1 columns"))
        }
        (None, None, Some(true), None) => Ok(ColumnSpec::Binary),
        (Some(min), Some(max), None | Some(false), None) => {
            let width = max / 2.0 - min / 2.0;
            if min < max && width.is_finite() && width >= f64::MIN_POSITIVE {
                Ok(ColumnSpec::Numeric { min, max })
            } else {
                Err(JobError::new(key, format!("bounds must be finite with min < max, not min = {min}, max = {max}")))
            }
        }
        _ => Err(JobError::new(key, "declare either { min = …, max = … } or { binary = true }")),
    }
}

fn model(raw: RawModel, columns: &BTreeMap<String, ColumnSpec>) -> Result<ModelSpec, JobError> {
    let spec = match raw.kind.as_str() {
        "logistic" => {
            absent("model.sd", &raw.kind, raw.sd.is_some())?;
            ModelSpec::Logistic {
                outcome: required("model.outcome", raw.outcome)?,
                predictors: required("model.predictors", raw.predictors)?,
                intercept: raw.intercept.unwrap_or(true),
            }
        }
        "gaussian_mean" => {
            absent("model.predictors", &raw.kind, raw.predictors.is_some())?;
            absent("model.intercept", &raw.kind, raw.intercept.is_some())?;
            let sd = required("model.sd", raw.sd)?;
            if !(sd.is_finite() && sd > 0.0) {
                return Err(JobError::new("model.sd", format!("the known standard deviation must be positive, not {sd}")));
            }
            ModelSpec::GaussianMean { outcome: required("model.outcome", raw.outcome)?, sd }
        }
        kind if model_spec::NOT_BUILT.contains(&kind) => {
            let built = model_spec::BUILT.join(", ");
            return Err(JobError::new("model.kind", format!("the model `{kind}` is not built yet; built are {built}")));
        }
        kind => {
            let known = model_spec::BUILT;
            let hint = nearest(kind, known.iter().copied()).map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default();
            return Err(JobError::new("model.kind", format!("unknown model `{kind}`{hint}; known are {}", known.join(", "))));
        }
    };
    check_columns(&spec, columns)?;
    Ok(spec)
}

fn check_columns(spec: &ModelSpec, columns: &BTreeMap<String, ColumnSpec>) -> Result<(), JobError> {
    let bounds = |role: &str, name: &str| {
        columns.get(name).copied().ok_or_else(|| {
            let hint =
                nearest(name, columns.keys().map(String::as_str)).map(|n| format!(" (`{n}` has; a slip?)")).unwrap_or_default();
            let remedy = format!("add `{name} = {{ min = …, max = … }}` or `{name} = {{ binary = true }}` under [columns]");
            JobError::new(format!("columns.{name}"), format!("the {role} `{name}` has no public bounds{hint}; {remedy}"))
        })
    };
    let outcome = bounds("outcome", spec.outcome())?;
    let mut seen = BTreeSet::from([spec.outcome()]);
    for name in spec.predictors() {
        bounds("predictor", name)?;
        if !seen.insert(name) {
            return Err(JobError::new("model.predictors", format!("column `{name}` is used twice in the model")));
        }
    }
    match (spec, outcome) {
        (ModelSpec::Logistic { .. }, ColumnSpec::Numeric { .. }) => Err(JobError::new(
            format!("columns.{}", spec.outcome()),
            "the outcome of a logistic model must be declared { binary = true }",
        )),
        (ModelSpec::GaussianMean { .. }, ColumnSpec::Binary) => Err(JobError::new(
            format!("columns.{}", spec.outcome()),
            "the outcome of gaussian_mean must be declared { min = …, max = … }",
        )),
        (ModelSpec::Logistic { intercept, predictors, .. }, _) if *intercept && predictors.iter().any(|p| p == "intercept") => {
            Err(JobError::new("model.predictors", "a predictor named `intercept` collides with the intercept; rename the column"))
        }
        (ModelSpec::Logistic { intercept: false, predictors, .. }, _) if predictors.is_empty() => {
            Err(JobError::new("model.predictors", "a model without intercept needs at least one predictor"))
        }
        _ => Ok(()),
    }
}

fn priors(raw: &BTreeMap<String, String>, names: &[String]) -> Result<Vec<Prior>, JobError> {
    known_parameters("prior", raw.keys(), names, &["default"])?;
    let default = raw.get("default").map_or(DEFAULT_PRIOR, String::as_str);
    let read = |key: &str, text: &str| Prior::parse(text).map_err(|e| JobError::new(format!("prior.{key}"), e.to_string()));
    read("default", default)?;
    names.iter().map(|n| raw.get(n).map_or_else(|| read("default", default), |text| read(n, text))).collect()
}

fn support(raw: &BTreeMap<String, RawInterval>, names: &[String]) -> Result<Vec<Interval>, JobError> {
    known_parameters("parameters", raw.keys(), names, &[])?;
    let one = |name: &String| {
        let written = raw.get(name);
        let min = written.and_then(|i| i.min).unwrap_or(-DEFAULT_BOX);
        let max = written.and_then(|i| i.max).unwrap_or(DEFAULT_BOX);
        if min < max && min.is_finite() && max.is_finite() {
            Ok(Interval { min, max })
        } else {
            Err(JobError::new(format!("parameters.{name}"), format!("needs finite min < max, not min = {min}, max = {max}")))
        }
    };
    names.iter().map(one).collect()
}

fn sampler(raw: RawSampler, names: &[String], support: &[Interval]) -> Result<SamplerSpec, JobError> {
    let count = |key: &str, value: i64, max: i64| {
        u64::try_from(value)
            .ok()
            .filter(|v| (1..=max.unsigned_abs()).contains(v))
            .ok_or_else(|| JobError::new(format!("sampler.{key}"), format!("must be between 1 and {max}, not {value}")))
    };
    let chains = u32::try_from(count("chains", raw.chains, i64::from(MAX_CHAINS))?).unwrap_or(MAX_CHAINS);
    let draws = count("draws", raw.draws, 100_000_000)?;
    let proposal = match raw.proposal.kind.as_str() {
        "guided" => ProposalKind::Guided,
        "componentwise" => ProposalKind::Componentwise,
        "random_walk" => ProposalKind::RandomWalk,
        "truncated_walk" => {
            return Err(JobError::new(
                "sampler.proposal.kind",
                "`truncated_walk` is not built yet; use guided, componentwise or random_walk",
            ));
        }
        other => {
            let known = "guided, componentwise, random_walk";
            return Err(JobError::new("sampler.proposal.kind", format!("unknown proposal `{other}`; known are {known}")));
        }
    };
    let start = raw.start.map(|s| start(&s, names, support)).transpose()?;
    let locate_share = raw.locate_share.unwrap_or(if start.is_some() { 0.0 } else { DEFAULT_LOCATE_SHARE });
    if !(0.0..1.0).contains(&locate_share) {
        return Err(JobError::new("sampler.locate_share", format!("must be at least 0 and below 1, not {locate_share}")));
    }
    if locate_share == 0.0 && start.is_none() {
        return Err(JobError::new(
            "sampler.locate_share",
            "0 needs starting values: give [sampler] start = { … }, or leave locate_share out to have the mode found first",
        ));
    }
    let warmup = warmup(&raw.warmup)?;
    let radius = radius(raw.proposal.radius, names)?;
    Ok(SamplerSpec { chains, draws, warmup, proposal, radius, seed: raw.seed, locate_share, start })
}

fn warmup(raw: &RawWarmup) -> Result<Warmup, JobError> {
    let sweeps = |value: i64, least: u64| {
        u64::try_from(value)
            .ok()
            .filter(|v| (least..=100_000_000).contains(v))
            .ok_or_else(|| JobError::new("sampler.warmup", format!("must be between {least} and 100000000 sweeps, not {value}")))
    };
    match *raw {
        RawWarmup::Sweeps(n) => Ok(Warmup::Sweeps(sweeps(n, 0)?)),
        RawWarmup::Until { until_rhat, max } if until_rhat > 1.0 && until_rhat.is_finite() => {
            Ok(Warmup::UntilRhat { rhat: until_rhat, max: sweeps(max, 1)? })
        }
        RawWarmup::Until { until_rhat, .. } => {
            Err(JobError::new("sampler.warmup.until_rhat", format!("must be above 1, not {until_rhat}")))
        }
    }
}

fn start(raw: &BTreeMap<String, f64>, names: &[String], support: &[Interval]) -> Result<Vec<f64>, JobError> {
    known_parameters("sampler.start", raw.keys(), names, &[])?;
    let one = |(name, interval): (&String, &Interval)| match raw.get(name) {
        None => Err(JobError::new("sampler.start", format!("no starting value for parameter `{name}`"))),
        Some(v) if !interval.contains(*v) => {
            Err(JobError::new(format!("sampler.start.{name}"), format!("{v} lies outside the parameter box")))
        }
        Some(v) => Ok(*v),
    };
    names.iter().zip(support).map(one).collect()
}

fn radius(raw: RawRadius, names: &[String]) -> Result<Radius, JobError> {
    const KEY: &str = "sampler.proposal.radius";
    let positive = |v: f64| {
        if v.is_finite() && v > 0.0 { Ok(v) } else { Err(JobError::new(KEY, format!("must be positive, not {v}"))) }
    };
    match raw {
        RawRadius::Word(w) if w == "auto" => Ok(Radius::Auto),
        RawRadius::Word(w) => Err(JobError::new(KEY, format!("must be \"auto\", a number or a table of numbers, not \"{w}\""))),
        RawRadius::One(v) => Ok(Radius::Fixed(vec![positive(v)?; names.len()])),
        RawRadius::Each(each) => {
            known_parameters(KEY, each.keys(), names, &[])?;
            let one = |n: &String| {
                let missing = || JobError::new(KEY, format!("no radius for parameter `{n}`"));
                positive(*each.get(n).ok_or_else(missing)?)
            };
            Ok(Radius::Fixed(names.iter().map(one).collect::<Result<_, _>>()?))
        }
    }
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
    let clip = match &raw.clip {
        None => None,
        Some(AutoOr::Word(w)) if w == "auto" => None,
        Some(AutoOr::Value(v)) if v.is_finite() && *v > 0.0 => Some(*v),
        Some(AutoOr::Value(v)) => return Err(JobError::new("privacy.clip", format!("must be positive, not {v}"))),
        Some(AutoOr::Word(w)) => return Err(JobError::new("privacy.clip", format!("must be \"auto\" or a number, not \"{w}\""))),
    };
    Ok(PrivacySpec { budget, noise, clip })
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

fn absent(key: &str, kind: &str, present: bool) -> Result<(), JobError> {
    if present { Err(JobError::new(key, format!("the model `{kind}` does not take it"))) } else { Ok(()) }
}
