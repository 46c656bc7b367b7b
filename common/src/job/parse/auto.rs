//! `algorithm = "auto"`: the choice of an algorithm from a job's model and sampler settings.
//!
//! It depends only on the job file, so that coordinator, owners and analyst reach the same choice. At the same budget a single
//! release is more precise than a chain of ratios wherever a sufficient statistic or a local quadratic determines the posterior.
//! The public numbers of records, and then the releases, show if a single release suffices.

use crate::job::algorithm::Algorithm;
use crate::job::raw::RawJob;

/// The reason for `noisy-statistics` for a regression with a small table of outcome and predictors.
pub(super) const BY_TABLE: &str =
    "one released table of outcome and categories determines this model's likelihood, given the categories";

/// Returns the algorithm and the reason for it.
pub(super) fn choose(raw: &RawJob) -> (Algorithm, Option<&'static str>) {
    let sampler = &raw.sampler;
    let of_chains = sampler.proposal.is_some()
        || sampler.locate.is_some()
        || sampler.locate_share.is_some()
        || sampler.starts.is_some()
        || sampler.until.is_some();
    let of_ratios = raw.privacy.noise_sd.is_some() || raw.privacy.clip.is_some() || raw.privacy.clip_watch_share.is_some();
    let tempered = raw.model.power.is_some_and(|power| power != 1.0);
    let once = Algorithm::NoisyStatistics;
    let (algorithm, why) = match raw.model.kind.as_str() {
        _ if of_chains => (Algorithm::Penalty, "the job sets how chains propose, start or end, which only chains of ratios use"),
        _ if of_ratios => (Algorithm::Penalty, "the job sets the noise or the clip of a ratio"),
        _ if raw.extends.is_some() => (Algorithm::Penalty, "the job continues another one's chains"),
        "logistic" | "poisson" | "negative_binomial" | "student_t" | "weibull" => {
            (once, "a few released scores determine this model's posterior, at a fraction of the budget that ratios need")
        }
        "linear" if !tempered => (once, "second moments and a score determine a linear regression's posterior"),
        "bernoulli" | "poisson_mean" | "gaussian_mean" if raw.model.incomplete_rows == Some(true) => {
            (Algorithm::Penalty, "the sum of this model's statistic does not reveal how many rows are usable")
        }
        "multinomial" if raw.model.incomplete_rows == Some(true) && !tempered => {
            (Algorithm::Augmentation, "one release of its table also counts the unusable rows")
        }
        "bernoulli" | "poisson_mean" | "gaussian_mean" | "multinomial" if !tempered => {
            (once, "one release of the sufficient statistic contains all the information")
        }
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
