//! The choice of `algorithm = "auto"`, from the job file alone.

#![allow(clippy::unwrap_used)]

use crate::job::{Algorithm, JobSpec};

fn chosen(model: &str, rest: &str) -> (Algorithm, bool) {
    let text = format!(
        "name = \"a\"\nalgorithm = \"auto\"\nparties = [\"p\"]\n[model]\n{model}\n[columns]\nd = {{ binary = true }}\n\
         y = {{ min = 1, max = 9 }}\nx = {{ min = -1, max = 1 }}\nw = {{ levels = [\"a\", \"b\"] }}\n{rest}\n\
         [privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
    );
    let spec = JobSpec::parse(&text).unwrap();
    (spec.algorithm, spec.chosen.is_some())
}

#[test]
fn the_model_chooses() {
    let once = Algorithm::NoisyStatistics;
    for (model, algorithm) in [
        ("kind = \"logistic\"\noutcome = \"d\"\npredictors = [\"x\"]", once),
        ("kind = \"poisson\"\noutcome = \"y\"\npredictors = [\"x\"]", once),
        ("kind = \"negative_binomial\"\noutcome = \"y\"\npredictors = [\"x\"]", once),
        ("kind = \"linear\"\noutcome = \"y\"\npredictors = [\"x\"]", once),
        ("kind = \"weibull\"\noutcome = \"y\"\nevent = \"d\"", once),
        ("kind = \"multinomial\"\noutcome = \"w\"", once),
        ("kind = \"naive_bayes\"\noutcome = \"d\"\npredictors = [\"w\"]", Algorithm::Augmentation),
        ("kind = \"linear\"\noutcome = \"y\"\npredictors = [\"x\"]\npower = 0.5", Algorithm::Penalty),
        ("kind = \"gaussian_mixture\"\noutcome = \"x\"\nsd = 1.0\nweight = 0.5", Algorithm::Penalty),
    ] {
        assert_eq!(chosen(model, ""), (algorithm, true), "{model}");
    }
}

/// An algorithm that releases a sum without a count of usable rows is not chosen, and is refused where it is requested.
#[test]
fn incomplete_rows_choose_an_algorithm_that_counts_them() {
    let incomplete = |model: &str| format!("{model}\nincomplete_rows = true");
    let counted = [
        "kind = \"logistic\"\noutcome = \"d\"\npredictors = [\"x\"]",
        "kind = \"linear\"\noutcome = \"y\"\npredictors = [\"x\"]",
    ];
    for model in counted {
        assert_eq!(chosen(&incomplete(model), "").0, Algorithm::NoisyStatistics, "{model}");
    }
    assert_eq!(chosen(&incomplete("kind = \"multinomial\"\noutcome = \"w\""), "").0, Algorithm::Augmentation);
    for model in [
        "kind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 1.0",
        "kind = \"bernoulli\"\noutcome = \"d\"",
        "kind = \"poisson_mean\"\noutcome = \"y\"",
    ] {
        let job = |model: &str, algorithm: &str| {
            JobSpec::parse(&format!(
                "name = \"a\"\nalgorithm = \"{algorithm}\"\nparties = [\"p\"]\n[model]\n{model}\n[columns]\nd = {{ binary = true }}\n\
                 y = {{ min = 1, max = 9 }}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
            ))
        };
        assert_eq!(chosen(&incomplete(model), "").0, Algorithm::Penalty, "{model}");
        assert!(
            !job(model, "penalty").unwrap().spares_inert_rows()
                && job(&incomplete(model), "penalty").unwrap().spares_inert_rows()
        );
        for algorithm in ["noisy-statistics", "penalty-exp-family", "augmentation"] {
            assert!(job(model, algorithm).is_ok(), "{model}");
            let error = job(&incomplete(model), algorithm).unwrap_err();
            assert!(error.key == "algorithm" && error.message.contains("the number of usable rows"), "{error}");
        }
    }
}

#[test]
fn keys_of_chains_choose_chains() {
    let logistic = "kind = \"logistic\"\noutcome = \"d\"\npredictors = [\"x\"]";
    for rest in ["[sampler]\nproposal = { kind = \"guided\" }", "[sampler]\nlocate_share = 0.2"] {
        assert_eq!(chosen(logistic, rest).0, Algorithm::Penalty, "{rest}");
    }
}
