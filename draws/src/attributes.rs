//! Attributes of a store of draws.

use conclave_common::job::JobSpec;
use serde_json::{Map, Value, json};

use crate::result::RunResult;
use crate::zarr::{columns, maker_attributes};

/// Returns the attributes of a store whose chains are running.
#[must_use]
pub fn at_start(spec: &JobSpec, job: &str) -> Map<String, Value> {
    let noise_sd = spec.privacy.noise.sd();
    let parties: Vec<Value> = spec.parties.iter().map(|p| json!({"name": p, "noise_sd": noise_sd})).collect();
    let mut attributes = maker_attributes();
    for (key, value) in [
        ("job", json!(job)),
        ("name", json!(spec.name)),
        ("algorithm", json!(spec.algorithm.as_str())),
        ("model", json!(spec.model.kind())),
        ("seed", json!(spec.sampler.seed)),
        ("parameters", json!(spec.draw_names())),
        ("parties", json!(parties)),
        ("scale", json!("priors: numeric columns scaled to [-1, 1] by their public bounds")),
        ("columns", columns(spec)),
        ("created_by", json!(concat!("conclave ", env!("CARGO_PKG_VERSION")))),
    ] {
        attributes.insert(key.to_owned(), value);
    }
    if let Some(job) = &spec.extends {
        attributes.insert("extends".to_owned(), json!(job));
    }
    attributes
}

/// Returns the attributes of a complete store, with the privacy cost at each party.
#[must_use]
pub fn at_end(spec: &JobSpec, job: &str, result: &RunResult) -> Map<String, Value> {
    let mut attributes = at_start(spec, job);
    if let Some(job) = &result.refit_of {
        attributes.insert("refit_of".to_owned(), json!(job));
    }
    if let Some(estimand) = result.estimand() {
        attributes.insert("estimand".to_owned(), json!(estimand));
    }
    let apart = result.inadequate.as_ref().and_then(|inadequate| inadequate.weighted.as_ref());
    if let Some(weighted) = apart.or(result.report.weighted.as_ref()) {
        attributes.insert("weighted".to_owned(), json!(weighted));
    }
    attributes.insert("stopped_by".to_owned(), json!(result.stopped_by));
    attributes.insert("verdict".to_owned(), json!({ "grade": result.verdict.grade, "reasons": result.verdict.reasons }));
    attributes.insert("adequate".to_owned(), json!(result.adequacy.adequate));
    attributes.insert("seconds".to_owned(), json!(result.seconds));
    let noise_sd = spec.privacy.noise.sd();
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
