//! Job files: a file that parses can be queried.

use conclave_common::job::JobSpec;
use conclave_common::parameter::Prior;
use conclave_common::query::PartyMetadata;
use conclave_common::query::QueryTerms;
use conclave_inference::sampler;
use conclave_inference::sampler::Next;
use conclave_privacy::accounting::PrivacyUnit;

use crate::harness::{Target, fuzz};

const EXAMPLES: [&str; 13] = [
    include_str!("../../../deploy/sample/job.toml"),
    include_str!("../../../examples/bernoulli.toml"),
    include_str!("../../../examples/bernoulli_exp_family.toml"),
    include_str!("../../../examples/gaussian_mean.toml"),
    include_str!("../../../examples/gaussian_mixture.toml"),
    include_str!("../../../examples/linear.toml"),
    include_str!("../../../examples/logistic.toml"),
    include_str!("../../../examples/multinomial.toml"),
    include_str!("../../../examples/negative_binomial.toml"),
    include_str!("../../../examples/poisson.toml"),
    include_str!("../../../examples/poisson_mean.toml"),
    include_str!("../../../examples/student_t.toml"),
    include_str!("../../../examples/weibull.toml"),
];

const WORDS: &[&str] = &[
    "= ",
    "\n",
    "[",
    "]",
    "{",
    "}",
    "\"",
    ",",
    "nan",
    "inf",
    "-inf",
    "1e308",
    "-1e-320",
    "0",
    "-1",
    "18446744073709551615",
    "1e9",
    "true",
    "\"auto\"",
    "[prior]",
    "[parameters]",
    "[sampler]",
    "[privacy]",
    "[columns]",
    "[model]",
    "[plan]",
    "normal(0, 1)",
    "half_normal(1)",
    "cauchy(0, 1)",
    "beta(1, 1)",
    "uniform(-1, 1)",
    "levels = [\"a\", \"b\"]",
    "binary = true",
    "min = 1",
    "max = 1",
    "intercept = false",
    "chains = 256",
    "draws = 4294967295",
    "warmup = { until_rhat = 1.0, max = 9 }",
    "proposal = { kind = \"random_walk\", radius = 1e-300 }",
    "clip = { slope = 1e-12 }",
    "noise_sd = 1e-9",
    "epsilon = 1e300",
    "delta = 1e-300",
    "interactions = [[\"a\", \"b\"]]",
    "rotate = true",
    "power = 0.5",
    "offset = \"x\"",
    "exposure = \"x\"",
    "algorithm = \"penalty-exp-family\"",
    "seed = -1",
    "parties = []",
    "\u{0}",
    "\u{fffd}",
];

/// Checks that a job that parses has a model, and that its first round's queries have a price or a refusal.
fn ask(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let Ok(spec) = JobSpec::parse(text) else { return false };
    let model = spec.build_model();
    assert!(!model.parameter_names().is_empty(), "{text}");
    let parties = vec![PartyMetadata::rows(1000); spec.parties.len()];
    let Ok(mut sampler) = sampler::build(&spec, &parties) else { return true };
    if let Ok(Next::Ask(round)) = sampler.next_round() {
        for query in round.queries.iter().take(4) {
            let points = (query.from.as_slice(), query.to.as_slice());
            if let Ok(terms) = QueryTerms::new(model.as_ref(), &spec, PrivacyUnit::default(), query.kind, points) {
                assert!(terms.centre().is_finite() && terms.sensitivity().units() > 0, "{text}");
            }
        }
    }
    true
}

#[test]
fn job_files() {
    fuzz(&Target {
        name: "job",
        seeds: EXAMPLES.iter().map(|text| text.as_bytes().to_vec()).collect(),
        words: WORDS.iter().map(|word| word.as_bytes().to_vec()).collect(),
        run: Box::new(ask),
    });
}

#[test]
fn priors() {
    let seeds = ["normal(0, 2.5)", "half_cauchy(1)", "uniform(-3, 1e3)", "gamma(2, 0.5)", "student_t(3, 0, 1)", "beta(2, 2)"];
    fuzz(&Target {
        name: "prior",
        seeds: seeds.iter().map(|text| text.as_bytes().to_vec()).collect(),
        words: WORDS.iter().map(|word| word.as_bytes().to_vec()).collect(),
        run: Box::new(|text| {
            let Some(prior) = std::str::from_utf8(text).ok().and_then(|text| Prior::parse(text).ok()) else { return false };
            for x in [-1e300, -1.0, -0.0, 0.0, 0.5, 1.0, 1e300] {
                let density = prior.log_density(x);
                assert!(!density.is_nan(), "{prior:?} at {x}: {density}");
            }
            true
        }),
    });
}
