//! Keys of a job file that its algorithm does not use.

use crate::job::raw::RawJob;

/// A key, whether it is written, and the reason why the algorithm does not use it.
pub(in crate::job) type Unused = (&'static str, bool, &'static str);

/// Lists the keys that gradient-driven chains do not use.
pub(super) fn of_gradients_alone(raw: &RawJob) -> Vec<Unused> {
    let noise = "the noise of gradients moves its chains: `sampler.step` and `sampler.friction` set its amount";
    let asks_ratios = raw.sampler.friction == Some(0.0) || raw.sampler.polish.is_some_and(|sweeps| sweeps > 0);
    vec![
        ("sampler.proposal", raw.sampler.proposal.is_some(), "gradients propose: set `sampler.step` and `sampler.friction`"),
        // Without friction it is the noise of the test on ratios; for polished chains, that of the sweeps.
        ("privacy.noise_sd", raw.privacy.noise_sd.is_some() && !asks_ratios, noise),
        ("privacy.clip", raw.privacy.clip.is_some(), "contributions are held to public lengths"),
    ]
}

/// Lists the keys that no job that releases once uses.
pub(super) fn of_releases(raw: &RawJob) -> [Unused; 4] {
    let spent = "the whole budget is spent once, in a few releases: epsilon alone sets the noise";
    [
        ("privacy.noise_sd", raw.privacy.noise_sd.is_some(), spent),
        ("privacy.clip", raw.privacy.clip.is_some(), "contributions are held to public ranges and lengths"),
        ("sampler.until", raw.sampler.until.is_some(), "draws cost nothing: `sampler.draws` sets their number"),
        ("extends", raw.extends.is_some(), "more draws from the same releases cost nothing: raise `sampler.draws`"),
    ]
}
