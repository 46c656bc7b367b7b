//! `[privacy]`: the budget, the noise and the clip of a job.

use super::batch;
use crate::job::error::JobError;
use crate::job::privacy_spec::{ClipRule, PrivacySpec};
use crate::job::raw::{AutoOr, RawClip, RawPrivacy};
use crate::job::sampler_spec::ProposalKind;
use conclave_privacy::accounting::{Budget, RESERVE_LOG2, SamplingProbability};
use conclave_privacy::mechanism::NoiseScale;

const DEFAULT_CLIP_WATCH_SHARE: f64 = 0.02;

pub(super) fn privacy(
    raw: &RawPrivacy,
    (proposal, batch): (ProposalKind, SamplingProbability),
    parties: usize,
) -> Result<PrivacySpec, JobError> {
    if !(raw.epsilon.is_finite() && raw.epsilon > 0.0) {
        return Err(JobError::new("privacy.epsilon", format!("must be a positive number, not {}", raw.epsilon)));
    }
    if !(raw.delta > 0.0 && raw.delta < 1.0) {
        return Err(JobError::new("privacy.delta", format!("must lie strictly between 0 and 1, not {}", raw.delta)));
    }
    let (blocks, reserve_units) = batch::blocks(raw, batch)?.unzip();
    let reserve_units = reserve_units.unwrap_or(0);
    let gaussian = raw.delta - reserve_units as f64 / (1_u64 << RESERVE_LOG2) as f64;
    let budget =
        Budget::new(raw.epsilon, gaussian).map_err(|e| JobError::new("privacy", e.to_string()))?.reserving(reserve_units);
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
    let noise_multiplier = noise_multiplier(raw.noise_multiplier)?;
    Ok(PrivacySpec { budget, noise, clip, clip_watch_share, noise_multiplier, blocks })
}

/// The largest noise multiplier. Beyond it a release carries no information.
const MOST_NOISE_MULTIPLIER: f64 = 1e5;

fn noise_multiplier(raw: Option<f64>) -> Result<f64, JobError> {
    match raw {
        Some(value) if !(value > 0.0 && value <= MOST_NOISE_MULTIPLIER) => {
            let message = format!("must be above 0 and at most {MOST_NOISE_MULTIPLIER}, not {value}");
            Err(JobError::new("privacy.noise_multiplier", message))
        }
        value => Ok(value.unwrap_or(0.0)),
    }
}

/// Reads the share of the clip watch, which cannot be turned off: a clip that cuts many ratios displaces the posterior, and
/// nothing else shows it.
fn clip_watch_share(raw: Option<f64>, explicit: bool) -> Result<f64, JobError> {
    let wrong = |message: String| Err(JobError::new("privacy.clip_watch_share", message));
    match raw {
        Some(_) if !explicit => wrong("there is no explicit clip to watch: the public bound never cuts a record's ratio".into()),
        Some(share) if share > 0.0 && share <= 0.5 => Ok(share),
        Some(share) => wrong(format!("must be above 0 and at most 0.5, not {share}")),
        None => Ok(if explicit { DEFAULT_CLIP_WATCH_SHARE } else { 0.0 }),
    }
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
