//! `[sampler]`: how the chains run.

use std::collections::BTreeMap;

use super::known_parameters;
use crate::job::raw::{RawRadius, RawSampler, RawWarmup};
use crate::job::{Interval, JobError, MAX_CHAINS, ProposalKind, Radius, SamplerSpec, Warmup};

const DEFAULT_LOCATE_SHARE: f64 = 0.2;

pub(super) fn sampler(raw: RawSampler, names: &[String], support: &[Interval]) -> Result<SamplerSpec, JobError> {
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
    if chains == 1 && matches!(warmup, Warmup::UntilRhat { .. }) {
        return Err(JobError::new("sampler.warmup", "`until_rhat` compares chains: run at least two"));
    }
    let radius = radius(raw.proposal.radius, names, support)?;
    let records_guess = raw.records_guess.map(records_guess).transpose()?;
    Ok(SamplerSpec { chains, draws, warmup, proposal, radius, seed: raw.seed, locate_share, start, records_guess })
}

fn records_guess(value: i64) -> Result<u64, JobError> {
    let guess = u64::try_from(value).ok().filter(|v| (1..=1_000_000_000_000).contains(v));
    guess.ok_or_else(|| JobError::new("sampler.records_guess", format!("must be a number of records, at least 1, not {value}")))
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

fn radius(raw: RawRadius, names: &[String], support: &[Interval]) -> Result<Radius, JobError> {
    const KEY: &str = "sampler.proposal.radius";
    let positive = |v: f64| {
        if v.is_finite() && v > 0.0 { Ok(v) } else { Err(JobError::new(KEY, format!("must be positive, not {v}"))) }
    };
    match raw {
        RawRadius::Word(w) if w == "auto" => Ok(Radius::Auto),
        RawRadius::Word(w) => Err(JobError::new(KEY, format!("must be \"auto\", a number or a table of numbers, not \"{w}\""))),
        RawRadius::One(v) => within_box(vec![positive(v)?; names.len()], names, support),
        RawRadius::Each(each) => {
            known_parameters(KEY, each.keys(), names, &[])?;
            let one = |n: &String| {
                let missing = || JobError::new(KEY, format!("no radius for parameter `{n}`"));
                positive(*each.get(n).ok_or_else(missing)?)
            };
            within_box(names.iter().map(one).collect::<Result<_, _>>()?, names, support)
        }
    }
}

/// A radius beyond the box would only ever propose what the prior forbids.
fn within_box(radii: Vec<f64>, names: &[String], support: &[Interval]) -> Result<Radius, JobError> {
    match radii.iter().zip(names).zip(support).find(|((r, _), i)| **r > (i.max - i.min) / 2.0) {
        None => Ok(Radius::Fixed(radii)),
        Some(((r, name), _)) => {
            let message = format!("{r} is more than half the width of the parameter box of `{name}`");
            Err(JobError::new("sampler.proposal.radius", message))
        }
    }
}
