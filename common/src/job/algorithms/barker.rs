//! `algorithm = "barker"`: its correction, and the noise and moves that its test permits.

use super::declaration::{Declaration, OwnSettings, RATIO_BY_RATIO, noise_of_answers};
use crate::job::error::JobError;
use crate::job::privacy_spec::ClipRule;
use crate::job::raw::RawSampler;
use crate::job::sampler_spec::{BarkerSpec, ProposalKind, Radius};
use crate::job::spec::JobSpec;
use conclave_privacy::accounting::SamplingProbability;
use conclave_privacy::mechanism::{NoiseScale, QueryKind};

/// The variances of normal noise for which a correction exists.
const CORRECTIONS: [f64; 3] = [2.0, 1.5, 1.0];
/// The least share of that variance for the parties' noise, if samples use some of it.
const LEAST_LEFT: f64 = 0.1;
/// The relative excess of a variance that is accepted, to allow for a rounded standard deviation in the file.
const SLIP: f64 = 1e-4;

pub(super) const BARKER: Declaration = Declaration {
    name: "barker",
    asks: |kind| matches!(kind, QueryKind::Ratio | QueryKind::SampledRatio | QueryKind::SecondMoment | QueryKind::ClipCount),
    releases: |_| vec!["ratio"],
    walks_on_ratios: true,
    own_keys: &["correction", "batch"],
    protocol: |_| 5,
    asked_for: |spec| {
        let sampled = match spec.privacy.blocks {
            Some(_) => {
                "; while the chains run, each number comes from a fresh secret sample of the records, and occasionally one is a sum of \
                 squares over all of them"
            }
            None => "",
        };
        format!("{RATIO_BY_RATIO}{sampled}")
    },
    noise: |_, sd| {
        let corrected = "The chain’s acceptance step uses it as part of its own randomness and corrects for the rest (Barker’s test by Heikkilä, Jälkö, Dikmen & \
     Honkela, 2019), approximately: the draws are close to those of the posterior that all records in one place would have given.";
        noise_of_answers(sd, "log-likelihood units", corrected)
    },
    settings: |raw| Ok(OwnSettings { barker: settings(raw)?, ..OwnSettings::default() }),
    resolve,
    ..Declaration::OF_RATIOS
};

fn settings(raw: &RawSampler) -> Result<BarkerSpec, JobError> {
    let Some(correction) = raw.correction else { return Ok(BarkerSpec::default()) };
    if CORRECTIONS.contains(&correction) {
        return Ok(BarkerSpec { correction });
    }
    let message = format!(
        "must be 2, 1.5 or 1, not {correction}: the variance of the corrected noise; a larger one makes each release cheaper, a \
         smaller one brings the draws closer to the posterior"
    );
    Err(JobError::new("sampler.correction", message))
}

/// Sets the noise to the largest that the test permits, if the job leaves it open, and otherwise checks the job's noise.
///
/// # Errors
/// More noise, longer moves or smaller samples than the test permits; samples without the clip, the one-coordinate moves or the
/// search from which their variance is computed.
fn resolve(mut spec: JobSpec, auto_noise: bool) -> Result<JobSpec, JobError> {
    if spec.sampler.batch != SamplingProbability::ONE {
        of_samples(&spec)?;
    }
    let room = room(&spec)?;
    if auto_noise {
        spec.privacy.noise = noise_within(room, &spec)?;
    } else if spec.ratio_variance() > room {
        let rounded_up = spec.ratio_variance() <= room * (1.0 + SLIP);
        let most = (room / spec.parties.len() as f64).sqrt() * spec.sampler.batch.get();
        if !rounded_up {
            let message = format!(
                "must be at most {most:.4}, not {:.4}: the total noise variance of all parties may be at most {room:.3}{}; leave it \
                 at \"auto\"",
                spec.privacy.noise.sd(),
                if spec.sampler.batch == SamplingProbability::ONE { "" } else { ", scaled up from a sample to all records" }
            );
            return Err(JobError::new("privacy.noise_sd", message));
        }
        spec.privacy.noise = noise_within(room, &spec)?;
    }
    Ok(spec)
}

/// Returns the largest noise scale of a party for which the total noise has at most this variance at the receiver. Rounded down,
/// whereas scales are usually rounded up.
fn noise_within(variance: f64, spec: &JobSpec) -> Result<NoiseScale, JobError> {
    let fault = |e: conclave_privacy::mechanism::MechanismError| JobError::new("privacy.noise_sd", e.to_string());
    let sd = (variance / spec.parties.len() as f64).sqrt() * spec.sampler.batch.get();
    let above = NoiseScale::from_sd(sd).map_err(fault)?;
    if above.sd() <= sd { Ok(above) } else { NoiseScale::from_units(above.units() - NoiseScale::MULTIPLE).map_err(fault) }
}

/// Returns the variance that is left for the parties' noise. For measured radii the variance of samples is public, since such
/// radii are a fixed multiple of the measured sd. For given radii it is known only after the search, which reserves half of the
/// total.
fn room(spec: &JobSpec) -> Result<f64, JobError> {
    let correction = spec.sampler.barker.correction;
    if spec.sampler.batch != SamplingProbability::ONE && spec.sampler.radius != Radius::Auto {
        return Ok(0.5 * correction);
    }
    let (batch, power) = (spec.sampler.batch.get(), spec.power);
    let move_in_sds = ProposalKind::ONE_COORDINATE * (1.0 + spec.sampler.jitter);
    let room = correction - (1.0 - batch) / batch * power * move_in_sds * move_in_sds;
    if room >= LEAST_LEFT * correction {
        return Ok(room);
    }
    let most = (1.0 - LEAST_LEFT) * correction / (power * move_in_sds * move_in_sds);
    let message = format!(
        "{batch:.4} is too small a sample: sampling would add a variance of {:.2} to a log ratio, out of {correction} in total; use {:.3}, \
         or algorithm = \"sgld\"",
        correction - room,
        // Rounded up, so that the stated value is accepted.
        (1e3 * (1.0 + most).recip()).ceil() / 1e3
    );
    Err(JobError::new("sampler.batch", message))
}

/// Checks the settings that samples require.
fn of_samples(spec: &JobSpec) -> Result<(), JobError> {
    let fault = |key: &str, message: &str| Err(JobError::new(key, message));
    if !matches!(spec.privacy.clip, Some(ClipRule::PerRecord(_))) {
        return fault(
            "privacy.clip",
            "with sampler.batch below 1 set clip to a number, the bound on a record's log ratio: subsampled releases are charged in \
             blocks with one common bound",
        );
    }
    if !matches!(spec.sampler.proposal, ProposalKind::Guided | ProposalKind::Componentwise) {
        return fault(
            "sampler.proposal.kind",
            "with sampler.batch below 1 must be guided or componentwise: the sampling variance is computed from each coordinate's curvature",
        );
    }
    if spec.sampler.radius != Radius::Auto && spec.sampler.locate_share == 0.0 {
        return fault(
            "sampler.proposal.radius",
            "with sampler.batch below 1 leave it at \"auto\", or set locate_share: the sampling variance is computed from the curvature that a \
             search measures",
        );
    }
    Ok(())
}

#[cfg(test)]
#[path = "../tests/barker.rs"]
mod tests;
