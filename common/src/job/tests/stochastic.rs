//! Settings for the end of chains without an acceptance test.

#![allow(clippy::unwrap_used)]

use crate::job::{Algorithm, JobError, JobSpec};
use conclave_privacy::mechanism::QueryKind;

fn parse(algorithm: &str, sampler: &str, privacy: &str) -> Result<JobSpec, JobError> {
    JobSpec::parse(&format!(
        "name = \"s\"\nalgorithm = \"{algorithm}\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [\"x\"]\n\
         [columns]\ny = {{ binary = true }}\nx = {{ min = 0, max = 1 }}\n[sampler]\ndraws = 100\n{sampler}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n{privacy}\n"
    ))
}

#[test]
fn sweeps_query_ratios_too_and_give_the_draws() {
    for algorithm in ["sgld", "sghmc", "sgnht", "sgfs"] {
        let (plain, polished) = (parse(algorithm, "", "").unwrap(), parse(algorithm, "polish = 7", "").unwrap());
        assert_eq!((plain.releases(), plain.draws_asked()), (vec!["score"], 100));
        assert_eq!((polished.releases(), polished.draws_asked()), (vec!["score", "ratio"], 14));
        assert!(!plain.asks(QueryKind::Ratio) && polished.asks(QueryKind::Ratio));
        assert!(polished.asks(QueryKind::Gradient { parameters: 2 }));
        assert_eq!(parse(algorithm, "polish = 0", "").unwrap(), plain);
    }
    // The noise of sweeps is a guided walk's, or the job's own.
    let sd = |privacy: &str| parse("sgld", "polish = 7", privacy).unwrap().privacy.noise.sd();
    assert!((sd("") - 1.75 / 2.0_f64.sqrt()).abs() < 1e-4 && (sd("noise_sd = 0.8") - 0.8).abs() < 1e-4);
    // With another algorithm there are no sweeps.
    let penalty = parse("sgld", "polish = 7", "").unwrap().by(Algorithm::Penalty).unwrap();
    assert!(!penalty.is_polished() && penalty.draws_asked() == 100);
}

#[test]
fn sweep_settings_without_effect_are_refused_by_name() {
    for (algorithm, sampler, privacy, key, word) in [
        ("sgld", "polish = -1", "", "sampler.polish", "between 0 and 1000000"),
        ("sgld", "polish = 1000001", "", "sampler.polish", "between 0 and 1000000"),
        (
            "sgld",
            "polish = 5\nuntil = { ess = 400, rhat = 1.01 }",
            "",
            "sampler.polish",
            "leave out either sampler.until or polish",
        ),
        ("sgld", "", "noise_sd = 0.8", "privacy.noise_sd", "leave it out"),
        ("sgld", "polish = 0", "noise_sd = 0.8", "privacy.noise_sd", "leave it out"),
        ("sgld", "polish = 5", "clip = 0.5", "privacy.clip", "leave it out"),
        ("hmc", "polish = 5", "", "sampler.polish", "without a test"),
        ("penalty", "polish = 5", "", "sampler.polish", "without a test"),
    ] {
        let error = parse(algorithm, sampler, privacy).unwrap_err();
        assert_eq!(error.key, key, "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
}

fn of_one(algorithm: &str, sampler: &str) -> Result<JobSpec, JobError> {
    JobSpec::parse(&format!(
        "name = \"s\"\nalgorithm = \"{algorithm}\"\nparties = [\"a\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [\"x\"]\n\
         [columns]\ny = {{ binary = true }}\nx = {{ min = 0, max = 1 }}\n[sampler]\ndraws = 100\n{sampler}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
    ))
}

/// A job whose chains start at a posterior sample has a second kind of release; all others have the messages and releases that they had.
#[test]
fn chains_may_start_at_a_posterior_sample() {
    let choice = QueryKind::Choice { candidates: 4096 };
    for algorithm in ["sgld", "sghmc", "sgnht", "sgfs"] {
        let (plain, hybrid) = (of_one(algorithm, "").unwrap(), of_one(algorithm, "start = \"ops\"").unwrap());
        assert_eq!((plain.start_share(), hybrid.start_share()), (None, Some(0.5)));
        assert_eq!((plain.releases(), hybrid.releases()), (vec!["score"], vec!["score", "choice"]));
        assert!(!plain.asks(choice) && hybrid.asks(choice) && hybrid.asks(QueryKind::Gradient { parameters: 2 }));
        assert!(plain.longest_message().bytes < 8 * 4096 && hybrid.longest_message().bytes > 8 * 3 * 4096);
        let polished = of_one(algorithm, "start = \"ops\"\nstart_share = 0.3\ncandidates = 100\npolish = 2").unwrap();
        assert_eq!(polished.releases(), ["score", "choice", "ratio"]);
        assert_eq!((polished.start_share(), polished.sampler.ops.candidates), (Some(0.3), 100));
        assert!(
            hybrid.query_description().contains("one of 4096 public settings") && !plain.query_description().contains("4096")
        );
        // Another algorithm starts elsewhere.
        assert_eq!(hybrid.by(Algorithm::Hmc).unwrap().releases(), ["score", "remainder"]);
        let values = of_one(algorithm, "start = { intercept = 0.1, x = 0.2 }").unwrap();
        assert_eq!((values.start_share(), values.sampler.start), (None, Some(vec![0.1, 0.2])));
    }
}

#[test]
fn settings_of_a_start_or_of_decreasing_steps_without_effect_are_refused_by_name() {
    let ops = "start = \"ops\"";
    for (algorithm, sampler, key, word) in [
        ("sgld", "start = \"here\"", "sampler.start", "or \"ops\""),
        ("sgld", "start = 3", "sampler.start", "or \"ops\""),
        ("hmc", ops, "sampler.start", "stochastic gradients only"),
        ("ops", ops, "sampler.start", "stochastic gradients only"),
        ("sgld", "start_share = 0.3", "sampler.start_share", "start = \"ops\""),
        ("sgnht", "candidates = 300", "sampler.candidates", "start = \"ops\""),
        ("hmc", "start_share = 0.3", "sampler.start_share", "leave it out"),
        ("sgld", &format!("{ops}\nstart_share = 1.0"), "sampler.start_share", "between 0 and 1"),
        ("sgld", &format!("{ops}\nstart_share = 0.7\nlocate_share = 0.3"), "sampler.start_share", "less than 1"),
        ("sgld", &format!("{ops}\nstarts = [{{ intercept = 0.1, x = 0.2 }}]\nchains = 1"), "sampler.starts", "either start"),
        ("sgld", &format!("{ops}\ndecay = 0.5"), "sampler.decay", "constant step"),
        ("sgld", "decay = 0.0", "sampler.decay", "above 0"),
        ("sgld", "decay = 1.1", "sampler.decay", "at most 1"),
        ("sgld", "decay = 0.5\nwarmup = 0", "sampler.decay", "sampler.warmup"),
        ("sgfs", "decay = 0.5", "sampler.decay", "sghmc and sgnht"),
        ("hmc", "decay = 0.5", "sampler.decay", "sghmc and sgnht"),
    ] {
        let error = of_one(algorithm, sampler).unwrap_err();
        assert_eq!(error.key, key, "{sampler}: {error}");
        assert!(error.to_string().contains(word), "{sampler}: {error}");
    }
    let two = parse("sgld", ops, "").unwrap_err();
    assert!(two.key == "sampler.start" && two.message.contains("one owner"), "{two}");
    assert_eq!(of_one("sgnht", "decay = 1.0").unwrap().sampler.stochastic.decay, Some(1.0));
}
