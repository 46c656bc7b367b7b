//! `[sampler]`: the settings of the chains.

use std::collections::BTreeMap;

use super::batch;
use super::checks::known_parameters;
use super::parameters::{Parameters, simplexes};
use crate::job::algorithm::Algorithm;
use crate::job::algorithms::{MOST_PARAMETERS, OwnSettings, UsualLength};
use crate::job::error::JobError;
use crate::job::raw::{RawProposal, RawRadius, RawSampler, RawStart, RawUntil};
use crate::job::sampler_spec::{Locate, OpsSpec, ProposalKind, Radius, SamplerSpec, Until, Warmup};
use crate::job::spec::JobSpec;
use crate::job::weights::Weights;
use crate::job::{RHAT, ess_wanted};
use crate::parameter::{Interval, Transform};

const DEFAULT_LOCATE_SHARE: f64 = 0.2;
/// Gradients provide more information at a lower price.
const DEFAULT_LOCATE_SHARE_BY_GRADIENTS: f64 = 0.05;
/// A search that also learns the frame of weighted chains takes several more stages.
const DEFAULT_LOCATE_SHARE_OF_FRAMES: f64 = 0.15;
/// Default warm-up, in sweeps.
const DEFAULT_WARMUP: Warmup = Warmup::Sweeps(100);

pub(super) fn sampler(
    raw: RawSampler,
    (algorithm, weights): (Algorithm, Weights),
    parameters: &Parameters<'_>,
) -> Result<SamplerSpec, JobError> {
    let OwnSettings { hmc, barker, stochastic, ops } = (algorithm.declaration().settings)(&raw)?;
    let of_choices = algorithm == Algorithm::Ops;
    let usual = algorithm.declaration().usual_length;
    let (chains, draws) = (raw.chains.unwrap_or(usual.chains), raw.draws.unwrap_or(usual.draws.into()));
    let RawProposal { kind: proposal, radius, rotate, jitter } = raw.proposal;
    let both = raw.start.is_some() && raw.starts.is_some();
    let start = match raw.start {
        None => None,
        Some(RawStart::Values(values)) => Some(start("sampler.start", &values, parameters)?),
        Some(RawStart::Ops) if algorithm.is_unadjusted() => None,
        Some(RawStart::Ops) => {
            let message = format!(
                "\"ops\" starts chains of stochastic gradients only (sgld, sghmc, sgnht and sgfs), but this job's algorithm is \"{}\": give a \
                 table of values, or leave it out",
                algorithm.as_str()
            );
            return Err(JobError::new("sampler.start", message));
        }
    };
    let starts = raw.starts.map(|s| starts(&s, chains, parameters)).transpose()?;
    if both {
        return Err(JobError::new("sampler.starts", "set either start, for all chains, or starts, one table for each"));
    }
    let given = start.is_some() || starts.is_some();
    // Gradient-driven chains have the share of their search in their own settings.
    let written = raw.locate_share.filter(|_| !algorithm.follows_gradients());
    if raw.locate.is_some() && !algorithm.takes("locate") {
        let name = algorithm.as_str();
        let message = format!("applies to algorithm = \"penalty\" and \"ops\": \"{name}\" has its own search for the mode");
        return Err(JobError::new("sampler.locate", message));
    }
    let locate = raw.locate.unwrap_or_default();
    let searching = match locate {
        Locate::Ratios => DEFAULT_LOCATE_SHARE,
        Locate::Gradients if weights != Weights::Never => DEFAULT_LOCATE_SHARE_OF_FRAMES,
        Locate::Gradients => DEFAULT_LOCATE_SHARE_BY_GRADIENTS,
    };
    let locate_share = written.unwrap_or(if given && !of_choices { 0.0 } else { searching });
    // Without a search, a choice is among candidates spread over the prior.
    if locate_share == 0.0 && !given && !of_choices {
        return Err(JobError::new(
            "sampler.locate_share",
            "0 needs starting values: give [sampler] start = { … }, or leave locate_share out to search for the mode first",
        ));
    }
    if raw.locate.is_some() && locate_share == 0.0 {
        let message = "the job sets starting values, so there is no search for the mode: leave locate out, or set locate_share";
        return Err(JobError::new("sampler.locate", message));
    }
    let warmup = raw.warmup.unwrap_or(DEFAULT_WARMUP);
    if chains == 1 && matches!(warmup, Warmup::UntilRhat { .. }) {
        return Err(JobError::new("sampler.warmup", "`until_rhat` compares chains: run at least two"));
    }
    // Missing targets are those of the verdict on the draws.
    let until =
        raw.until.map(|RawUntil { ess, rhat }| Until { ess: ess.unwrap_or(ess_wanted(chains)), rhat: rhat.unwrap_or(RHAT) });
    if chains == 1 && until.is_some() {
        return Err(JobError::new("sampler.until", "`until` compares chains: run at least two"));
    }
    let radius = fixed_radius(radius, parameters)?;
    if starts.is_some() && !algorithm.follows_gradients() && (locate_share > 0.0 || radius == Radius::Auto) {
        return Err(JobError::new(
            "sampler.starts",
            "chains with starting values of their own run without a search: leave locate_share out, and set proposal.radius to numbers",
        ));
    }
    if rotate {
        rotation(proposal, &radius, warmup)?;
    }
    Ok(SamplerSpec {
        chains,
        chains_named: raw.chains.is_some(),
        draws,
        warmup,
        proposal,
        radius,
        rotate,
        jitter,
        seed: raw.seed,
        locate,
        locate_share,
        start,
        starts,
        records_guess: raw.records_guess,
        force: raw.force,
        until,
        hmc,
        barker,
        stochastic,
        ops,
        batch: batch::batch(algorithm, raw.batch)?,
    })
}

/// Checks that the model has gradients if the mode is to be found by them.
///
/// # Errors
/// A model without them, or more parameters than one release can contain.
pub(super) fn check(spec: &JobSpec) -> Result<(), JobError> {
    if spec.sampler.locate != Locate::Gradients {
        return Ok(());
    }
    match spec.build_model().scores().map(|scores| scores.parameters()) {
        None => {
            let message = format!("the model `{}` has no gradient that could be released: leave locate out", spec.model.kind());
            Err(JobError::new("sampler.locate", message))
        }
        Some(parameters) if parameters > MOST_PARAMETERS => {
            let message =
                format!("there are {parameters} parameters, but a gradient with its information holds at most {MOST_PARAMETERS}");
            Err(JobError::new("sampler.locate", message))
        }
        Some(_) => Ok(()),
    }
}

/// Resets the search of a chain of ratios, and its share unless the job set one.
pub(super) fn forget_locate(spec: &mut SamplerSpec) {
    let usual = [DEFAULT_LOCATE_SHARE_BY_GRADIENTS, DEFAULT_LOCATE_SHARE_OF_FRAMES];
    if spec.locate == Locate::Gradients && usual.contains(&spec.locate_share) {
        spec.locate_share = DEFAULT_LOCATE_SHARE;
    }
    spec.locate = Locate::default();
}

/// Sets the default numbers of chains and draws.
pub(super) fn usual_length(spec: &mut SamplerSpec, algorithm: Algorithm) {
    let UsualLength { chains, draws } = algorithm.declaration().usual_length;
    (spec.chains, spec.draws, spec.chains_named) = (chains, draws.into(), false);
    spec.ops = OpsSpec::default();
}

/// Checks the settings that rotated moves require.
fn rotation(proposal: ProposalKind, radius: &Radius, warmup: Warmup) -> Result<(), JobError> {
    let fault = |message: &str| Err(JobError::new("sampler.proposal.rotate", message));
    match (proposal, radius, warmup) {
        (ProposalKind::TruncatedWalk, ..) => fault("truncated_walk bounds each coordinate's move and can't rotate; use guided"),
        (_, Radius::Fixed(_), _) => fault("radii along axes that are still unknown can't be set: use radius = \"auto\""),
        (_, _, Warmup::Sweeps(0)) => fault("the axes are found in the warm-up: set a positive number of sweeps"),
        _ => Ok(()),
    }
}

/// Permitted distance of the sum of a simplex's starting values from 1.
const SIMPLEX_SLIP: f64 = 1e-6;

fn starts(raw: &[BTreeMap<String, f64>], chains: u32, parameters: &Parameters<'_>) -> Result<Vec<Vec<f64>>, JobError> {
    if raw.len() != chains as usize {
        let message = format!("{} tables for {chains} chains: give each chain its own", raw.len());
        return Err(JobError::new("sampler.starts", message));
    }
    raw.iter().enumerate().map(|(chain, values)| start(&format!("sampler.starts[{chain}]"), values, parameters)).collect()
}

fn start(table: &str, raw: &BTreeMap<String, f64>, parameters: &Parameters<'_>) -> Result<Vec<f64>, JobError> {
    let Parameters { names, constraints, priors, support } = *parameters;
    known_parameters(table, raw.keys(), names, &[])?;
    let mut values = Vec::new();
    for ((name, interval), prior) in names.iter().zip(support).zip(priors) {
        let key = || format!("{table}.{name}");
        let Some(value) = raw.get(name).copied() else {
            return Err(JobError::new(table, format!("no starting value for parameter `{name}`")));
        };
        if !interval.contains(value) {
            let Interval { min, max } = interval;
            return Err(JobError::new(key(), format!("{value} lies outside the parameter box, {min} to {max}")));
        }
        if !prior.log_density(value).is_finite() {
            return Err(JobError::new(key(), format!("{value} lies at the edge of the prior {prior}: start inside")));
        }
        values.push(value);
    }
    for (first, size) in simplexes(constraints) {
        let sum: f64 = values[first..first + size].iter().sum();
        if (sum - 1.0).abs() > SIMPLEX_SLIP {
            let message = format!("these {size} probabilities add up to {sum}, not 1");
            return Err(JobError::new(format!("{table}.{}", names[first]), message));
        }
    }
    Ok(values)
}

fn fixed_radius(raw: RawRadius, parameters: &Parameters<'_>) -> Result<Radius, JobError> {
    const KEY: &str = "sampler.proposal.radius";
    let names = parameters.names;
    match raw {
        RawRadius::Auto => Ok(Radius::Auto),
        RawRadius::One(radius) => within_box(vec![radius; names.len()], parameters),
        RawRadius::Each(each) => {
            known_parameters(KEY, each.keys(), names, &[])?;
            let missing = |name: &String| JobError::new(KEY, format!("no radius for parameter `{name}`"));
            let one = |name: &String| each.get(name).copied().ok_or_else(|| missing(name));
            within_box(names.iter().map(one).collect::<Result<_, _>>()?, parameters)
        }
    }
}

/// Checks that no radius exceeds the box, where every proposal would be outside the prior's support.
fn within_box(radii: Vec<f64>, parameters: &Parameters<'_>) -> Result<Radius, JobError> {
    let transform = Transform::new(parameters.constraints);
    let boxes = transform.unconstrained_box(parameters.support);
    let beyond = transform.parameters().into_iter().zip(boxes).find(|(p, i)| radii[*p] > (i.max - i.min) / 2.0);
    match beyond {
        None => Ok(Radius::Fixed(radii)),
        Some((p, _)) => {
            let (r, name) = (radii[p], &parameters.names[p]);
            let message = format!("{r} is more than half the width of the parameter box of `{name}`");
            Err(JobError::new("sampler.proposal.radius", message))
        }
    }
}
