//! What a job's Zarr store says of itself.

use serde_json::{Map, Value, json};

use super::Job;
use crate::result::RunResult;

/// The attributes of a store whose chains run.
pub(crate) fn at_start(job: &Job) -> Map<String, Value> {
    let spec = &job.spec;
    let noise_sd = spec.privacy.noise.sd();
    let parties: Vec<Value> = spec.parties.iter().map(|p| json!({"name": p, "noise_sd": noise_sd})).collect();
    let mut attributes = Map::new();
    for (key, value) in [
        ("job", json!(&*job.id)),
        ("name", json!(spec.name)),
        ("analyst", json!(job.analyst)),
        ("algorithm", json!(spec.algorithm.as_str())),
        ("model", json!(spec.model.kind())),
        ("seed", json!(spec.sampler.seed)),
        ("parties", json!(parties)),
        ("scale", json!("priors: numeric columns scaled to [-1, 1] by their public bounds")),
        ("created_by", json!(concat!("conclave-coordinator ", env!("CARGO_PKG_VERSION")))),
    ] {
        attributes.insert(key.to_owned(), value);
    }
    attributes
}

/// The attributes of a store that is complete, with what its making cost each party.
pub(crate) fn at_end(job: &Job, result: &RunResult) -> Map<String, Value> {
    let mut attributes = at_start(job);
    attributes.insert("stopped_by".to_owned(), json!(result.stopped_by));
    attributes.insert("seconds".to_owned(), json!(result.seconds));
    let noise_sd = job.spec.privacy.noise.sd();
    let parties: Vec<Value> = result
        .parties
        .iter()
        .map(|party| {
            let mut value = serde_json::to_value(party).unwrap_or_default();
            value["noise_sd"] = json!(noise_sd);
            value
        })
        .collect();
    attributes.insert("parties".to_owned(), json!(parties));
    attributes
}
