//! `[privacy]`: the budget, the noise and the clip of a job.

use super::batch;
use crate::job::error::JobError;
use crate::job::privacy_spec::PrivacySpec;
use crate::job::raw::RawPrivacy;
use crate::job::sampler_spec::ProposalKind;
use conclave_privacy::accounting::{Budget, RESERVE_LOG2, SamplingProbability};
use conclave_privacy::mechanism::NoiseScale;

const DEFAULT_CLIP_WATCH_SHARE: f64 = 0.02;

pub(super) fn privacy(
    raw: &RawPrivacy,
    (proposal, batch): (ProposalKind, SamplingProbability),
    parties: usize,
) -> Result<PrivacySpec, JobError> {
    let (blocks, reserve_units) = batch::blocks(raw, batch)?.unzip();
    let reserve_units = reserve_units.unwrap_or(0);
    let gaussian = raw.delta - reserve_units as f64 / (1_u64 << RESERVE_LOG2) as f64;
    let budget =
        Budget::new(raw.epsilon, gaussian).map_err(|e| JobError::new("privacy", e.to_string()))?.reserving(reserve_units);
    let sd = raw.noise_sd.unwrap_or_else(|| proposal.total_noise_sd() / (parties as f64).sqrt());
    let noise = NoiseScale::from_sd(sd).map_err(|e| JobError::new("privacy.noise_sd", e.to_string()))?;
    let clip = raw.clip.0;
    let clip_watch_share = clip_watch_share(raw.clip_watch_share, clip.is_some())?;
    Ok(PrivacySpec { budget, noise, clip, clip_watch_share, noise_multiplier: raw.noise_multiplier, blocks })
}

/// Reads the share of the clip watch, which cannot be turned off: a clip that cuts many ratios displaces the posterior, and
/// nothing else shows it.
fn clip_watch_share(raw: Option<f64>, explicit: bool) -> Result<f64, JobError> {
    if raw.is_some() && !explicit {
        let message = "there is no explicit clip to watch: the public bound never cuts a record's ratio";
        return Err(JobError::new("privacy.clip_watch_share", message));
    }
    Ok(raw.unwrap_or(if explicit { DEFAULT_CLIP_WATCH_SHARE } else { 0.0 }))
}
