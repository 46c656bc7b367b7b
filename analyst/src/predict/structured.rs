//! Predictions as a JSON object.

use conclave_predict::{Summary, Value};
use serde_json::{Map, Value as Json, json};

use super::answer::Answer;

/// Returns the object of `predict --json`.
pub(super) fn object(job: &str, answer: &Answer) -> Json {
    let mut object = json!({
        "job": job,
        "model": answer.model,
        "interval": answer.level.get(),
        "draws": answer.draws,
        "seed": answer.seed,
        "quantities": answer.quantities.iter().map(|of| json!({ "name": of.name, "description": of.words })).collect::<Vec<_>>(),
        "warnings": answer.warnings(),
    });
    if !answer.of_result.is_empty() {
        object["result_warnings"] = json!(answer.of_result);
    }
    if let Some(site) = &answer.site {
        object["party"] = json!(site);
    }
    if let Some(estimand) = &answer.estimand {
        object["estimand"] = json!(estimand);
    }
    if answer.averages.is_empty() {
        object["predictions"] = predictions(answer);
    } else {
        object["average_effects"] = averages(answer);
    }
    if !answer.contrasts.is_empty() {
        object["contrasts"] = contrasts(answer);
    }
    object
}

fn predictions(answer: &Answer) -> Json {
    let mut lines = Vec::new();
    for (row, expected) in answer.expected.iter().enumerate() {
        for (quantity, summary) in answer.quantities.iter().zip(expected) {
            let mut line = figures(summary);
            line.insert("row".to_owned(), json!(row + 1));
            line.insert("at".to_owned(), at(&answer.rows[row]));
            line.insert("quantity".to_owned(), json!(quantity.name));
            if let Some(outcome) = answer.outcomes.get(row) {
                line.insert("outcome".to_owned(), figures(outcome).into());
            }
            lines.push(Json::Object(line));
        }
    }
    lines.into()
}

fn contrasts(answer: &Answer) -> Json {
    let mut lines = Vec::new();
    for contrast in &answer.contrasts {
        for (quantity, difference) in answer.quantities.iter().zip(&contrast.differences) {
            let mut line = json!({ "row": contrast.row + 1, "against": 1, "quantity": quantity.name });
            line["difference"] = figures(difference).into();
            if let Some(ratio) = &contrast.ratio {
                line[ratio.kind] = figures(&ratio.summary).into();
            }
            lines.push(line);
        }
    }
    lines.into()
}

fn averages(answer: &Answer) -> Json {
    let mut lines = Vec::new();
    for average in &answer.averages {
        for (quantity, effect) in answer.quantities.iter().zip(&average.effects) {
            let mut line = figures(effect);
            line.insert("predictor".to_owned(), json!(average.column));
            line.insert("change".to_owned(), json!(average.change));
            line.insert("quantity".to_owned(), json!(quantity.name));
            line.insert("rows".to_owned(), json!(answer.rows.len()));
            lines.push(Json::Object(line));
        }
    }
    lines.into()
}

/// Returns a summary's figures; one that is not finite is `null`.
fn figures(summary: &Summary) -> Map<String, Json> {
    let Summary { mean, sd, low, median, high } = *summary;
    let pairs = [("mean", mean), ("sd", sd), ("low", low), ("median", median), ("high", high)];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect()
}

fn at(row: &[(String, Value)]) -> Json {
    let value = |value: &Value| match value {
        Value::Number(number) => json!(number),
        Value::Level(level) => json!(level),
    };
    Json::Object(row.iter().map(|(name, of)| (name.clone(), value(of))).collect())
}
