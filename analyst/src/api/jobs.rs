//! Jobs as texts: written from a formula, changed, completed, described, planned; and predictions from their draws.

use conclave_common::job::JobSpec;
use conclave_predict::{Level, Table, TableRow};
use conclave_proto::error::Fault;
use serde::Deserialize;
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, Table as TomlTable, TableLike};

use crate::faults::input;
use crate::job::{Outline, job_file};
use crate::predict::{Request, predicted};
use crate::{plan as planner, submit};

/// A plan: its object, and its text.
pub struct Planned {
    /// The object of `plan --json`.
    pub object: Value,
    /// The text that the command prints.
    pub text: String,
}

/// The parts of a job that a formula needs beside it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts {
    name: String,
    parties: Vec<String>,
    formula: String,
    family: String,
    df: Option<f64>,
    epsilon: f64,
    delta: f64,
    records: Option<u64>,
}

fn parsed(job: &str) -> Result<JobSpec, Fault> {
    JobSpec::parse(job).map_err(|e| input(e.to_string()))
}

/// Writes a job from a regression formula. `parts` has the fields name, parties, formula, family, df, epsilon, delta and records;
/// `columns` is a TOML text with a `[columns]` table.
///
/// # Errors
/// A formula or columns that do not fit, with the place.
pub fn from_formula(parts: Value, columns: &str) -> Result<String, Fault> {
    let parts: Parts = serde_json::from_value(parts).map_err(|e| input(e.to_string()))?;
    let Parts { name, parties, formula, family, df, epsilon, delta, records } = &parts;
    let outline = Outline { name, parties, formula, family, df: *df, epsilon: *epsilon, delta: *delta, records: *records };
    job_file(&outline, columns).map(|(text, _)| text).map_err(|fault| input(fault.in_file(std::path::Path::new("columns"))))
}

/// Sets keys of a job's text: an object whose objects are tables of the job. Comments and layout stay; null removes a key.
///
/// # Errors
/// A text that is not TOML; a key that is a table on one side alone.
pub fn with_settings(job: &str, settings: &Map<String, Value>) -> Result<String, Fault> {
    let mut file: DocumentMut = job.parse().map_err(|e: toml_edit::TomlError| input(e.to_string()))?;
    set_all(file.as_table_mut(), settings, "")?;
    Ok(file.to_string())
}

fn set_all(table: &mut dyn TableLike, settings: &Map<String, Value>, place: &str) -> Result<(), Fault> {
    for (key, value) in settings {
        let place = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
        match value {
            Value::Null => drop(table.remove(key)),
            Value::Object(inner) => {
                let entry = table.entry(key).or_insert_with(|| Item::Table(TomlTable::new()));
                let inside = entry.as_table_like_mut().ok_or_else(|| input(format!("{place} is not a table in the job")))?;
                set_all(inside, inner, &place)?;
            }
            plain => {
                let value = toml_value(plain).ok_or_else(|| input(format!("{place}: {plain} has no form in a job file")))?;
                let decor = table.get(key).and_then(Item::as_value).map(|old| old.decor().clone());
                let mut item = toml_edit::value(value);
                if let (Some(decor), Some(new)) = (decor, item.as_value_mut()) {
                    *new.decor_mut() = decor;
                }
                table.insert(key, item);
            }
        }
    }
    Ok(())
}

fn toml_value(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(toml_value).collect::<Option<toml_edit::Array>>()?.into(),
        Value::Null | Value::Object(_) => return None,
    })
}

/// Completes and checks a job's text as a submission does: the algorithm and the choices made for the job are written into it.
///
/// # Errors
/// A text that is no job, with the key.
pub fn completed(job: &str, anyway: bool) -> Result<String, Fault> {
    let text = submit::completed(job).map_err(|e| input(e.to_string()))?;
    if anyway { submit::forced(text) } else { Ok(text) }
}

/// Describes a job: the object that `conclave describe --json` prints, without the texts.
///
/// # Errors
/// A text that is no job, with the key.
pub fn describe(job: &str) -> Result<Value, Fault> {
    Ok(crate::describe::object(&parsed(job)?))
}

/// Returns the columns that a table of a job must have, in the model's order.
///
/// # Errors
/// A text that is no job, with the key.
pub fn columns(job: &str) -> Result<Vec<String>, Fault> {
    Ok(parsed(job)?.model.columns().into_iter().map(str::to_owned).collect())
}

/// Forecasts a job's result; `rehearsal` is the object of a rehearsal of it.
///
/// # Errors
/// A job without a number of records, or that the planner refuses.
pub fn plan(job: &str, rehearsal: Option<&str>) -> Result<Planned, Fault> {
    let (object, text) = planner::plan(job, rehearsal)?;
    Ok(Planned { object, text })
}

/// The options of a prediction.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Wanted {
    party: Option<String>,
    new_party: bool,
    times: Vec<f64>,
    outcome: bool,
    contrast: bool,
    average: Vec<String>,
    interval: Option<f64>,
    seed: Option<u64>,
    names: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Predicts at rows of covariates from a run's object and its kept draws, `[value][chain][draw]`: the object of `predict --json`.
/// `options` has the names of the command's options, and `names` and `rows` of the covariates as texts.
///
/// # Errors
/// An answer that is not adequate; options that do not fit the job.
pub fn predict(job: &str, result: &str, samples: &[Vec<Vec<f64>>], options: Value) -> Result<Value, Fault> {
    let wanted: Wanted = serde_json::from_value(options).map_err(|e| input(e.to_string()))?;
    let row = |(at, texts)| TableRow { place: format!(" row {at} (counted from 0)"), texts };
    let rows: Vec<TableRow> = wanted.rows.into_iter().enumerate().map(row).collect();
    let table = Table { place: "the table".to_owned(), names: wanted.names, rows, only_columns: false };
    let level = match wanted.interval {
        None => Level::DEFAULT,
        Some(level) => level.to_string().parse::<Level>().map_err(|e| input(e.to_string()))?,
    };
    let request = Request {
        tables: if table.names.is_empty() { Vec::new() } else { vec![table] },
        party: wanted.party,
        new_party: wanted.new_party,
        times: wanted.times,
        outcome: wanted.outcome,
        contrast: wanted.contrast,
        average: wanted.average,
        level,
        seed: wanted.seed,
    };
    let result: Value = serde_json::from_str(result).map_err(|e| input(e.to_string()))?;
    predicted(&parsed(job)?, &result, samples, &request)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    const JOB: &str = "name = \"j\" # mine\nparties = [\"a\", \"b\"]\n[model]\nkind = \"bernoulli\"\noutcome = \"y\"\n[columns]\ny = { binary = true }\n\
                       [privacy]\nepsilon = 3.0\ndelta = 1e-6\n";

    #[test]
    fn settings_are_set_and_comments_stay() {
        let settings =
            json!({ "name": "k", "privacy": { "epsilon": 2 }, "prior": { "y": "beta(2, 2)" }, "plan": { "records": [5, 6] } });
        let text = with_settings(JOB, settings.as_object().unwrap()).unwrap();
        for part in ["name = \"k\" # mine\n", "epsilon = 2\n", "[prior]\ny = \"beta(2, 2)\"\n", "records = [5, 6]"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let gone = with_settings(&text, json!({ "prior": null }).as_object().unwrap()).unwrap();
        assert!(!gone.contains("beta"), "{gone}");
        assert!(
            with_settings(JOB, json!({ "name": { "x": 1 } }).as_object().unwrap())
                .unwrap_err()
                .message
                .contains("name is not a table")
        );
    }

    #[test]
    fn a_formula_makes_a_job_that_is_described() {
        let parts = json!({ "name": "s", "parties": ["a", "b"], "formula": "died ~ age", "family": "logistic", "epsilon": 3.0, "delta": 1e-6 });
        let declared = "[columns]\ndied = { binary = true }\nage = { min = 0, max = 100 }\n";
        let job = from_formula(parts, declared).unwrap();
        let signed = completed(&job, true).unwrap();
        let about = describe(&signed).unwrap();
        assert_eq!(columns(&signed).unwrap(), ["died", "age"]);
        assert_eq!(about["columns"]["age"], json!({ "min": 0.0, "max": 100.0 }));
        assert_eq!(about["parameters"], json!(["intercept", "age"]));
        assert!(signed.contains("force = true"), "{signed}");
        assert!(plan(&signed, None).map(|_| ()).unwrap_err().to_string().contains("plan.records: missing: write records"));
    }
}
