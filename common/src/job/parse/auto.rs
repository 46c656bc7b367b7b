//! `algorithm = "auto"`: the choice of an algorithm from a job's model and sampler settings.
//!
//! It depends only on the job file, so that coordinator, owners and analyst reach the same choice. At the same budget a single
//! release is more precise than a chain of ratios wherever a sufficient statistic or a local quadratic determines the posterior.
//! The public numbers of records, and then the releases, show if a single release suffices.

use crate::job::algorithm::Algorithm;
use crate::job::raw::RawJob;
use crate::settings::{Table, is_written};

/// The reason for `noisy-statistics` for a regression with a small table of outcome and predictors.
pub(super) const BY_TABLE: &str =
    "one released table of outcome and categories, or of counts and sums by category, determines this model's likelihood";

/// Settings of how chains propose, start or end.
const OF_CHAINS: [&str; 5] = ["sampler.proposal", "sampler.locate", "sampler.locate_share", "sampler.starts", "sampler.until"];
/// Settings of a ratio.
const OF_RATIOS: [&str; 3] = ["privacy.noise_sd", "privacy.clip", "privacy.clip_watch_share"];

/// Returns the algorithm and the reason for it.
pub(super) fn choose(raw: &RawJob, file: &Table) -> (Algorithm, Option<&'static str>) {
    let has = |keys: &[&str]| keys.iter().any(|key| is_written(file, key));
    let (tempered, incomplete) = (raw.model.power != 1.0, raw.model.incomplete_rows);
    let once = Algorithm::NoisyStatistics;
    let (algorithm, why) = match raw.model.kind.as_str() {
        _ if has(&OF_CHAINS) => {
            (Algorithm::Penalty, "the job sets how chains propose, start or end, which only chains of ratios use")
        }
        _ if has(&OF_RATIOS) => (Algorithm::Penalty, "the job sets the noise or the clip of a ratio"),
        _ if raw.extends.is_some() => (Algorithm::Penalty, "the job continues another one's chains"),
        "logistic" | "poisson" | "negative_binomial" | "student_t" | "weibull" | "piecewise_exponential" => {
            (once, "a few released scores determine this model's posterior, at a fraction of the budget that ratios need")
        }
        "linear" if !tempered => (once, "second moments and a score determine a linear regression's posterior"),
        "bernoulli" | "poisson_mean" | "gaussian_mean" if incomplete => {
            (Algorithm::Penalty, "the sum of this model's statistic does not reveal how many rows are usable")
        }
        "multinomial" if incomplete && !tempered => {
            (Algorithm::Augmentation, "one release of its table also counts the unusable rows")
        }
        "bernoulli" | "poisson_mean" | "gaussian_mean" | "multinomial" if !tempered => {
            (once, "one release of the sufficient statistic contains all the information")
        }
        "life_table" => (once, "one released table of intervals and events contains all the information"),
        "naive_bayes" if !tempered => {
            (Algorithm::Augmentation, "one release of its tables contains all the information, and records are imputed given it")
        }
        _ => (Algorithm::Penalty, "no statistic and no local quadratic determines this model's posterior"),
    };
    (algorithm, Some(why))
}

#[cfg(test)]
#[path = "../tests/auto.rs"]
mod tests;
