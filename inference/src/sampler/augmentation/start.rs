//! The starting points of chains: the job's own, around the mode of the release, or a draw from the prior.

use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::chain::Start;
use super::variates::normal;
use crate::sampler::surrogate::Mode;
use crate::sampler::target::Target;

/// Ratio of the starting values' variance to the posterior's.
const START_VARIANCE: f64 = 2.0;
/// Number of starts that may fall outside the parameter box before the centre is used.
const TRIES: usize = 100;
/// Best step length of a walk along one coordinate, in sds given the others.
const STEP: f64 = 2.4;
/// Part of a chain's streams that its start uses; see [`super::chain`].
const STREAM: u64 = 0xffff_ffff_0000_0000;

/// Returns the generator for a chain's start.
pub(super) fn stream(target: &Target, chain: u32) -> ChaCha20Rng {
    let mut rng = ChaCha20Rng::seed_from_u64(target.spec.sampler.seed);
    rng.set_stream(STREAM | u64::from(chain));
    rng
}

/// Returns every chain's theta if the job states it.
pub(super) fn configured(target: &Target) -> Option<Vec<f64>> {
    target.spec.sampler.start.clone()
}

/// Returns the centre of the prior.
pub(super) fn centre(target: &Target) -> Vec<f64> {
    target.space.theta_inside(&target.spec, &target.space.location)
}

/// Returns every chain's start: the job's own, or scattered around the mode more widely than the posterior.
pub(super) fn scattered_starts(target: &Target, mode: &Mode) -> Vec<Start> {
    let steps: Arc<[f64]> = mode.sd.iter().map(|sd| STEP * sd).collect();
    let width = |j: usize| (START_VARIANCE * mode.sd[j] * mode.sd[j] + mode.error_sd[j] * mode.error_sd[j]).sqrt();
    let scattered = |chain: u32| {
        let mut rng = stream(target, chain);
        let mut u = mode.u.clone();
        for (j, (x, interval)) in u.iter_mut().zip(&target.space.boxes).enumerate() {
            let centre = *x;
            for _ in 0..TRIES {
                let candidate = centre + width(j) * normal(&mut rng);
                if interval.contains(candidate) {
                    *x = candidate;
                    break;
                }
            }
        }
        target.space.theta_inside(&target.spec, &u)
    };
    let theta = |chain| configured(target).unwrap_or_else(|| scattered(chain));
    (0..target.spec.sampler.chains).map(|id| Start { id, theta: theta(id), steps: Arc::clone(&steps) }).collect()
}
