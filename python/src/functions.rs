//! The functions that neither wait nor read tables of records.

use std::ffi::OsString;

use conclave::api::{self, ErrorCode};
use pyo3::prelude::*;
use serde_json::{Map, Value};

use crate::arrow::{Handed, texts};
use crate::errors::{input, raised};

fn value(py: Python<'_>, json: &str) -> PyResult<Value> {
    raised(py, serde_json::from_str(json).map_err(|e| input(e.to_string())))
}

/// Returns the names of the error codes.
#[pyfunction]
pub(crate) fn error_codes() -> Vec<&'static str> {
    ErrorCode::ALL.iter().map(|code| code.as_str()).collect()
}

/// Returns the text that is signed for a job.
#[pyfunction]
pub(crate) fn completed(py: Python<'_>, job: &str, anyway: bool) -> PyResult<String> {
    raised(py, api::completed(job, anyway))
}

/// Returns a description of a job, a JSON object.
#[pyfunction]
pub(crate) fn describe(py: Python<'_>, job: &str) -> PyResult<String> {
    raised(py, api::describe(job)).map(|object| object.to_string())
}

/// Writes a job from a formula; `parts` is a JSON object, and `columns` a TOML text.
#[pyfunction]
pub(crate) fn from_formula(py: Python<'_>, parts: &str, columns: &str) -> PyResult<String> {
    let parts = value(py, parts)?;
    raised(py, api::from_formula(parts, columns))
}

/// Sets keys of a job; `settings` is a JSON object.
#[pyfunction]
pub(crate) fn with_settings(py: Python<'_>, job: &str, settings: &str) -> PyResult<String> {
    let settings: Map<String, Value> = value(py, settings)?.as_object().cloned().unwrap_or_default();
    raised(py, api::with_settings(job, &settings))
}

/// Plans a job: the object as JSON, and the text.
#[pyfunction]
#[pyo3(signature = (job, rehearsal))]
pub(crate) fn plan(py: Python<'_>, job: &str, rehearsal: Option<&str>) -> PyResult<(String, String)> {
    let planned = py.detach(|| api::plan(job, rehearsal));
    raised(py, planned).map(|plan| (plan.object.to_string(), plan.text))
}

/// Accounts for pairs of mu and count: a JSON object.
#[pyfunction]
pub(crate) fn account(py: Python<'_>, releases: Vec<(f64, u64)>, delta: f64) -> PyResult<String> {
    raised(py, api::account(&releases, delta)).map(|object| object.to_string())
}

/// Returns the mu that a budget buys.
#[pyfunction]
pub(crate) fn mu_of(py: Python<'_>, epsilon: f64, delta: f64) -> PyResult<f64> {
    raised(py, api::mu_of(epsilon, delta))
}

/// Accounts for subsampled releases; `options` is a JSON object. Returns a JSON object.
#[pyfunction]
pub(crate) fn account_subsampled(py: Python<'_>, options: &str, delta: f64) -> PyResult<String> {
    let options = value(py, options)?;
    let cost = py.detach(|| api::account_subsampled(options, delta));
    raised(py, cost).map(|object| object.to_string())
}

/// Predicts from a run's object and its draws, as bytes of doubles: a JSON object.
#[pyfunction]
#[pyo3(signature = (job, result, draws, shape, options, table))]
pub(crate) fn predict(
    py: Python<'_>,
    job: &str,
    result: &str,
    draws: &[u8],
    shape: (usize, usize, usize),
    options: &str,
    table: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let mut options = value(py, options)?;
    if let Some(table) = table {
        let needed = raised(py, api::columns(job))?;
        let handed = Handed::of(table, &needed)?;
        let (names, rows) = raised(py, texts(&handed))?;
        (options["names"], options["rows"]) = (names.into(), rows.into());
    }
    let (parameters, chains, count) = shape;
    let mut doubles = draws.chunks_exact(8).map(|bytes| bytes.try_into().map_or(f64::NAN, f64::from_ne_bytes));
    let mut chain = || doubles.by_ref().take(count).collect::<Vec<f64>>();
    let samples: Vec<Vec<Vec<f64>>> = (0..parameters).map(|_| (0..chains).map(|_| chain()).collect()).collect();
    let predicted = py.detach(|| api::predict(job, result, &samples, options));
    raised(py, predicted).map(|object| object.to_string())
}

/// Runs the command line; `program` starts this program again. Returns the exit code.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, program: Vec<OsString>, args: Vec<OsString>) -> u8 {
    py.detach(|| conclave::main_as(program, args))
}
