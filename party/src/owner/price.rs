//! The cost of a job's releases, as shown to the owner before approval.

use conclave_common::job::{Algorithm, HmcTest, JobSpec};
use conclave_privacy::accounting::{PrivacyFilter, mu_squared};

use super::figure::figure;

/// Returns the mu squared that corresponds to a job's epsilon and delta.
pub(super) fn limit(spec: &JobSpec) -> f64 {
    PrivacyFilter::new(&spec.privacy.budget).map_or(0.0, |filter| mu_squared(filter.limit_units()))
}

/// Formats six digits, for small numbers too.
pub(super) fn short(x: f64) -> String {
    figure(format!("{x:.5e}").parse().unwrap_or(x))
}

/// States the cost of a release that is charged separately.
fn alone(spec: &JobSpec) -> String {
    let (honest, follows) = (spec.honest().get(), spec.algorithm != Algorithm::PenaltyExpFamily);
    let noise = if honest > 1 { format!("the noise of {honest} parties together") } else { "its noise".to_owned() };
    let step = if follows { " (the change depends on the step)" } else { "" };
    format!("the squared ratio of the largest change by one record or person to the standard deviation of {noise}{step}")
}

/// States the cost of one release or of one step of several, as far as the job's text determines it.
fn one(spec: &JobSpec) -> String {
    if spec.most_rounds().is_some() {
        return "each release takes the share that the job sets or plans".to_owned();
    }
    if spec.privacy.blocks.is_some() {
        let alone = alone(spec);
        return format!("a subsampled release costs nothing beyond its block, described below; any other release costs {alone}");
    }
    if spec.algorithm == Algorithm::Ops {
        let search = match spec.sampler.locate_share > 0.0 {
            true => format!("; a release of the preceding search costs {}", alone(spec)),
            false => String::new(),
        };
        return format!(
            "each draw costs the price of the range by which one record or person can change its log probabilities{search}"
        );
    }
    if spec.algorithm.follows_gradients() {
        return by_gradients(spec);
    }
    format!("each release costs {}", alone(spec))
}

/// States the cost of gradient-driven chains, whose steps are planned after the search.
fn by_gradients(spec: &JobSpec) -> String {
    let steps = spec.sampler.draws.saturating_mul(u64::from(spec.sampler.chains));
    let share = short(limit(spec) / steps.max(1) as f64);
    let (step, beside) = match spec.sampler.hmc.test {
        HmcTest::Ratio { .. } if !spec.algorithm.is_unadjusted() => (
            "each trajectory costs a mu squared of at most, on average,",
            "; the number for its test is a larger or smaller part of that, depending on the trajectory's length",
        ),
        HmcTest::Remainder if !spec.algorithm.is_unadjusted() => (
            "each step costs a mu squared of at most",
            "; the number for its test costs about a hundredth of that, or the minimum price of a release",
        ),
        _ => ("each step costs a mu squared of at most", ""),
    };
    let sweeps =
        if spec.is_polished() { format!("; a number in the subsequent sweeps costs {}", alone(spec)) } else { String::new() };
    let start = match spec.start_share() {
        Some(share) => format!(
            "; the draw at which the chains start costs the price of the range by which one record or person can change its log \
             probabilities, a mu squared of at most {}, and as much again if it is asked for again",
            short(share * limit(spec))
        ),
        None => String::new(),
    };
    format!(
        "the search for starting values takes a share of it{start}; then {step} {share} if all {steps} are made, and may cost more if \
         fewer are made{beside}{sweeps}"
    )
}

/// States the total cost of all releases, and of one of them.
pub(super) fn price(spec: &JobSpec) -> String {
    format!("a mu squared of {} in total, equal to the epsilon and delta below: {}", short(limit(spec)), one(spec))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn job(algorithm: &str, more: &str) -> JobSpec {
        let text = format!(
            "name = \"s\"\nparties = [\"a\"]\nalgorithm = \"{algorithm}\"\n[model]\nkind = \"logistic\"\noutcome = \"y\"\n\
             predictors = [\"age\"]\n[columns]\ny = {{ binary = true }}\nage = {{ min = 20, max = 80 }}\n[privacy]\nepsilon = 1.0\n\
             delta = 1e-6\n{more}"
        );
        JobSpec::parse(&text).unwrap()
    }

    /// Epsilon 1 at delta 1e-6 corresponds to a mu of 0.2328, as `conclave account` prints it; the test uses its square.
    #[test]
    fn every_job_says_what_its_releases_cost() {
        let mu = conclave_privacy::accounting::gaussian_dp::mu(1.0, 1e-6);
        let limit_of_one = limit(&job("penalty", ""));
        assert!(limit_of_one <= mu * mu && limit_of_one > 0.999 * mu * mu, "{limit_of_one} of {}", mu * mu);
        let share = |steps: f64| format!("{} if all {steps} are made", short(limit(&job("penalty", "")) / steps));
        for (spec, part) in [
            (job("penalty", ""), "each release costs the squared ratio".to_owned()),
            (job("barker", ""), "(the change depends on the step)".to_owned()),
            (
                job("barker", "clip = 0.05\n[sampler]\nbatch = 0.5\n"),
                "costs nothing beyond its block, described below; any other".to_owned(),
            ),
            (job("noisy-statistics", ""), "the share that the job sets or plans".to_owned()),
            (job("ops", ""), "each draw costs the price of the range".to_owned()),
            (job("ops", ""), "; a release of the preceding search costs the squared".to_owned()),
            (job("hmc", "[sampler]\nchains = 2\ndraws = 1000\n"), share(2000.0)),
            (job("hmc", ""), "about a hundredth of that".to_owned()),
            (job("hmc", "[sampler]\nchains = 1\ndraws = 500\nfriction = 0\n"), share(500.0)),
            (job("hmc", "[sampler]\nfriction = 0\n"), "each trajectory costs a mu squared of at most, on average,".to_owned()),
            (job("sgld", "[sampler]\nchains = 4\ndraws = 250\n"), share(1000.0)),
            (
                job("sgld", "[sampler]\nstart = \"ops\"\nstart_share = 0.25\n"),
                format!(
                    "the draw at which the chains start costs the price of the range by which one record or person can change its log probabilities, a mu squared of at most {}",
                    short(limit_of_one / 4.0)
                ),
            ),
            (
                job("sghmc", "[sampler]\nchains = 4\ndraws = 250\npolish = 5\n"),
                "in the subsequent sweeps costs the squared".to_owned(),
            ),
        ] {
            let (words, all) = (price(&spec), format!("a mu squared of {} in total", short(limit(&spec))));
            assert!(words.starts_with(&all) && words.contains(&part), "{part} is not in {words}");
        }
    }

    /// In a secure job the noise of several parties protects a number.
    #[test]
    fn the_noise_of_several_parties_is_stated() {
        let text = "name = \"s\"\nparties = [\"a\", \"b\", \"c\", \"d\"]\nalgorithm = \"penalty\"\n[model]\nkind = \"bernoulli\"\noutcome = \"y\"\n\
                    [columns]\ny = { binary = true }\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n[aggregation]\nmode = \"secure\"\n";
        let spec = JobSpec::parse(text).unwrap();
        let honest = spec.honest().get();
        assert!(honest > 1 && price(&spec).contains(&format!("the noise of {honest} parties together")), "{}", price(&spec));
        let family = JobSpec::parse(
            &text.replace("\"penalty\"", "\"penalty-exp-family\"").replace("[aggregation]\nmode = \"secure\"\n", ""),
        )
        .unwrap();
        let words = price(&family);
        assert!(words.contains("standard deviation of its noise") && !words.contains("depends on"), "{words}");
    }
}
