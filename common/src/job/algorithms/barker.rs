//! `algorithm = "barker"`: its correction, and the noise and moves that its test has room for.

use super::declaration::{Declaration, OwnSettings, RATIO_BY_RATIO, noise_of_answers};
use crate::job::error::JobError;
use crate::job::privacy_spec::ClipRule;
use crate::job::raw::RawSampler;
use crate::job::sampler_spec::{BarkerSpec, ProposalKind, Radius};
use crate::job::spec::JobSpec;
use conclave_privacy::accounting::SamplingProbability;
use conclave_privacy::mechanism::{NoiseScale, QueryKind};

/// The variances of normal noise that there is a correction for.
const CORRECTIONS: [f64; 3] = [2.0, 1.5, 1.0];
/// The least part of that variance that is left to the parties where samples take some of it.
const LEAST_LEFT: f64 = 0.1;
/// What a variance may exceed the room by for a standard deviation that was written in so many digits.
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
                "; while the chains run each number is of a fresh hidden sample of the records, and now and then one is a sum of squares over all of them"
            }
            None => "",
        };
        format!("{RATIO_BY_RATIO}{sampled}")
    },
    noise: |_, sd| {
        let corrected = "The chain’s acceptance step takes it for a part of its own randomness and corrects for what is left (Barker’s test by Heikkilä, Jälkö, Dikmen & \
     Honkela, 2019), nearly and not exactly: the draws are close to those of the posterior that all records in one place would have given.";
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
        "must be 2, 1.5 or 1, not {correction}: the variance of the noise that is corrected; the greater, the less each release costs, the \
         smaller, the nearer the draws are to the posterior"
    );
    Err(JobError::new("sampler.correction", message))
}

/// Gives the noise that fills the test's room, where the job leaves it open, and checks what a job asks of it otherwise.
///
/// # Errors
/// More noise, longer moves or smaller samples than there is room for; samples without the clip, the single coordinates or the search
/// that their variance is reckoned from.
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
                "must be at most {most:.4}, not {:.4}: the noise of all parties together is to have a variance of {room:.3} at most{}; leave it \
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

/// The greatest noise of a party at which that of all has at most this variance at the receiver: rounded down, where scales are rounded up.
fn noise_within(variance: f64, spec: &JobSpec) -> Result<NoiseScale, JobError> {
    let fault = |e: conclave_privacy::mechanism::MechanismError| JobError::new("privacy.noise_sd", e.to_string());
    let sd = (variance / spec.parties.len() as f64).sqrt() * spec.sampler.batch.get();
    let above = NoiseScale::from_sd(sd).map_err(fault)?;
    if above.sd() <= sd { Ok(above) } else { NoiseScale::from_units(above.units() - NoiseScale::MULTIPLE).map_err(fault) }
}

/// The variance that is left to the parties: what samples of moves at measured radii can have is public, as such radii are a part of the sd
/// that was measured. Of radii that the job gives it is known after the search alone, and half of the whole is left to it.
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
        "{batch:.4} is too small a sample: what it leaves out would have a variance of {:.2} in a log ratio, of {correction} in all; {:.3} would do, \
         or algorithm = \"sgld\"",
        correction - room,
        // Rounded up: what is named does.
        (1e3 * (1.0 + most).recip()).ceil() / 1e3
    );
    Err(JobError::new("sampler.batch", message))
}

/// What samples ask of the rest.
fn of_samples(spec: &JobSpec) -> Result<(), JobError> {
    let fault = |key: &str, message: &str| Err(JobError::new(key, message));
    if !matches!(spec.privacy.clip, Some(ClipRule::PerRecord(_))) {
        return fault(
            "privacy.clip",
            "with sampler.batch below 1 give clip = a number, the most that a record's log ratio counts for: releases over samples are paid for in \
             blocks, and all of a block have one bound",
        );
    }
    if !matches!(spec.sampler.proposal, ProposalKind::Guided | ProposalKind::Componentwise) {
        return fault(
            "sampler.proposal.kind",
            "with sampler.batch below 1 must be guided or componentwise: how much a sample varies is reckoned from each coordinate's curvature",
        );
    }
    if spec.sampler.radius != Radius::Auto && spec.sampler.locate_share == 0.0 {
        return fault(
            "sampler.proposal.radius",
            "with sampler.batch below 1 leave it at \"auto\", or give a locate_share: how much a sample varies is reckoned from the curvature that a \
             search measures",
        );
    }
    Ok(())
}

#[cfg(test)]
#[path = "../tests/barker.rs"]
mod tests;
