//! The result of an ended job, as its page shows it.

use conclave_common::job::JobSpec;
use conclave_inference::sampler::Stage;
use conclave_pages::document::{self, Block};
use conclave_pages::page::{Tone, notice};
use conclave_pages::short_id::{SHORT, first};
use conclave_pages::{aggregation, released, run, verdict};
use maud::{Markup, html};
use serde_json::Value;

use super::super::chains::PARAMETERS;
use super::super::shared::warnings;

const MOST: usize = 10 * PARAMETERS;
/// Label of the parameters' scale.
const SCALE: &str = "scale of the priors";

/// Renders the summary of an ended job from the result object that the analyst receives.
pub(super) fn shown(id: &str, object: Option<&Value>, spec: Option<&JobSpec>) -> Markup {
    let Some(object) = object else { return Markup::default() };
    if verdict::Verdict::of(object).is_usable() {
        return html! { h2 { "Result" } (answer(id, object, spec)) };
    }
    if released::is_adequate(object) {
        return html! {
            h2 { "Result" }
            p { "No figure is shown, since none can be relied on: see the reasons above." }
            details.fold { summary { "Look anyway" }
                (notice(Tone::Warning, "Not usable: no figure of this run can be reported", &html! {}, false))
                (answer(id, object, spec))
            }
        };
    }
    html! {
        h2 { "Why there is no answer" }
        (released::failed_checks(object))
        @if let Some(words) = aggregation::summary(object) { h3 { "Who is protected from whom" } p { (words) } }
        p.note { "The figures, none of which can be relied on, are in the JSON object of " code title=(id) { "conclave summary " (first(id, SHORT)) " --json" } " under “inadequate”." }
    }
}

fn answer(id: &str, object: &Value, spec: Option<&JobSpec>) -> Markup {
    let logarithms = spec.map(Stage::sds_of_logarithms).unwrap_or_default();
    let mut blocks: Vec<Block> = run::surrogate(object).map(Block::Text).into_iter().collect();
    blocks.extend(run::surrogate_table(object, None, MOST).map(Block::Table));
    html! {
        (warnings(&verdict::other_warnings(object)))
        // The table fits a page of this width; chains are judged by all their figures below.
        (run::posterior(object, "Posterior, on the scale that priors are declared on", None, MOST).without("ESS tail").html())
        (released::noise_plot(object, SCALE, MOST))
        (released::stage_plots(object, &logarithms, SCALE, MOST))
        (document::html(&blocks))
        (released::surrogate_noise_plot(object, SCALE, MOST))
        (document::html(&run::chains(object)))
        @if let Some(words) = aggregation::summary(object) { h3 { "Who is protected from whom" } p { (words) } }
        p.note { "Full result: " code title=(id) { "conclave summary " (first(id, SHORT)) " --all" } "." (released::noise_note(object)) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    /// The page of a linear regression with unknown scatter, whose stages report the sd of log sigma.
    fn page(adequacy: Value, grade: &str) -> String {
        let spec = JobSpec::parse(
            "name = \"l\"\nparties = [\"a\"]\n[model]\nkind = \"linear\"\noutcome = \"y\"\npredictors = []\nintercept = true\n[columns]\n\
             y = { min = -1, max = 1 }\n[privacy]\nepsilon = 1\ndelta = 1e-6\n",
        )
        .unwrap();
        let row = |name: &str, mean: f64| json!({"name": name, "mean": mean, "sd": 0.1, "q5": mean - 0.16, "q95": mean + 0.16, "noise_share": 0.19, "sd_data": 0.09});
        let stage =
            |share: f64, last: bool| json!({"theta": [], "share": share, "mean": [0.2, 0.5], "sd": [0.1, 0.1], "last": last});
        let mut object =
            json!({"posterior": [row("intercept", 0.2), row("sigma", 0.5)], "warnings": ["<b>"], "verdict": {"grade": grade}});
        if !adequacy.is_null() {
            object["adequacy"] = adequacy;
            object["conditional_on"] = json!("noisy_release");
            object["releases"] = json!([stage(0.25, false), stage(0.75, true)]);
        }
        shown("4f-1", Some(&object), Some(&spec)).into_string()
    }

    #[test]
    fn a_release_shows_how_much_of_it_is_noise_and_what_each_stage_taught() {
        let page = page(json!({"adequate": true, "reasons": []}), "fit_to_publish");
        // The sd of sigma is 0.5 sinh 0.1.
        for part in
            ["noise 19%", "without noise", "Estimates after each stage", "25%, 75%", "0.20 ± 0.10", "0.500 ± 0.050", "&lt;b&gt;"]
        {
            assert!(page.contains(part), "{part} in {page}");
        }
        for inline in ["style=\"", "<script", " onload"] {
            assert!(!page.contains(inline), "{inline}");
        }
    }

    /// The figures of an answer that is not usable are folded.
    #[test]
    fn an_answer_that_is_not_usable_is_behind_a_fold() {
        let page = page(Value::Null, "not_usable");
        let (open, folded) = page.split_once("Look anyway").unwrap();
        assert!(
            !open.contains("95%") && folded.contains("95%") && folded.contains("no figure of this run can be reported"),
            "{page}"
        );
    }

    #[test]
    fn without_an_adequate_answer_reasons_stand_in_its_place() {
        let without =
            page(json!({"adequate": false, "reasons": ["too <i>noisy"], "rho_h": {"value": 2.0, "limit": 1.0}}), "not_usable");
        assert!(without.contains("Why there is no answer") && without.contains("noise of the released information"), "{without}");
        assert!(!without.contains("<svg") && !without.contains("95%"), "{without}");
        // A chain of proposals shows neither.
        let chain = page(Value::Null, "preliminary");
        assert!(chain.contains("95%") && !chain.contains("noise") && !chain.contains("<svg"), "{chain}");
        assert!(shown("4f-1", None, None).into_string().is_empty());
    }
}
