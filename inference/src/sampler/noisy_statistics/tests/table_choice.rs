#![allow(clippy::unwrap_used)]
use super::*;

fn job(predictors: usize, kind: &str, outcome: &str, more: &str) -> String {
    let names: Vec<String> = (0..predictors).map(|i| format!("c{i}")).collect();
    let columns: String = names.iter().map(|name| format!("{name} = {{ binary = true }}\n")).collect();
    format!(
        "name = \"t\"\nalgorithm = \"auto\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"{kind}\"\noutcome = \"y\"\npredictors = {names:?}\n\
         [columns]\ny = {{ {outcome} }}\n{columns}[privacy]\nepsilon = 1.0\ndelta = 1e-6\n{more}"
    )
}

fn logistic(predictors: usize, more: &str) -> String {
    job(predictors, "logistic", "binary = true", more)
}

/// The line is written where the table's predicted error is smaller, and the rest of the text stays.
#[test]
fn the_better_release_is_written_into_a_job() {
    for text in [logistic(3, ""), logistic(3, "[release] # of one table\nclip = \"auto\"\n")] {
        let written = with_chosen_table(&text);
        let spec = JobSpec::parse(&written).unwrap();
        assert_eq!((spec.release.table, spec.releases()), (Some(true), vec!["table"]), "{written}");
        let others: Vec<&str> = written.lines().filter(|line| *line != CHOSEN && *line != "[release]").collect();
        assert_eq!(others, text.lines().collect::<Vec<_>>());
        assert_eq!(with_chosen_table(&written), written);
    }
}

/// A table is an answer of the plain fit: `"auto"` admits it, `"always"` does not.
#[test]
fn weights_by_the_releases_admit_a_table() {
    let weights = |weights: &str, predictors: usize| {
        logistic(predictors, "").replace("outcome = ", &format!("weights = \"{weights}\"\noutcome = "))
    };
    assert_eq!(JobSpec::parse(&with_chosen_table(&weights("auto", 3))).unwrap().releases(), vec!["table"]);
    assert_eq!(with_chosen_table(&weights("always", 3)), weights("always", 3));
    // A small table is used anyway, and has a prediction.
    let small = JobSpec::parse(&weights("auto", 2)).unwrap();
    assert_eq!(small.releases(), vec!["table"]);
    outlook(&small, &PartyMetadata::of_rows(&[1000; 2])).unwrap();
    assert_eq!(JobSpec::parse(&weights("always", 2)).unwrap().releases(), vec!["score", "table"]);
}

/// Scores stay where a table has more noise: where its cells are far more than the coefficients, or the outcome is a count.
/// So does the text of a job that settles the matter itself, and of one without a table.
#[test]
fn other_jobs_stay_as_they_are() {
    for text in [
        logistic(11, ""),
        job(2, "poisson", "min = 0, max = 3", ""),
        job(2, "poisson", "min = 0, max = 60", ""),
        logistic(2, ""),
        logistic(3, "[release]\ntable = false\n"),
        logistic(3, "[release]\nstages = [0.2, 0.8]\n"),
        logistic(3, "[sampler]\nuntil = { ess = 100 }\n"),
        job(5, "linear", "min = 0, max = 60", ""),
        logistic(12, ""),
        "release = {}\n".to_owned() + &logistic(3, ""),
        "no job".to_owned(),
    ] {
        assert_eq!(with_chosen_table(&text), text);
    }
}

/// A histogram comes first where the declared times are far apart.
#[test]
fn times_far_apart_have_a_histogram() {
    let job = |least: f64| {
        format!(
            "name = \"t\"\nalgorithm = \"auto\"\nparties = [\"a\"]\n[model]\nkind = \"weibull\"\noutcome = \"y\"\nevent = \"d\"\n[columns]\n\
             y = {{ min = {least}, max = 100 }}\nd = {{ binary = true }}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
        )
    };
    let releases = |least: f64| JobSpec::parse(&with_chosen_table(&job(least))).unwrap().releases();
    assert_eq!((releases(1.0), releases(2.0)), (vec!["table", "score"], vec!["score"]));
}
