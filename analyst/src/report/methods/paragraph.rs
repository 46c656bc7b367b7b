//! The methods paragraph.

use std::collections::BTreeMap;

use conclave_common::job::JobSpec;
use conclave_common::schema::ColumnSpec;
use conclave_pages::object::{rows, text};
use conclave_pages::released;
use conclave_pages::text::{as_written, effective, plain, share, thousands};
use conclave_pages::verdict::{Grade, Verdict};
use serde_json::Value;

use super::algorithm;
use crate::report::fold::MANY;
use crate::report::guarantee::unit_words;
use crate::report::material::Material;
use crate::report::records::total;
use crate::report::repeat::digest;
use crate::report::run_section;

/// Maximum number of names in a list; a longer one is cut to a number.
const NAMES: usize = 6;

/// Writes the paragraph on a usable answer: model, priors, records, algorithm, privacy, diagnostics, software.
pub(super) fn paragraph(material: &Material<'_>) -> String {
    let Material { spec, result, source, status, .. } = *material;
    let parties = spec.parties.len();
    let owners = if parties == 1 { "one data owner".to_owned() } else { format!("{parties} data owners") };
    let records = total(rows(result, "parties"))
        .map_or_else(|| "the records".to_owned(), |n| if n.ends_with("persons") { n } else { format!("{n} records") });
    let mut sentences = vec![
        format!("We fitted a Bayesian model ({}) to {records} at {owners}; no record left its owner.", model(spec)),
        priors(material),
        coding(material),
        algorithm::sentence(spec, result),
        noise(material),
        warmup(material),
        releases(material),
    ];
    sentences.push(diagnostics(result));
    let verdict = Verdict::of(result);
    if verdict.grade != Grade::FitToPublish {
        sentences.push(format!("By these diagnostics the answer is {}: {}.", verdict.grade.words(), verdict.reasons.join("; ")));
    }
    let version = env!("CARGO_PKG_VERSION");
    sentences.push(format!(
        "Software: Conclave {version}; job {}; SHA-256 of the job file {}.",
        plain(&status.job, 100),
        digest(source)
    ));
    sentences.retain(|sentence| !sentence.is_empty());
    sentences.join(" ")
}

/// Describes the model; many predictors by their number.
fn model(spec: &JobSpec) -> String {
    let words = plain(&spec.model.describe(), usize::MAX);
    let terms = spec.model.design().map(|design| design.terms.as_slice()).unwrap_or_default();
    let names = plain(&terms.join(", "), usize::MAX);
    if terms.len() > MANY { words.replacen(&names, &format!("{} predictors", terms.len()), 1) } else { words }
}

/// Names the priors, parameters of the same prior together.
fn priors(material: &Material<'_>) -> String {
    let spec = material.spec;
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, prior) in spec.model.parameter_names().into_iter().zip(&spec.priors) {
        groups.entry(prior.to_string()).or_default().push(plain(&name, usize::MAX));
    }
    let scale = "on the scale of the coded columns";
    let words = match groups.len() {
        0 => return String::new(),
        1 => format!("The prior of every parameter was {}, {scale}.", groups.into_keys().next().unwrap_or_default()),
        _ => {
            let named = groups.into_iter().map(|(prior, names)| match names.len() {
                few if few <= NAMES => format!("{prior} for {}", names.join(", ")),
                many => format!("{prior} for {many} parameters"),
            });
            format!("Priors, {scale}: {}.", named.collect::<Vec<_>>().join("; "))
        }
    };
    let names = spec.model.parameter_names();
    let sites =
        spec.varying().iter().map(|site| format!("{} (prior of its sd {})", plain(&names[site.index], usize::MAX), site.sd));
    let sites: Vec<String> = sites.collect();
    if sites.is_empty() {
        words
    } else {
        format!("{words} Each owner had its own value, from a normal law over the owners, of {}.", sites.join(", "))
    }
}

/// Describes the coding of numeric columns by their public bounds.
fn coding(material: &Material<'_>) -> String {
    let spec = material.spec;
    let bounds = spec.columns.iter().filter_map(|(name, column)| match column {
        ColumnSpec::Numeric { min, max } => {
            Some(format!("{} {} to {}", plain(name, usize::MAX), as_written(*min), as_written(*max)))
        }
        _ => None,
    });
    let bounds: Vec<String> = bounds.collect();
    let named = if bounds.len() <= NAMES { format!(" ({})", bounds.join(", ")) } else { String::new() };
    if bounds.is_empty() {
        String::new()
    } else {
        format!("Numeric columns were clamped to public bounds{named} and coded to [−1, 1] between them.")
    }
}

/// Describes the noise: its standard deviation, or its share in the variance of an answer from releases.
fn noise(material: &Material<'_>) -> String {
    let Material { spec, result, .. } = *material;
    let sd = as_written((1e4 * spec.privacy.noise.sd()).round() / 1e4);
    let words = spec.noise_paragraph(&sd);
    let first = |sentences: usize| words.split_inclusive(". ").take(sentences).collect::<String>().trim_end().to_owned();
    if !released::is_from_releases(result) {
        return first(1);
    }
    let posterior = rows(result, "posterior");
    let which =
        if posterior.iter().any(|row| row.get("noise_share").is_some_and(Value::is_null)) { " whose share is known" } else { "" };
    let most = posterior.iter().filter_map(|row| row["noise_share"].as_f64()).reduce(f64::max).map(|most| match most < 0.01 {
        true => format!(" It accounts for less than 1% of the variance of every parameter{which}."),
        false => format!(" It accounts for {} of the variance of a parameter{which} at most.", share(most)),
    });
    first(2) + &most.unwrap_or_default()
}

/// Describes the draws before the kept ones, where chains of proposals have any.
fn warmup(material: &Material<'_>) -> String {
    let Material { spec, result, .. } = *material;
    if !spec.algorithm.proposes() || released::is_from_releases(result) {
        return String::new();
    }
    match result["extends"].is_string() {
        true => "The chains continue those of an earlier job, without a warm-up.".to_owned(),
        false => format!("Warm-up: {}.", run_section::warmup(material)),
    }
}

/// Describes the releases and their guarantee.
fn releases(material: &Material<'_>) -> String {
    let Material { spec, result, .. } = *material;
    if let Some(job) = result["refit_of"].as_str() {
        return format!(
            "The draws reuse the releases of job {}: no owner was queried, and nothing was charged.",
            plain(job, 100)
        );
    }
    let parties = rows(result, "parties");
    let most = parties.iter().filter_map(|party| party["queries"].as_u64()).max();
    let number = most.map_or_else(
        || "its".to_owned(),
        |most| format!("{} {}", if parties.len() > 1 { "at most" } else { "" }, thousands(most)),
    );
    let budget = &spec.privacy.budget;
    let extends = result["extends"].as_str().map(|job| {
        format!(
            " The chains continue those of job {}, whose releases were charged beside these: the costs μ² of both add up.",
            plain(job, 100)
        )
    });
    let masked = if spec.aggregation.is_secure() { ", masked so that only the sum over the owners was opened" } else { "" };
    format!(
        "Each owner made {} releases{masked}, under Gaussian differential privacy of at most ε = {}, δ = {} for {}.{}",
        number.trim(),
        as_written(budget.epsilon),
        as_written(budget.promised_delta()),
        unit_words(parties),
        extends.unwrap_or_default()
    )
}

/// States the number of draws and the worst diagnostics.
fn diagnostics(result: &Value) -> String {
    let posterior = rows(result, "posterior");
    let figures = |key: &'static str| posterior.iter().filter_map(move |row| row[key].as_f64());
    let count = |key: &str| result[key].as_u64().map(thousands);
    let (Some(chains), Some(draws)) = (count("chains"), count("draws_per_chain")) else { return String::new() };
    let made = if chains == "1" { format!("One chain of {draws} draws") } else { format!("{chains} chains of {draws} draws") };
    let worst = figures("rhat").reduce(f64::max);
    let least = figures("ess_bulk").chain(figures("ess_tail")).reduce(f64::min);
    let rhat = worst.map(|rhat| format!("; split R-hat at most {rhat:.3}")).unwrap_or_default();
    let ess = least.map(|ess| format!("; effective sample sizes of at least {}", effective(ess))).unwrap_or_default();
    let ended = match text(result, "stopped_by") {
        "budget" => "; the run ended when a budget was spent",
        "cancelled" => "; the analyst ended the run early",
        "policy" => "; a data owner ended the run early",
        "futility" | "hopeless" => "; a forecast ended the run, with the rest of the budget unspent",
        "clip" => "; the run was stopped because the clip cut too many records’ ratios",
        "failure" => "; the run ended early by a failure",
        _ => "",
    };
    format!("{made}{rhat}{ess} (Vehtari et al., 2021){ended}.")
}
