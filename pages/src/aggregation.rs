//! What is protected from whom in a run whose answers left masked: the object `aggregation` of a result, in words.

use serde_json::Value;

/// A paragraph; `None` of a run whose answers were opened each by itself.
#[must_use]
pub fn told(result: &Value) -> Option<String> {
    let of = &result["aggregation"];
    let figure = |key: &str| of[key].as_u64();
    if of["mode"] != "secure" {
        return None;
    }
    let (colluders, honest, parties) = (figure("colluders")?, figure("honest")?, figure("parties")?);
    Some(format!(
        "Answers left their owners masked, and their sum over all {parties} parties alone was opened: nobody saw a party's own numbers. Each party is \
         charged as if the noise of {honest} parties protected it, which is true while at most {colluders} of the other {} (seats, not people) work \
         with the coordinator; the same budget bought {honest} times as much of a chain as answers opened one by one would have. Should more work \
         together, or the masks be broken one day, each party's own noise is left: were it all of the others, mu would be up to {:.2} times as large.",
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
    fn a_masked_run_says_who_protects_whom() {
        let words = told(&json!({ "aggregation": { "mode": "secure", "colluders": 1, "honest": 4, "parties": 5 } })).unwrap();
        for part in
            ["over all 5 parties", "noise of 4 parties", "at most 1 of the other 4", "4 times as much", "2.00 times as large"]
        {
            assert!(words.contains(part), "{part}: {words}");
        }
        assert_eq!(told(&json!({})), None);
        assert_eq!(told(&json!({ "aggregation": { "mode": "secure" } })), None);
    }
}
