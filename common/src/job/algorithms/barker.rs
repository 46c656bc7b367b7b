//! `algorithm = "barker"`: the correction, and the noise and moves that the test admits.

use super::declaration::{Declaration, OwnSettings, RATIO_QUERIES, noise_of_answers};
use crate::job::error::JobError;
use crate::job::privacy_spec::ClipRule;
use crate::job::raw::RawSampler;
use crate::job::sampler_spec::{BarkerSpec, ProposalKind, Radius};
use crate::job::spec::JobSpec;
use conclave_privacy::accounting::SamplingProbability;
use conclave_privacy::mechanism::{NoiseScale, QueryKind};

/// Variances of normal noise with a correction.
const CORRECTIONS: [f64; 3] = [2.0, 1.5, 1.0];
/// Least share of that variance for the noise of the parties if subsampling takes the rest.
const LEAST_NOISE_SHARE: f64 = 0.1;
/// Largest relative excess of a variance over the admissible one, because job files state rounded sds.
const ROUNDING: f64 = 1e-4;

pub(super) const BARKER: Declaration = Declaration {
    name: "barker",
    asks: |kind| matches!(kind, QueryKind::Ratio | QueryKind::SampledRatio | QueryKind::SecondMoment | QueryKind::ClipCount),
    releases: |_| vec!["ratio"],
    walks_on_ratios: true,
    own_keys: &["correction", "batch"],
    protocol: |_| 5,
    query_description: |spec| {
        let sampled = match spec.privacy.blocks {
            Some(_) => {
                "; while the chains run, each number comes from a fresh secret sample of the records, and occasionally one is a sum \
                 of squares over all of them"
            }
            None => "",
        };
        format!("{RATIO_QUERIES}{sampled}")
    },
    noise: |_, sd| {
        let correction = "The chain’s acceptance step uses it as a part of its own randomness and corrects for the remainder (Barker’s test by \
         Heikkilä, Jälkö, Dikmen & Honkela, 2019), closely but not exactly: the draws nearly follow the posterior of the pooled \
         records.";
        noise_of_answers(sd, "log-likelihood units", correction)
    },
    settings: |raw| Ok(OwnSettings { barker: settings(raw)?, ..OwnSettings::default() }),
    resolve,
    ..Declaration::OF_RATIOS
};

fn settings(raw: &RawSampler) -> Result<BarkerSpec, JobError> {
    let correction = raw.correction;
    if CORRECTIONS.contains(&correction) {
        return Ok(BarkerSpec { correction });
    }
    let message = format!(
        "must be 2, 1.5 or 1, not {correction}: it is the variance of the corrected noise; a larger one makes each release cheaper, a \
         smaller one brings the draws closer to the posterior"
    );
    Err(JobError::new("sampler.correction", message))
}

/// Sets the largest admissible noise if the job does not set the noise, and otherwise checks the job's noise.
///
/// # Errors
/// More noise, longer moves or smaller samples than the test admits; samples without the clip, the single coordinates or the search
/// from which their variance is computed.
fn resolve(mut spec: JobSpec, auto_noise: bool) -> Result<JobSpec, JobError> {
    if spec.sampler.batch != SamplingProbability::ONE {
        check_subsampling(&spec)?;
    }
    let admissible = admissible_variance(&spec)?;
    if auto_noise {
        spec.privacy.noise = noise_within(admissible, &spec)?;
    } else if spec.ratio_variance() > admissible {
        let rounded_up = spec.ratio_variance() <= admissible * (1.0 + ROUNDING);
        let most = (admissible / spec.parties.len() as f64).sqrt() * spec.sampler.batch.get();
        if !rounded_up {
            let message = format!(
                "must be at most {most:.4}, not {:.4}: the noise of all parties together may have a variance of at most {admissible:.3}{}; leave \
                 it at \"auto\"",
                spec.privacy.noise.sd(),
                if spec.sampler.batch == SamplingProbability::ONE { "" } else { ", scaled up from a sample to all records" }
            );
            return Err(JobError::new("privacy.noise_sd", message));
        }
        spec.privacy.noise = noise_within(admissible, &spec)?;
    }
    Ok(spec)
}

/// Returns the largest noise of a party for which the noise of all parties has at most this variance. It is rounded down, although
/// scales are otherwise rounded up.
fn noise_within(variance: f64, spec: &JobSpec) -> Result<NoiseScale, JobError> {
    let fault = |e: conclave_privacy::mechanism::MechanismError| JobError::new("privacy.noise_sd", e.to_string());
    let sd = (variance / spec.parties.len() as f64).sqrt() * spec.sampler.batch.get();
    let above = NoiseScale::from_sd(sd).map_err(fault)?;
    if above.sd() <= sd { Ok(above) } else { NoiseScale::from_units(above.units() - NoiseScale::MULTIPLE).map_err(fault) }
}

/// Returns the admissible variance of the parties' noise. The variance due to subsampling is public at measured radii, since these are
/// a fixed share of the measured sd. At radii set by the job it is known only after the search, and half of the whole is reserved for it.
fn admissible_variance(spec: &JobSpec) -> Result<f64, JobError> {
    let correction = spec.sampler.barker.correction;
    if spec.sampler.batch != SamplingProbability::ONE && spec.sampler.radius != Radius::Auto {
        return Ok(0.5 * correction);
    }
    let (batch, power) = (spec.sampler.batch.get(), spec.power);
    let move_in_sds = ProposalKind::ONE_COORDINATE * (1.0 + spec.sampler.jitter);
    let admissible = correction - (1.0 - batch) / batch * power * move_in_sds * move_in_sds;
    if admissible >= LEAST_NOISE_SHARE * correction {
        return Ok(admissible);
    }
    let most = (1.0 - LEAST_NOISE_SHARE) * correction / (power * move_in_sds * move_in_sds);
    let message = format!(
        "{batch:.4} is too small: the variance of a log ratio due to subsampling would be {:.2} of {correction} in all; set at least {:.3}, or \
         algorithm = \"sgld\"",
        correction - admissible,
        // Rounded up, so that the stated value suffices.
        (1e3 * (1.0 + most).recip()).ceil() / 1e3
    );
    Err(JobError::new("sampler.batch", message))
}

/// Checks the settings that subsampling requires.
fn check_subsampling(spec: &JobSpec) -> Result<(), JobError> {
    let fault = |key: &str, message: &str| Err(JobError::new(key, message));
    if !matches!(spec.privacy.clip, Some(ClipRule::PerRecord(_))) {
        return fault(
            "privacy.clip",
            "with sampler.batch below 1, set clip to a number, the bound of a record's log ratio: subsampled releases are charged in blocks, and all \
             of a block have one bound",
        );
    }
    if !matches!(spec.sampler.proposal, ProposalKind::Guided | ProposalKind::Componentwise) {
        return fault(
            "sampler.proposal.kind",
            "must be guided or componentwise with sampler.batch below 1: the variance due to subsampling is computed from each coordinate's \
             curvature",
        );
    }
    if spec.sampler.radius != Radius::Auto && spec.sampler.locate_share == 0.0 {
        return fault(
            "sampler.proposal.radius",
            "with sampler.batch below 1, leave it at \"auto\" or set a locate_share: the variance due to subsampling is computed from the curvature \
             that a search measures",
        );
    }
    Ok(())
}

#[cfg(test)]
#[path = "../tests/barker.rs"]
mod tests;
