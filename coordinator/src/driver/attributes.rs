//! Attributes of a job's Zarr store, including its analyst.

use conclave_draws::attributes;
use conclave_draws::result::RunResult;
use serde_json::{Map, Value, json};

use super::job::Job;

/// Attributes of a store while the chains run.
pub(crate) fn at_start(job: &Job) -> Map<String, Value> {
    with_analyst(job, attributes::at_start(&job.spec, &job.id))
}

/// Attributes of a complete store.
pub(crate) fn at_end(job: &Job, result: &RunResult) -> Map<String, Value> {
    with_analyst(job, attributes::at_end(&job.spec, &job.id, result))
}

fn with_analyst(job: &Job, mut attributes: Map<String, Value>) -> Map<String, Value> {
    attributes.insert("analyst".to_owned(), json!(job.analyst));
    attributes
}
