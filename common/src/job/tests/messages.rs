//! Jobs whose messages no party takes are refused as new jobs, with advice that works.

#![allow(clippy::unwrap_used)]

use crate::job::{JobSpec, MAX_MESSAGE, MAX_QUERIES};

fn job(algorithm: &str, predictors: usize, sampler: &str, privacy: &str) -> JobSpec {
    let names: Vec<String> = (0..predictors).map(|at| format!("x{at}")).collect();
    let columns: String = names.iter().map(|name| format!("{name} = {{ min = -1, max = 1 }}\n")).collect();
    let parties = if algorithm == "ops" { "[\"a\"]" } else { "[\"a\", \"b\"]" };
    JobSpec::parse(&format!(
        "name = \"m\"\nalgorithm = \"{algorithm}\"\nparties = {parties}\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = {names:?}\n\
         [columns]\ny = {{ binary = true }}\n{columns}[sampler]\ndraws = 100\n{sampler}\n[privacy]\nepsilon = 3.0\ndelta = 1e-6\n{privacy}\n"
    ))
    .unwrap()
}

/// Returns the key of the refusal and the number that it advises.
fn refusal(spec: &JobSpec) -> (String, u32) {
    let text = spec.check_new().unwrap_err().to_string();
    let words: Vec<&str> = text.split([' ', ',', ':']).collect();
    let most = words.iter().rposition(|word| *word == "most").unwrap();
    (words[0].trim_matches('`').to_owned(), words[most + 1].parse().unwrap())
}

#[test]
fn a_message_that_no_party_takes_is_refused_before_the_job_runs() {
    for (spec, key) in [
        (job("ops", 1, "candidates = 65000", ""), "sampler.candidates"),
        (job("hmc", 24, "chains = 200", ""), "sampler.chains"),
        (job("hmc", 24, "chains = 200\nfriction = 0\ntest = \"ratio\"", ""), "sampler.chains"),
        (job("sgld", 24, "chains = 256", ""), "sampler.chains"),
        (job("penalty", 257, "chains = 256", ""), "sampler.chains"),
        // A count of clipped records and a check of the variance come beside the chains' own queries.
        (job("penalty", 257, "chains = 255", "clip = 0.5"), "sampler.chains"),
        (job("barker", 257, "chains = 255", ""), "sampler.chains"),
    ] {
        let found = refusal(&spec);
        assert_eq!(found.0, key, "{}", spec.algorithm.as_str());
        let with = |most: u32| {
            let mut other = spec.clone();
            match key {
                "sampler.chains" => other.sampler.chains = most,
                _ => other.sampler.ops.candidates = most,
            }
            other
        };
        with(found.1).check_new().unwrap();
        assert!(with(found.1 + 1).check_new().is_err(), "{found:?}");
    }
}

#[test]
fn usual_jobs_are_far_below_the_limit() {
    for spec in [
        job("penalty", 20, "chains = 4", ""),
        job("penalty", 200, "chains = 256", ""),
        job("hmc", 24, "chains = 4", ""),
        job("noisy-statistics", 100, "chains = 256", ""),
        job("ops", 4, "candidates = 10000", ""),
        job("sgld", 24, "chains = 100", ""),
    ] {
        spec.check_new().unwrap();
        let longest = spec.longest_message();
        assert!(longest.queries <= MAX_QUERIES && longest.bytes <= MAX_MESSAGE);
    }
}
