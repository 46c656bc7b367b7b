//! Keys that a job's algorithm has no use for are refused.

use crate::job::algorithms::Algorithm;
use crate::job::error::JobError;
use crate::job::raw::RawJob;

/// Refuses keys that the algorithm has no use for, by name: one that is not read would leave its writer believing that it was.
pub(super) fn refuse_unused(algorithm: Algorithm, raw: &RawJob) -> Result<(), JobError> {
    let name = algorithm.as_str();
    if algorithm != Algorithm::NoisyStatistics && raw.release.is_some() {
        let message = format!("is for algorithm = \"noisy-statistics\", and this job's is \"{name}\"");
        return Err(JobError::new("release", message));
    }
    let moves = "its chains are not driven by gradients";
    let still = if algorithm.follows_gradients() { "its chains have no momentum" } else { moves };
    let sampler = &raw.sampler;
    let of_others = [
        ("step", sampler.step.is_some(), moves),
        ("friction", sampler.friction.is_some(), still),
        ("test", sampler.test.is_some(), "which test ends a step is for hmc to be told"),
        ("refresh", sampler.refresh.is_some(), "it is for hmc without friction"),
        ("correction", sampler.correction.is_some(), "it is barker's"),
        ("polish", sampler.polish.is_some(), "it is for chains without a test"),
        ("candidates", sampler.candidates.is_some(), "it is for ops"),
    ];
    let of_others = of_others.into_iter().filter(|(key, ..)| !algorithm.takes(key));
    let of_others = of_others.map(|(key, written, why)| (format!("sampler.{key}"), written, why));
    let ratios = algorithm.proposes() && !algorithm.follows_gradients() && sampler.locate.is_none();
    let unmultiplied = (
        "privacy.noise_multiplier",
        raw.privacy.noise_multiplier.is_some() && ratios,
        "of ratios `privacy.noise_sd` is the noise",
    );
    let own = (algorithm.declaration().unused)(raw).into_iter().chain([unmultiplied]);
    let own = own.map(|(key, written, why)| (key.to_owned(), written, why));
    match own.chain(of_others).find(|(_, written, _)| *written) {
        Some((key, _, why)) => Err(JobError::new(key, format!("algorithm = \"{name}\" has no use for it ({why}): leave it out"))),
        None => Ok(()),
    }
}
