//! Keys of a job file that its algorithm does not use.

use crate::job::raw::RawJob;

/// A key, a flag that is true if the file has it, and the reason why the algorithm does not use it.
pub(in crate::job) type Unused = (&'static str, bool, &'static str);

/// Returns the unused keys of jobs with gradient-driven chains.
pub(super) fn unused_with_gradients(raw: &RawJob) -> Vec<Unused> {
    let noise = "the noise of gradients drives its chains: `sampler.step` and `sampler.friction` set its scale";
    let asks_ratios = raw.sampler.friction == Some(0.0) || raw.sampler.polish.is_some_and(|sweeps| sweeps > 0);
    vec![
        (
            "sampler.proposal",
            raw.sampler.proposal.is_some(),
            "its moves follow gradients: `sampler.step` and `sampler.friction` set them",
        ),
        // It is the noise of ratios: in the test of chains without friction, and in the sweeps of polished chains.
        ("privacy.noise_sd", raw.privacy.noise_sd.is_some() && !asks_ratios, noise),
        ("privacy.clip", raw.privacy.clip.is_some(), "a record's contribution is limited to public lengths"),
    ]
}

/// Returns the unused keys of jobs that release once.
pub(super) fn unused_with_releases(raw: &RawJob) -> [Unused; 4] {
    let spent = "the whole budget is spent in a few releases, once: epsilon alone sets the noise";
    [
        ("privacy.noise_sd", raw.privacy.noise_sd.is_some(), spent),
        ("privacy.clip", raw.privacy.clip.is_some(), "a record's contribution is limited to public ranges and lengths"),
        ("sampler.until", raw.sampler.until.is_some(), "draws cost nothing: `sampler.draws` sets their number"),
        ("extends", raw.extends.is_some(), "more draws of the same releases cost nothing: raise `sampler.draws`"),
    ]
}
