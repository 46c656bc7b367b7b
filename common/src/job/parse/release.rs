//! The refusal of keys that a job's algorithm does not use.

use crate::job::algorithm::Algorithm;
use crate::job::error::JobError;
use crate::job::raw::RawJob;
use crate::job::weights::Weights;
use crate::settings::{Table, is_written};

/// Refuses keys that the algorithm does not use, by name. The author of an ignored key would assume that it applies.
pub(super) fn refuse_unused(algorithm: Algorithm, raw: &RawJob, file: &Table) -> Result<(), JobError> {
    let name = algorithm.as_str();
    if algorithm != Algorithm::NoisyStatistics && is_written(file, "release") {
        let message = format!("applies to algorithm = \"noisy-statistics\" only, but this job's is \"{name}\"");
        return Err(JobError::new("release", message));
    }
    if !matches!(algorithm, Algorithm::NoisyStatistics | Algorithm::Hmc | Algorithm::Penalty)
        && raw.model.weights != Weights::Never
    {
        let message = format!(
            "weights = \"{}\" applies to algorithm = \"noisy-statistics\", \"hmc\" and \"penalty\" only, but this job's is \"{name}\"",
            raw.model.weights.as_str()
        );
        return Err(JobError::new("model.weights", message));
    }
    power_prior(algorithm, raw)?;
    let moves = "its chains are not driven by gradients";
    let still = if algorithm.follows_gradients() { "its chains have no momentum" } else { moves };
    let of_others = [
        ("sampler.step", moves),
        ("sampler.friction", still),
        ("sampler.test", "only hmc has tests of steps"),
        ("sampler.refresh", "only hmc without friction uses it"),
        ("sampler.correction", "only barker uses it"),
        ("sampler.polish", "only chains without a test use it"),
        ("sampler.candidates", "only ops uses it"),
        ("sampler.decay", "only sgld, sghmc and sgnht have decreasing steps"),
        ("sampler.start_share", "only chains of stochastic gradients can start at a posterior sample"),
    ];
    let of_others = of_others.into_iter().filter(|(key, _)| !algorithm.takes(key.trim_start_matches("sampler.")));
    let ratios = algorithm.proposes() && !algorithm.follows_gradients() && raw.sampler.locate.is_none();
    let unmultiplied = ratios.then_some(("privacy.noise_multiplier", "the noise of ratios is `privacy.noise_sd`"));
    let mut unused = (algorithm.declaration().unused)(raw).into_iter().chain(unmultiplied).chain(of_others);
    match unused.find(|(key, _)| is_written(file, key)) {
        Some((key, why)) => Err(JobError::new(key, format!("algorithm = \"{name}\" does not use it ({why}): leave it out"))),
        None => Ok(()),
    }
}

/// Checks that a prior to the likelihood's power belongs to the job's algorithm.
///
/// # Errors
/// Another algorithm than those of the paper; a likelihood that is not raised to a power.
fn power_prior(algorithm: Algorithm, raw: &RawJob) -> Result<(), JobError> {
    if !raw.model.power_prior {
        return Ok(());
    }
    if algorithm != Algorithm::Ops && !algorithm.is_unadjusted() {
        let message = format!(
            "applies to algorithm = \"ops\", \"sgld\", \"sghmc\", \"sgnht\" and \"sgfs\" only, but this job's is \"{}\": leave it out, and write the \
             prior that you want under [prior]",
            algorithm.as_str()
        );
        return Err(JobError::new("model.power_prior", message));
    }
    if raw.model.power == 1.0 {
        let message = "raises the prior to the power of the likelihood, and the job's likelihood has none: set model.power below 1, or leave it out";
        return Err(JobError::new("model.power_prior", message));
    }
    Ok(())
}
