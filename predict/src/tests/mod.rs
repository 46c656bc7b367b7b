//! Predictions against closed forms, statsmodels, and simulated outcomes.
#![allow(clippy::unwrap_used)]

mod at;
mod covariates;
mod effects;
mod intervals;
mod outcomes;
mod sites;
mod vectors;

use conclave_common::job::JobSpec;

use crate::{Covariates, Level, Posterior, Predictor, Row, Site, Summary, Table, TableRow};

/// A job of this `[model]` over these columns; `more` stands at its end.
fn job_with(model: &str, columns: &str, more: &str) -> JobSpec {
    let text = format!(
        "name = \"p\"\nparties = [\"a\", \"b\"]\n{}[model]\n{model}\n[columns]\n{columns}\n{more}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n",
        if more.is_empty() { "" } else { "algorithm = \"noisy-statistics\"\n" }
    );
    JobSpec::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn job(model: &str, columns: &str) -> JobSpec {
    job_with(model, columns, "")
}

/// A logistic regression with a number, a binary column and levels.
fn study() -> JobSpec {
    job(
        "kind = \"logistic\"\noutcome = \"y\"\npredictors = [\"age\", \"treated\", \"ward\"]",
        "y = { binary = true }\nage = { min = 20, max = 80 }\ntreated = { binary = true }\nward = { levels = [\"a\", \"b, c\", \"d\"] }",
    )
}

/// One chain with these draws, `[draw][value]`, as a store has it.
fn chain(draws: &[Vec<f64>]) -> Vec<Vec<Vec<f64>>> {
    (0..draws[0].len()).map(|value| vec![draws.iter().map(|draw| draw[value]).collect()]).collect()
}

fn posterior(spec: &JobSpec, draws: &[Vec<f64>]) -> Posterior {
    Posterior::new(spec, &chain(draws), Site::Mean).unwrap()
}

fn table(names: &[&str], rows: &[&[&str]]) -> Table {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let rows =
        rows.iter().enumerate().map(|(at, row)| TableRow { place: format!(" line {}", at + 2), texts: owned(row) }).collect();
    Table { place: "new.csv".to_owned(), names: owned(names), rows, only_columns: false }
}

fn rows(spec: &JobSpec, table: Table) -> Vec<Row> {
    Covariates::read(spec, &[table]).unwrap().0.rows(spec).unwrap()
}

/// The expected outcome at each row of a model with one quantity.
fn expected(spec: &JobSpec, draws: &[Vec<f64>], rows: &[Row], level: Level) -> Vec<Summary> {
    let predictor = Predictor::new(spec, &[]).unwrap();
    predictor.expected(&posterior(spec, draws), rows, level).into_iter().map(|row| row[0]).collect()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1.0)
}

fn logistic(eta: f64) -> f64 {
    1.0 / (1.0 + (-eta).exp())
}
