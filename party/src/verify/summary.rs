//! Compares the published result with the draws implied by the log.

use conclave_common::job::{Continuation, JobSpec};
use conclave_inference::diagnostics::{Summary, summarise};
use conclave_inference::sampler::RunReport;
use serde_json::{Value, json};

use super::check::{Check, MAX_TEXT};
use super::replayed::Replayed;
use conclave_vault::text::clip;

const NAME: &str = "result";

/// Compares every figure of the result that follows from the draws.
pub(super) fn check(replayed: &Replayed) -> Check {
    let claim = &replayed.claim;
    if !claim.over() {
        return Check::skipped(NAME, format!("the job has not ended: it is {}", clip(&claim.state, MAX_TEXT)));
    }
    match &claim.result {
        Value::Null if claim.state == "finished" => Check::fails(NAME, "the job has finished but has no result"),
        Value::Null => Check::skipped(NAME, "the job ended without a result"),
        _ if !replayed.whole => Check::skipped(NAME, "the log can't be replayed to its end"),
        result => Check::of(
            NAME,
            difference(replayed, result),
            "posterior, counts and last states follow from the draws, and the other figures from the releases",
        ),
    }
}

/// Returns the first figure that differs.
fn difference(replayed: &Replayed, result: &Value) -> Option<String> {
    let draws = &replayed.drawn.sampling;
    let samples: Vec<Vec<&[f64]>> = draws.theta.iter().map(|chains| chains.iter().map(Vec::as_slice).collect()).collect();
    let names = replayed.spec.draw_names();
    let original = replayed.spec.in_original_units(&samples);
    let original: Vec<Vec<&[f64]>> = original.iter().map(|chains| chains.iter().map(Vec::as_slice).collect()).collect();
    let last = |chain: usize| samples.iter().filter_map(|parameter| parameter[chain].last().copied()).collect();
    let states: Vec<Vec<f64>> = (0..draws.chains()).map(last).collect();
    let counts = [
        ("iterations", json!(replayed.count)),
        ("draws_per_chain", json!(draws.draws())),
        ("acceptance_rate", json!(draws.acceptance_rate())),
        // The claimed protection: colluders, and the parties whose noise protects.
        ("aggregation", json!(aggregation(&replayed.spec))),
    ];
    // "hopeless" is the alias that older runs wrote.
    if matches!(result["stopped_by"].as_str(), Some("futility" | "hopeless")) && !replayed.futility {
        return Some("stopped_by: futility is published, but the replay does not forecast it".to_owned());
    }
    if result["stopped_by"] == "draws" && replayed.by_budget {
        return Some("stopped_by: draws is published, but in the replay the budget ended the run".to_owned());
    }
    let counted = counts.into_iter().find_map(|(key, expected)| differs(key, &result[key], &expected));
    counted
        .or_else(|| rows("posterior", &names, &samples, result))
        .or_else(|| rows("posterior_original", &names, &original, result))
        .or_else(|| {
            let claimed = serde_json::from_value::<Continuation>(result["continuation"].clone()).ok();
            let same = claimed.is_some_and(|claimed| claimed.states == states);
            (!same).then(|| "continuation: the chains' last states are not those of the last draws".to_owned())
        })
        .or_else(|| {
            let report = serde_json::to_value(&replayed.report).unwrap_or_default();
            // Estimates of an answer that is not adequate stand apart from it; earlier coordinators left these sections in their place.
            let claimed = |section: &str| match &result["inadequate"][section] {
                Value::Null => &result[section],
                apart => apart,
            };
            RunReport::SECTIONS.into_iter().find_map(|section| beside(section, &report[section], claimed(section)))
        })
}

/// Returns a result's statement on how the answers were opened; `None` if each was opened separately.
fn aggregation(spec: &JobSpec) -> Option<Value> {
    let secure = spec.aggregation.secure()?;
    Some(json!({
        "mode": "secure", "colluders": secure.colluders, "honest": spec.honest().get(), "parties": spec.parties.len(),
    }))
}

/// Returns the first differing figure beside the posterior: the fitted quadratic, or the diagnostics of the chains. A missing
/// object is accepted: earlier coordinators published none.
fn beside(what: &str, recomputed: &Value, claimed: &Value) -> Option<String> {
    if claimed.is_null() {
        return None;
    }
    let keys = |value: &Value| value.as_object().map(|object| object.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
    let mut both = keys(recomputed);
    both.extend(keys(claimed));
    let one = |key: &String| differs(&format!("{what}, {key}"), &claimed[key], &recomputed[key]);
    both.iter().find_map(one).or_else(|| differs(what, claimed, recomputed))
}

fn rows(key: &str, names: &[String], samples: &[Vec<&[f64]>], result: &Value) -> Option<String> {
    // An answer that is not adequate has its figures apart.
    let figures = if result["inadequate"].is_object() { &result["inadequate"] } else { result };
    let rows = figures[key].as_array().map(Vec::as_slice).unwrap_or_default();
    if rows.len() != names.len() {
        return Some(format!("{key} has {} rows, but the model has {} parameters", rows.len(), names.len()));
    }
    names.iter().zip(samples).zip(rows).find_map(|((name, chains), row)| {
        let summary: Summary = summarise(chains);
        let draws = chains.iter().map(|chain| chain.len()).sum();
        let wrong = |summary: Summary| {
            let figures = serde_json::to_value(summary).unwrap_or_default();
            let one =
                |(figure, expected): (&String, &Value)| differs(&format!("{key}, {figure} of {name}"), &row[figure], expected);
            figures.as_object().and_then(|figures| figures.iter().find_map(one))
        };
        let named = differs(&format!("{key}, name"), &row["name"], &json!(name));
        // Earlier coordinators also reported errors of sds from few effective draws, and effective sample sizes above the number of
        // draws.
        let earlier = [summary.with_ess_capped(draws), summary];
        named.or_else(|| wrong(summary.published(draws)).filter(|_| earlier.into_iter().all(|summary| wrong(summary).is_some())))
    })
}

fn differs(what: &str, published: &Value, recomputed: &Value) -> Option<String> {
    let shown = |value: &Value| clip(&value.to_string(), 60);
    (published != recomputed)
        .then(|| format!("{what}: {} is published, but the replay gives {}", shown(published), shown(recomputed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With few effective draws a result withholds the error of an sd. Earlier coordinators published it.
    #[test]
    fn figures_of_earlier_coordinators_are_accepted() {
        let chain: Vec<f64> = (0..20).map(|i| f64::from(i * 7919 % 1009)).collect();
        let (samples, names) = (vec![vec![&chain[..], &chain[..]]], ["x".to_owned()]);
        let summary = summarise(&samples[0]);
        let published = |summary: Summary| {
            let mut row = serde_json::to_value(summary).unwrap_or_default();
            row["name"] = json!("x");
            rows("posterior", &names, &samples, &json!({ "posterior": [row] }))
        };
        assert!(summary.published(40).mcse_sd.is_nan());
        assert_eq!(published(summary.published(40)), None);
        assert_eq!(published(summary.with_ess_capped(40)), None);
        assert!(published(Summary { mcse_sd: 2.0 * summary.mcse_sd, ..summary }).is_some());
    }
}
