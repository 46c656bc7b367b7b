//! What a job's releases cost its owner's records, in the words that the owner reads before saying yes.

use conclave_common::accounting::{PrivacyFilter, mu_squared};
use conclave_common::job::{Algorithm, HmcTest, JobSpec};

use super::figure::figure;

/// The mu squared that a job's epsilon and delta come to.
pub(super) fn limit(spec: &JobSpec) -> f64 {
    PrivacyFilter::new(&spec.privacy.budget).map_or(0.0, |filter| mu_squared(filter.limit_units()))
}

/// Six digits, of small numbers too.
pub(super) fn short(x: f64) -> String {
    figure(format!("{x:.5e}").parse().unwrap_or(x))
}

/// What one release costs, or one step of several, as far as the job's text sets it.
fn one(spec: &JobSpec) -> String {
    let ratio = "the square of what one record or person can move it by, which follows from the step, over its noise";
    if spec.most_rounds().is_some() {
        return "each release takes the share of it that the job says or plans".to_owned();
    }
    if spec.privacy.blocks.is_some() {
        return "a release over a sample takes what its block was paid for, which is told below".to_owned();
    }
    if spec.algorithm == Algorithm::Ops {
        return "each draw takes what the range comes to that one record or person can move its log probabilities by".to_owned();
    }
    if spec.algorithm.follows_gradients() {
        let steps = spec.sampler.draws.saturating_mul(u64::from(spec.sampler.chains));
        let (step, beside) = match spec.sampler.hmc.test {
            HmcTest::Ratio { .. } => {
                ("each trajectory", "a test's number costs more or less than that as its step is long or short")
            }
            HmcTest::Remainder if !spec.algorithm.is_unadjusted() => ("each step", "its test at most a hundredth of it"),
            _ => ("each step", "the same of all"),
        };
        let sweeps =
            if spec.is_polished() { format!("; a number of the sweeps after them costs {ratio}") } else { String::new() };
        return format!(
            "{step} takes at most {} of it where all {steps} are made, and more where fewer are planned, {beside}{sweeps}",
            short(limit(spec) / steps.max(1) as f64)
        );
    }
    format!("each number costs {ratio}")
}

/// What all releases cost together, and one of them.
pub(super) fn price(spec: &JobSpec) -> String {
    format!("a mu squared of {} in all, which is what epsilon and delta below come to: {}", short(limit(spec)), one(spec))
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

    /// Of epsilon 1 at delta 1e-6 a mu of 0.2328: what `conclave account` says, squared.
    #[test]
    fn every_job_says_what_its_releases_cost() {
        let mu = conclave_common::accounting::gaussian_dp::mu(1.0, 1e-6);
        assert!((limit(&job("penalty", "")) - mu * mu).abs() < 1e-6 * mu * mu);
        let all = format!("a mu squared of {} in all", short(limit(&job("penalty", ""))));
        let share =
            |steps: f64| format!("takes at most {} of it where all {steps} are made", short(limit(&job("penalty", "")) / steps));
        for (spec, part) in [
            (job("penalty", ""), "each number costs the square of what one record or person can move it by".to_owned()),
            (job("barker", ""), "each number costs the square".to_owned()),
            (job("barker", "clip = 0.05\n[sampler]\nbatch = 0.5\n"), "what its block was paid for".to_owned()),
            (job("noisy-statistics", ""), "the share of it that the job says or plans".to_owned()),
            (job("ops", ""), "each draw takes what the range comes to".to_owned()),
            (job("hmc", "[sampler]\nchains = 2\ndraws = 1000\n"), share(2000.0)),
            (job("hmc", "[sampler]\nchains = 1\ndraws = 500\nfriction = 0\n"), share(500.0)),
            (job("sgld", "[sampler]\nchains = 4\ndraws = 250\n"), share(1000.0)),
            (
                job("sghmc", "[sampler]\nchains = 4\ndraws = 250\npolish = 5\n"),
                "of the sweeps after them costs the square".to_owned(),
            ),
        ] {
            let words = price(&spec);
            assert!(words.starts_with(&all) && words.contains(&part), "{part} is not in {words}");
        }
    }
}
