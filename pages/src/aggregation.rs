//! The protection in a run with masked answers: the object `aggregation` of a result, in words.

use serde_json::Value;

/// Returns a paragraph on the protection; `None` for a run without masked answers.
#[must_use]
pub fn summary(result: &Value) -> Option<String> {
    let of = &result["aggregation"];
    let figure = |key: &str| of[key].as_u64();
    if of["mode"] != "secure" {
        return None;
    }
    let (colluders, honest, parties) = (figure("colluders")?, figure("honest")?, figure("parties")?);
    Some(format!(
        "Every answer was masked before it left its owner, and only the sum over all {parties} parties was unmasked: no party's own numbers were \
         visible to anyone. Each party is charged as if protected by the noise of {honest} parties, which holds while at most {colluders} of the \
         other {} (seats, not people) collude with the coordinator. The same budget bought {honest} times as much of a chain as unmasked answers \
         would have. If more collude, or the masks are broken one day, each party's own noise remains: if all others collude, mu is up to {:.2} \
         times as large.",
        parties.saturating_sub(1),
        (honest as f64).sqrt()
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_masked_run_states_its_protection() {
        let words = summary(&json!({ "aggregation": { "mode": "secure", "colluders": 1, "honest": 4, "parties": 5 } })).unwrap();
        for part in
            ["over all 5 parties", "noise of 4 parties", "at most 1 of the other 4", "4 times as much", "2.00 times as large"]
        {
            assert!(words.contains(part), "{part}: {words}");
        }
        assert_eq!(summary(&json!({})), None);
        assert_eq!(summary(&json!({ "aggregation": { "mode": "secure" } })), None);
    }
}
