//! What a job's releases cost its owner's records, in the words that the owner reads before saying yes.

use conclave_common::job::{Algorithm, HmcTest, JobSpec};
use conclave_privacy::accounting::{PrivacyFilter, mu_squared};

use super::figure::figure;

/// The mu squared that a job's epsilon and delta come to.
pub(super) fn limit(spec: &JobSpec) -> f64 {
    PrivacyFilter::new(&spec.privacy.budget).map_or(0.0, |filter| mu_squared(filter.limit_units()))
}

/// Six digits, of small numbers too.
pub(super) fn short(x: f64) -> String {
    figure(format!("{x:.5e}").parse().unwrap_or(x))
}

/// What a release costs that is charged by itself.
fn alone(spec: &JobSpec) -> String {
    let (honest, follows) = (spec.honest().get(), spec.algorithm != Algorithm::PenaltyExpFamily);
    let noise = if honest > 1 { format!("the noise of {honest} parties together") } else { "its noise".to_owned() };
    let step = if follows { " (how far follows from the step)" } else { "" };
    format!(
        "the square of a quotient: how far one record or person can move it at most, over the standard deviation of {noise}{step}"
    )
}

/// What one release costs, or one step of several, as far as the job's text sets it.
fn one(spec: &JobSpec) -> String {
    if spec.most_rounds().is_some() {
        return "each release takes the share of it that the job says or plans".to_owned();
    }
    if spec.privacy.blocks.is_some() {
        let alone = alone(spec);
        return format!("a release over a sample costs nothing beside its block, which is told below; any other costs {alone}");
    }
    if spec.algorithm == Algorithm::Ops {
        let search = match spec.sampler.locate_share > 0.0 {
            true => format!("; a release of the search before it costs {}", alone(spec)),
            false => String::new(),
        };
        return format!(
            "each draw costs what the range comes to that one record or person can move its log probabilities by{search}"
        );
    }
    if spec.algorithm.follows_gradients() {
        return by_gradients(spec);
    }
    format!("each release costs {}", alone(spec))
}

/// The same of chains that gradients drive, whose steps are planned once the search before them has ended.
fn by_gradients(spec: &JobSpec) -> String {
    let steps = spec.sampler.draws.saturating_mul(u64::from(spec.sampler.chains));
    let share = short(limit(spec) / steps.max(1) as f64);
    let (step, beside) = match spec.sampler.hmc.test {
        _ if spec.algorithm.is_unadjusted() => ("each step costs a mu squared of at most", ""),
        HmcTest::None => ("each step costs a mu squared of at most", ""),
        HmcTest::Remainder => (
            "each step costs a mu squared of at most",
            "; its test's number is about a hundredth of that, or the least that a release costs",
        ),
        HmcTest::Ratio { .. } => (
            "each trajectory costs a mu squared of at most, on average,",
            "; its test's number is more or less of that as it is long or short",
        ),
    };
    let sweeps =
        if spec.is_polished() { format!("; a number of the sweeps after them costs {}", alone(spec)) } else { String::new() };
    format!(
        "the search for where to begin takes a share of it; then {step} {share} where all {steps} are made, and may cost more where fewer are{beside}{sweeps}"
    )
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
        let mu = conclave_privacy::accounting::gaussian_dp::mu(1.0, 1e-6);
        let limit_of_one = limit(&job("penalty", ""));
        assert!(limit_of_one <= mu * mu && limit_of_one > 0.999 * mu * mu, "{limit_of_one} of {}", mu * mu);
        let share = |steps: f64| format!("{} where all {steps} are made", short(limit(&job("penalty", "")) / steps));
        for (spec, part) in [
            (job("penalty", ""), "each release costs the square of a quotient".to_owned()),
            (job("barker", ""), "(how far follows from the step)".to_owned()),
            (
                job("barker", "clip = 0.05\n[sampler]\nbatch = 0.5\n"),
                "costs nothing beside its block, which is told below; any other".to_owned(),
            ),
            (job("noisy-statistics", ""), "the share of it that the job says or plans".to_owned()),
            (job("ops", ""), "each draw costs what the range comes to".to_owned()),
            (job("ops", ""), "; a release of the search before it costs the square".to_owned()),
            (job("hmc", "[sampler]\nchains = 2\ndraws = 1000\n"), share(2000.0)),
            (job("hmc", ""), "about a hundredth of that".to_owned()),
            (job("hmc", "[sampler]\nchains = 1\ndraws = 500\nfriction = 0\n"), share(500.0)),
            (job("hmc", "[sampler]\nfriction = 0\n"), "each trajectory costs a mu squared of at most, on average,".to_owned()),
            (job("sgld", "[sampler]\nchains = 4\ndraws = 250\n"), share(1000.0)),
            (
                job("sghmc", "[sampler]\nchains = 4\ndraws = 250\npolish = 5\n"),
                "of the sweeps after them costs the square".to_owned(),
            ),
        ] {
            let (words, all) = (price(&spec), format!("a mu squared of {} in all", short(limit(&spec))));
            assert!(words.starts_with(&all) && words.contains(&part), "{part} is not in {words}");
        }
    }

    /// In a secure job the noise of several protects a number.
    #[test]
    fn the_noise_of_several_parties_is_told() {
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
        assert!(words.contains("standard deviation of its noise") && !words.contains("follows from"), "{words}");
    }
}
