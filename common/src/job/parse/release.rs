//! The refusal of keys that a job's algorithm does not use.

use crate::job::algorithm::Algorithm;
use crate::job::error::JobError;
use crate::job::raw::RawJob;

/// Refuses keys that the algorithm does not use, by name. The author of an ignored key would assume that it applies.
pub(super) fn refuse_unused(algorithm: Algorithm, raw: &RawJob) -> Result<(), JobError> {
    let name = algorithm.as_str();
    if algorithm != Algorithm::NoisyStatistics && raw.release.is_some() {
        let message = format!("applies to algorithm = \"noisy-statistics\" only, but this job's is \"{name}\"");
        return Err(JobError::new("release", message));
    }
    let moves = "its chains are not driven by gradients";
    let still = if algorithm.follows_gradients() { "its chains have no momentum" } else { moves };
    let sampler = &raw.sampler;
    let of_others = [
        ("step", sampler.step.is_some(), moves),
        ("friction", sampler.friction.is_some(), still),
        ("test", sampler.test.is_some(), "only hmc has tests of steps"),
        ("refresh", sampler.refresh.is_some(), "only hmc without friction uses it"),
        ("correction", sampler.correction.is_some(), "only barker uses it"),
        ("polish", sampler.polish.is_some(), "only chains without a test use it"),
        ("candidates", sampler.candidates.is_some(), "only ops uses it"),
    ];
    let of_others = of_others.into_iter().filter(|(key, ..)| !algorithm.takes(key));
    let of_others = of_others.map(|(key, written, why)| (format!("sampler.{key}"), written, why));
    let ratios = algorithm.proposes() && !algorithm.follows_gradients() && sampler.locate.is_none();
    let unmultiplied = (
        "privacy.noise_multiplier",
        raw.privacy.noise_multiplier.is_some() && ratios,
        "the noise of ratios is `privacy.noise_sd`",
    );
    let own = (algorithm.declaration().unused)(raw).into_iter().chain([unmultiplied]);
    let own = own.map(|(key, written, why)| (key.to_owned(), written, why));
    match own.chain(of_others).find(|(_, written, _)| *written) {
        Some((key, _, why)) => Err(JobError::new(key, format!("algorithm = \"{name}\" does not use it ({why}): leave it out"))),
        None => Ok(()),
    }
}
