//! Keys of a job file that its algorithm does not use.

use crate::job::raw::RawJob;

/// A key, and the reason why the algorithm does not use it.
pub(in crate::job) type Unused = (&'static str, &'static str);

/// Returns the unused keys of jobs with gradient-driven chains.
pub(super) fn unused_with_gradients(raw: &RawJob) -> Vec<Unused> {
    let noise = "the noise of gradients drives its chains: `sampler.step` and `sampler.friction` set its scale";
    // It is the noise of ratios: in the test of chains without friction, and in the sweeps of polished chains.
    let asks_ratios = raw.sampler.friction == Some(0.0) || raw.sampler.polish > 0;
    let own = [
        ("sampler.proposal", "its moves follow gradients: `sampler.step` and `sampler.friction` set them"),
        ("privacy.clip", "a record's contribution is limited to public lengths"),
    ];
    (!asks_ratios).then_some(("privacy.noise_sd", noise)).into_iter().chain(own).collect()
}

const SPENT: &str = "the whole budget is spent in a few releases, once: epsilon alone sets the noise";

/// The unused keys of jobs that release once.
pub(super) const UNUSED_WITH_RELEASES: [Unused; 4] = [
    ("privacy.noise_sd", SPENT),
    ("privacy.clip", "a record's contribution is limited to public ranges and lengths"),
    ("sampler.until", "draws cost nothing: `sampler.draws` sets their number"),
    ("extends", "more draws of the same releases cost nothing: raise `sampler.draws`"),
];
