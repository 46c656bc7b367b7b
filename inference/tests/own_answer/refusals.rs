//! Jobs without an own answer are refused with the reason and the remedy.

use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;
use conclave_inference::sampler::{OwnAnswerError, OwnRecords, OwnReleases};
use conclave_privacy::pass::ModelData;

use super::{Setting, releases, shards};

fn spec(algorithm: &str, parties: &str, model: &str) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"r\"\nalgorithm = \"{algorithm}\"\nparties = [{parties}]\n[model]\noutcome = \"y\"\n{model}\n[columns]\n\
         y = {{ min = -1, max = 1 }}\nz = {{ binary = true }}\nx = {{ min = -1, max = 1 }}\nw = {{ binary = true }}\n[sampler]\ndraws = 50\n\
         force = true\n[privacy]\nepsilon = 8.0\ndelta = 1e-6\n"
    ))
    .unwrap()
}

/// Runs a job of two equal owners and returns the refusal.
fn refusal(spec: &JobSpec, predictor: &[f64], outcome: &[f64]) -> String {
    let predictors = if spec.model.kind() == "bernoulli" { Vec::new() } else { vec![predictor.to_vec()] };
    let data = ModelData { outcome: outcome.to_vec(), predictors, ..ModelData::default() };
    let shards = [data.clone(), data];
    let own = releases(spec, &shards, 1);
    own.answer(OwnRecords { data: &shards[0], summed: &shards[0] }).unwrap_err().to_string()
}

#[test]
fn other_releases_than_plain_scores_are_refused_by_name() {
    let x: Vec<f64> = (0..400).map(|i| f64::from(i) / 200.0 - 1.0).collect();
    let binary: Vec<f64> = (0..400).map(|i| f64::from(i * i % 3 % 2)).collect();
    let two = "\"a\", \"b\"";
    let cases = [
        ("kind = \"linear\"\npredictors = [\"x\"]\nweights = \"never\"", &x, &x, ["second moments", "student_t"]),
        ("kind = \"linear\"\npredictors = [\"x\"]\nweights = \"always\"", &x, &x, ["weighted", "weights = \"never\""]),
    ];
    for (model, predictor, outcome, words) in cases {
        let refused = refusal(&spec("noisy-statistics", two, model), predictor, outcome);
        assert!(words.iter().all(|word| refused.contains(word)), "{refused}");
    }
    let of_z = |model: &str| {
        JobSpec::parse(&format!(
            "name = \"r\"\nalgorithm = \"noisy-statistics\"\nparties = [{two}]\n[model]\noutcome = \"z\"\n{model}\n[columns]\nz = {{ binary = true }}\n\
             w = {{ binary = true }}\n[sampler]\ndraws = 50\nforce = true\n[privacy]\nepsilon = 8.0\ndelta = 1e-6\n"
        ))
        .unwrap()
    };
    for (model, words) in [
        ("kind = \"logistic\"\npredictors = [\"w\"]", ["table of counts", "table = false"]),
        ("kind = \"bernoulli\"", ["totals of one column", "intercept"]),
    ] {
        let refused = refusal(&of_z(model), &binary, &binary);
        assert!(words.iter().all(|word| refused.contains(word)), "{refused}");
    }
}

#[test]
fn jobs_without_releases_of_others_are_refused() {
    let model = "kind = \"student_t\"\ndf = 4.0\npredictors = [\"x\"]";
    let alone = OwnReleases::new(&spec("noisy-statistics", "\"a\"", model), &PartyMetadata::of_rows(&[500]), 0).err();
    assert_eq!(alone, Some(OwnAnswerError::OneOwner));
    let chains = OwnReleases::new(&spec("hmc", "\"a\", \"b\"", model), &PartyMetadata::of_rows(&[500, 500]), 0).err();
    assert_eq!(chains, Some(OwnAnswerError::Algorithm { algorithm: "hmc" }));
    let setting = Setting::Logistic;
    let shards = shards(setting, (2, 300), 1);
    let records = OwnRecords { data: &shards[0], summed: &shards[0] };
    let job = setting.spec(2, 8.0, "");
    let none = OwnReleases::new(&job, &PartyMetadata::of_rows(&[300, 300]), 0).unwrap();
    assert_eq!(none.answer(records), Err(OwnAnswerError::NothingReleased));
    let other = OwnReleases::new(&job, &PartyMetadata::of_rows(&[301, 300]), 0).unwrap();
    assert_eq!(other.answer(records), Err(OwnAnswerError::OtherRecords { expected: 301, got: 300 }));
}
