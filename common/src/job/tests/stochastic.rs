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
