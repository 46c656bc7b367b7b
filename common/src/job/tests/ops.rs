#![allow(clippy::unwrap_used)]
use crate::job::{Algorithm, JobSpec, Locate};

const JOB: &str = "name = \"o\"\nalgorithm = \"ops\"\nparties = [\"a\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\n\
                   predictors = [\"x\"]\n[columns]\ny = { binary = true }\nx = { min = 0, max = 1 }\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n\
                   [sampler]\nseed = 3\n";

#[test]
fn omitted_keys_have_defaults() {
    let spec = JobSpec::parse(JOB).unwrap();
    assert_eq!(spec.algorithm, Algorithm::Ops);
    assert_eq!((spec.sampler.chains, spec.sampler.draws, spec.sampler.ops.candidates), (1, 1, 4096));
    assert_eq!((spec.sampler.locate_share, spec.sampler.locate), (0.2, Locate::Ratios));
    assert_eq!((spec.releases(), spec.most_rounds()), (vec!["ratio", "choice"], None));
    let by_gradients = JobSpec::parse(&JOB.replace("seed = 3", "locate = \"gradients\"")).unwrap();
    assert_eq!((by_gradients.releases(), by_gradients.sampler.locate_share), (vec!["score", "choice"], 0.05));
    let of_prior = JobSpec::parse(&JOB.replace("seed = 3", "locate_share = 0.0\ndraws = 3\ncandidates = 2")).unwrap();
    assert_eq!((of_prior.releases(), of_prior.sampler.draws), (vec!["choice"], 3));
}

#[test]
fn jobs_that_ops_cannot_run_are_refused_by_name() {
    let eleven: Vec<String> = (0..10).map(|j| format!("x{j}")).collect();
    let wide = JOB.replace("[\"x\"]", &format!("{eleven:?}")).replace(
        "x = { min = 0, max = 1 }",
        &eleven.iter().map(|x| format!("{x} = {{ min = 0, max = 1 }}\n")).collect::<String>(),
    );
    let ten = wide.replace(", \"x9\"", "");
    JobSpec::parse(&ten).unwrap();
    for (job, key, word) in [
        (JOB.replace("[\"a\"]", "[\"a\", \"b\"]"), "parties", "one owner"),
        (wide, "algorithm", "\"hmc\""),
        (ten.replace("seed = 3", "candidates = 23832"), "sampler.candidates", "holds 23831"),
        (JOB.replace("seed = 3", "candidates = 1"), "sampler.candidates", "between 2 and 65536"),
        (JOB.replace("seed = 3", "candidates = 65537"), "sampler.candidates", "between 2 and 65536"),
        (JOB.replace("seed = 3", "chains = 4"), "sampler.chains", "independent"),
        (JOB.replace("seed = 3", "warmup = 3"), "sampler.warmup", "leave it out"),
        (JOB.replace("seed = 3", "proposal = { kind = \"guided\" }"), "sampler.proposal", "leave it out"),
        (JOB.replace("name = \"o\"", "name = \"o\"\nextends = \"x\""), "extends", "another job"),
        (JOB.replace("seed = 3", "batch = 0.5"), "sampler.batch", "ops"),
        (JOB.replace("seed = 3", "[aggregation]\nmode = \"secure\""), "aggregation.mode", "parties"),
    ] {
        let error = JobSpec::parse(&job).unwrap_err();
        assert_eq!(error.key, key, "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
    let other = JobSpec::parse(&JOB.replace("\"ops\"", "\"penalty\"").replace("seed = 3", "candidates = 7")).unwrap_err();
    assert_eq!(other.key, "sampler.candidates");
}

/// The priors are raised with the likelihood, and the boxes stay. Jobs in which that has no meaning are refused.
#[test]
fn the_prior_has_the_power_of_the_likelihood_on_request() {
    let tempered = |more: &str| JOB.replace("predictors = [\"x\"]\n", &format!("predictors = [\"x\"]\n{more}\n"));
    let plain = JobSpec::parse(&tempered("power = 0.25")).unwrap();
    let raised = JobSpec::parse(&tempered("power = 0.25\npower_prior = true")).unwrap();
    assert_eq!(plain.priors[0].to_string(), "normal(0, 2.5)");
    assert_eq!(raised.priors[0].to_string(), "normal(0, 5)");
    assert_eq!((raised.support.clone(), raised.power), (plain.support.clone(), 0.25));
    assert_eq!(JobSpec { power_prior: false, priors: plain.priors.clone(), ..raised }, plain);
    assert_eq!(JobSpec::parse(&tempered("power = 0.25\npower_prior = false")).unwrap(), plain);
    let two = |text: String, more: &str| text.replace("\"ops\"", &format!("\"{more}\""));
    JobSpec::parse(&two(tempered("power = 0.25\npower_prior = true"), "sgld")).unwrap();
    for (job, key, word) in [
        (tempered("power_prior = true"), "model.power_prior", "below 1"),
        (tempered("power = 1.0\npower_prior = true"), "model.power_prior", "below 1"),
        (two(tempered("power = 0.25\npower_prior = true"), "penalty"), "model.power_prior", "applies to"),
        (two(tempered("power = 0.25\npower_prior = true"), "noisy-statistics"), "model.power_prior", "[prior]"),
        (
            tempered("power = 0.25\npower_prior = true").replace("[privacy]", "[prior]\nx = \"cauchy(0, 1)\"\n[privacy]"),
            "prior.x",
            "no finite integral",
        ),
    ] {
        let error = JobSpec::parse(&job).unwrap_err();
        assert_eq!(error.key, key, "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
}
