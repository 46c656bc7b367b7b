//! `algorithm = "auto"`: which algorithm suits a job, by its model and by what it says of its sampler.
//!
//! A function of the job file alone, so that coordinator, owners and analyst find the same. Per budget a release that is
//! made once beats a chain of ratios wherever a sufficient statistic or a local quadratic determines the posterior; whether
//! it suffices for an answer is checked on what was released, and before that by what is public of the records.

use crate::job::algorithms::Algorithm;
use crate::job::raw::RawJob;

/// Why `noisy-statistics` suits a regression whose table of outcome and predictors is small.
pub(super) const BY_TABLE: &str =
    "one released table of outcome and categories determines this model's likelihood, given the categories";

/// The algorithm, and why.
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
        _ if of_chains => (Algorithm::Penalty, "the job says how chains propose, start or end, which is for a chain of ratios"),
        _ if of_ratios => (Algorithm::Penalty, "the job sets the noise or the clip of a ratio"),
        _ if raw.extends.is_some() => (Algorithm::Penalty, "the job continues another one's chains"),
        "logistic" | "poisson" | "negative_binomial" | "student_t" | "weibull" => {
            (once, "a few released scores determine this model's posterior, for a part of the budget that ratios take")
        }
        "linear" if !tempered => (once, "second moments and a score determine a linear regression's posterior"),
        "bernoulli" | "poisson_mean" | "gaussian_mean" if raw.model.incomplete_rows == Some(true) => {
            (Algorithm::Penalty, "the sum of this model's statistic does not tell how many of the rows could be used")
        }
        "multinomial" if raw.model.incomplete_rows == Some(true) && !tempered => {
            (Algorithm::Augmentation, "one release of its table counts the rows that can't be used, too")
        }
        "bernoulli" | "poisson_mean" | "gaussian_mean" | "multinomial" if !tempered => {
            (once, "one release of the sufficient statistic says all that there is to say")
        }
        "naive_bayes" if !tempered => {
            (Algorithm::Augmentation, "one release of its tables says all that there is to say, and records are imputed given it")
        }
        _ => (Algorithm::Penalty, "no statistic and no local quadratic determines this model's posterior"),
    };
    (algorithm, Some(why))
}

#[cfg(test)]
#[path = "../tests/auto.rs"]
mod tests;
