//! The result of an ended job, as its page shows it.

use conclave_common::job::JobSpec;
use conclave_inference::sampler::Stage;
use conclave_pages::aggregation;
use conclave_pages::barker;
use conclave_pages::gradients;
use conclave_pages::page::{Tone, notice};
use conclave_pages::released;
use conclave_pages::table::{Cell, facts, table};
use conclave_pages::text::{number, plain};
use maud::{Markup, html};
use serde_json::Value;

use super::super::chains::PARAMETERS;
use super::super::shared::SENTENCE;

/// Maximum number of parameters shown.
const MOST: usize = 10 * PARAMETERS;
/// Label of the parameters' scale.
const SCALE: &str = "scale of the priors";

/// Renders the summary of an ended job from the result object that the analyst receives.
pub(super) fn shown(id: &str, object: Option<&str>, spec: Option<&JobSpec>) -> Markup {
    let Some(parsed) = object.and_then(|text| serde_json::from_str::<Value>(text).ok()) else {
        return Markup::default();
    };
    html! {
        h2 { "Result" }
        @for warning in parsed["warnings"].as_array().into_iter().flatten().filter_map(|w| w.as_str()) {
            (notice(Tone::Warning, "Warning", &html! { p { (plain(warning, SENTENCE)) } }, false))
        }
        @if released::is_adequate(&parsed) {
            (posterior(&parsed))
            (released::noise_plot(&parsed, SCALE, MOST))
            (released::stage_plots(&parsed, &spec.map(Stage::sds_of_logarithms).unwrap_or_default(), SCALE, MOST))
        } @else { (released::inadequacy_notice(&parsed)) }
        (surrogate(&parsed))
        (gradient_facts(&parsed))
        @if let Some(words) = barker::summary(&parsed) { h3 { "How steps were decided" } p { (words) } }
        @if let Some(words) = aggregation::summary(&parsed) { h3 { "Who is protected from whom" } p { (words) } }
        p.note { "Full result: " code { "conclave summary " (id) } ", or " code { "conclave report " (id) " -o report.html" } "." (released::noise_note(&parsed)) }
    }
}

/// Table of each parameter's figures.
fn posterior(result: &Value) -> Markup {
    let columns = ["mean", "sd", "q5", "median", "q95", "ess_bulk", "rhat"];
    let cell = |value: &Value| Cell::Number(value.as_f64().map_or_else(|| "-".to_owned(), number));
    let row = |row: &Value| {
        let name = Cell::Name(row["name"].as_str().unwrap_or_default().to_owned());
        let figures = columns.iter().map(|column| cell(&row[*column]));
        std::iter::once(name).chain(figures).chain(released::noise_cells(result, row)).collect::<Vec<_>>()
    };
    let rows: Vec<Vec<Cell>> = result["posterior"].as_array().into_iter().flatten().take(MOST).map(row).collect();
    let header = ["parameter", "mean", "sd", "5%", "median", "95%", "ESS (bulk)", "R-hat"];
    table("Posterior, on the scale that priors are declared on", &[&header[..], released::noise_header(result)].concat(), &rows)
}

/// Diagnostics of gradient-driven chains.
fn gradient_facts(result: &Value) -> Markup {
    let lines = gradients::diagnostics(result);
    let rows: Vec<(&str, Markup)> = lines.iter().map(|(what, words)| (*what, html! { (words) })).collect();
    html! { @if !rows.is_empty() { h3 { "How gradients drove the chains" } (facts(&rows)) } }
}

/// The posterior from a quadratic fitted to all released log ratios, or the reason why it is suppressed.
fn surrogate(result: &Value) -> Markup {
    let surrogate = &result["surrogate"];
    if surrogate.is_null() {
        return Markup::default();
    }
    if let Some(reason) = surrogate["suppressed"].as_str() {
        return html! { p.note { "The quadratic fitted to the releases is not shown: " (plain(reason, SENTENCE)) "." } };
    }
    let cell = |value: &Value| Cell::Number(value.as_f64().map_or_else(|| "-".to_owned(), number));
    let row = |row: &Value| {
        let parameter = row["name"].as_str().unwrap_or_default();
        let figures = ["mean", "sd", "noise_sd"].map(|key| cell(&surrogate["parameters"][parameter][key]));
        std::iter::once(Cell::Name(parameter.to_owned())).chain(figures).collect::<Vec<_>>()
    };
    let rows: Vec<Vec<Cell>> = result["posterior"].as_array().into_iter().flatten().take(MOST).map(row).collect();
    html! {
        (table("Posterior from a quadratic fitted to all releases", &["parameter", "mean", "sd", "noise sd"], &rows))
        (released::surrogate_noise_plot(result, SCALE, MOST))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    /// The page of a linear regression with unknown scatter, whose stages report the sd of log sigma.
    fn page(adequacy: Value) -> String {
        let spec = JobSpec::parse(
            "name = \"l\"\nparties = [\"a\"]\n[model]\nkind = \"linear\"\noutcome = \"y\"\npredictors = []\nintercept = true\n[columns]\n\
             y = { min = -1, max = 1 }\n[privacy]\nepsilon = 1\ndelta = 1e-6\n",
        )
        .unwrap();
        let row = |name: &str, mean: f64| json!({"name": name, "mean": mean, "sd": 0.1, "q5": mean - 0.16, "q95": mean + 0.16, "noise_share": 0.19, "sd_data": 0.09});
        let stage =
            |share: f64, last: bool| json!({"theta": [], "share": share, "mean": [0.2, 0.5], "sd": [0.1, 0.1], "last": last});
        let mut object = json!({"posterior": [row("intercept", 0.2), row("sigma", 0.5)], "warnings": ["<b>"]});
        if !adequacy.is_null() {
            object["adequacy"] = adequacy;
            object["releases"] = json!([stage(0.25, false), stage(0.75, true)]);
        }
        shown("4f-1", Some(&object.to_string()), Some(&spec)).into_string()
    }

    #[test]
    fn a_release_shows_how_much_of_it_is_noise_and_what_each_stage_taught() {
        let page = page(json!({"adequate": true, "reasons": []}));
        let of_sigma = format!("0.5000 ± {}", number(0.5 * 0.1_f64.sinh()));
        for part in
            ["noise 19%", "without noise", "Estimates after each stage", "25%, 75%", "0.2000 ± 0.1000", &of_sigma, "&lt;b&gt;"]
        {
            assert!(page.contains(part), "{part} in {page}");
        }
        for inline in ["style=\"", "<script", " onload"] {
            assert!(!page.contains(inline), "{inline}");
        }
    }

    #[test]
    fn without_an_adequate_answer_reasons_stand_in_its_place() {
        let without = page(json!({"adequate": false, "reasons": ["too <i>noisy"]}));
        assert!(without.contains("Not an adequate answer") && without.contains("too &lt;i&gt;noisy"), "{without}");
        assert!(!without.contains("<svg") && !without.contains("95%"), "{without}");
        // A chain of proposals shows neither.
        let chain = page(Value::Null);
        assert!(chain.contains("95%") && !chain.contains("noise") && !chain.contains("<svg"), "{chain}");
        assert!(shown("4f-1", None, None).into_string().is_empty());
    }
}
