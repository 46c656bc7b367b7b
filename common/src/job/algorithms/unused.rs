//! What of a job file its algorithm has no use for.

use crate::job::raw::RawJob;

/// A key, whether it is written, and why the algorithm has no use for it.
pub(in crate::job) type Unused = (&'static str, bool, &'static str);

/// What no job whose chains gradients drive has a use for.
pub(super) fn of_gradients_alone(raw: &RawJob) -> Vec<Unused> {
    let noise = "the noise of gradients is what moves its chains: `sampler.step` and `sampler.friction` say how much of it";
    let asks_ratios = raw.sampler.friction == Some(0.0) || raw.sampler.polish.is_some_and(|sweeps| sweeps > 0);
    vec![
        ("sampler.proposal", raw.sampler.proposal.is_some(), "gradients propose: `sampler.step` and `sampler.friction` say how"),
        // Without friction it is that of the test, which is on ratios; of polished chains that of the sweeps.
        ("privacy.noise_sd", raw.privacy.noise_sd.is_some() && !asks_ratios, noise),
        ("privacy.clip", raw.privacy.clip.is_some(), "what a record adds is held to public lengths"),
    ]
}

/// What no job that releases once has a use for.
pub(super) fn of_releases(raw: &RawJob) -> [Unused; 4] {
    let spent = "the whole budget is spent in a few releases, once: epsilon is the only knob";
    [
        ("privacy.noise_sd", raw.privacy.noise_sd.is_some(), spent),
        ("privacy.clip", raw.privacy.clip.is_some(), "what is released is held to public ranges and lengths"),
        ("sampler.until", raw.sampler.until.is_some(), "draws cost nothing: `sampler.draws` says how many there are"),
        ("extends", raw.extends.is_some(), "more draws of the same releases cost nothing: raise `sampler.draws`"),
    ]
}
