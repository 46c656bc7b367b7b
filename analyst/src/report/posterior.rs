//! The posterior in numbers, and its reliability.

use conclave_common::job::SamplerSpec;
use conclave_common::job::Wanted;
use conclave_inference::sampler::Stage;
use conclave_pages::page::{Tone, notice};
use conclave_pages::plot::{Interval, intervals};
use conclave_pages::released;
use conclave_pages::table::{Cell, table};
use conclave_pages::text::{number, percent, plain};
use maud::{Markup, html};
use serde_json::Value;

use super::figures::{cell, decimals, inline, rows, text, thousandths, whole};
use super::material::Material;

/// Scale on which the posterior is plotted.
const SCALE: &str = "scale of the priors";

pub(super) fn section(material: &Material<'_>) -> Markup {
    if !released::is_adequate(material.result) {
        return released::inadequacy_notice(material.result);
    }
    let posterior = rows(material.result, "posterior");
    let drawn: Vec<Interval> = posterior
        .iter()
        .map(|row| {
            let quantiles = ["q5", "median", "q95"].map(|key| row[key].as_f64().unwrap_or(f64::NAN));
            Interval { name: text(row, "name").to_owned(), quantiles }
        })
        .collect();
    html! {
        (intervals("intervals", SCALE, &drawn))
        (summaries(material, "On the scale of the priors: numeric columns coded to [−1, 1] by their public bounds, binary ones 0 or 1", posterior, true))
        (released::noise_plot(material.result, SCALE, usize::MAX))
        (summaries(material, "In the units of the data", rows(material.result, "posterior_original"), false))
        (ratios(material.result))
        (released::stage_plots(material.result, &Stage::sds_of_logarithms(material.spec), SCALE, usize::MAX))
        (surrogate(material))
        p.note { "“±” is the Monte Carlo standard error of the mean. Each row is rounded to the second digit of it: further digits are noise. Programs "
            "find every digit in the page’s data elements and in the object at its end. 5% and 95% bound the central 90% interval."
            (released::noise_note(material.result)) }
    }
}

/// Renders the figures of each parameter; with `noise`, adds the columns of the noise's share.
fn summaries(material: &Material<'_>, caption: &str, posterior: &[Value], noise: bool) -> Markup {
    let rows: Vec<Vec<Cell>> = posterior
        .iter()
        .map(|row| {
            let digits = decimals_of(row);
            let figures = ["mean", "mcse_mean", "sd", "q5", "median", "q95"].map(|key| cell(&row[key], |x| fixed(x, digits)));
            let of_noise = if noise { released::noise_cells(material.result, row) } else { Vec::new() };
            std::iter::once(Cell::Name(text(row, "name").to_owned())).chain(figures).chain(of_noise).collect()
        })
        .collect();
    let of_noise = if noise { released::noise_header(material.result) } else { &[] };
    table(caption, &[&["parameter", "mean", "±", "sd", "5%", "median", "95%"], of_noise].concat(), &rows)
}

/// Renders odds or rate ratios of one unit of each predictor; empty for a model without them.
fn ratios(result: &Value) -> Markup {
    let ratios = rows(result, "ratios");
    let Some(first) = ratios.first() else { return Markup::default() };
    let caption =
        format!("The {} of one unit of each predictor, in the units of the data", text(first, "kind").replace('_', " "));
    let row = |ratio: &Value| {
        let figures = ["median", "q5", "q95"].map(|key| cell(&ratio[key], number));
        std::iter::once(Cell::Name(text(ratio, "name").to_owned())).chain(figures).collect()
    };
    table(&caption, &["predictor", "median", "5%", "95%"], &ratios.iter().map(row).collect::<Vec<_>>())
}

/// Renders the posterior by a quadratic fitted to all released log ratios, beside that of the chains.
fn surrogate(material: &Material<'_>) -> Markup {
    let surrogate = &material.result["surrogate"];
    if surrogate.is_null() {
        return Markup::default();
    }
    if let Some(reason) = surrogate["suppressed"].as_str() {
        return html! { p { "No quadratic fitted to the releases is shown: " (plain(reason, 1000)) "." } };
    }
    let figures =
        |scale: &'static str, name: &str| ["mean", "sd", "noise_sd"].map(|key| cell(&surrogate[scale][name][key], decimals));
    let body: Vec<Vec<Cell>> = rows(material.result, "posterior")
        .iter()
        .map(|row| {
            let name = text(row, "name");
            let both = figures("parameters", name).into_iter().chain(figures("parameters_original", name));
            std::iter::once(Cell::Name(name.to_owned())).chain(both).collect()
        })
        .collect();
    let header =
        ["parameter", "mean", "sd", "noise part of sd", "mean, data units", "sd, data units", "noise part of sd, data units"];
    html! {
        (released::surrogate_noise_plot(material.result, SCALE, usize::MAX))
        (table("The same posterior by a quadratic fitted to all releases (“surrogate”)", &header, &body))
        p.note { "A normal approximation of the posterior from the same releases as the draws, " (inline(&surrogate["answers"], whole))
            " of them: the two check each other and must not be averaged. Its sd includes the noise. Cubic terms, which would indicate "
            "a non-normal posterior: chi-square " (inline(&surrogate["chi2"], number)) " on "
            (inline(&surrogate["degrees_of_freedom"], whole)) " degrees of freedom, p = " (inline(&surrogate["p_value"], number)) "." }
    }
}

/// Returns the decimals that show two digits of the mean's Monte Carlo error, 2 to 9; 4 without such an error.
fn decimals_of(row: &Value) -> usize {
    let error = row["mcse_mean"].as_f64().filter(|error| *error > 0.0 && error.is_finite());
    // Bounded, so the conversion is exact.
    error.map_or(4, |error| (1.0 - error.log10().floor()).clamp(2.0, 9.0) as usize)
}

/// Formats a number to a given number of decimals, or in powers of ten if it is too long for a table.
fn fixed(x: f64, decimals: usize) -> String {
    if x.abs() < 1e7 { format!("{x:.decimals$}") } else { number(x) }
}

/// Renders the verdict on the run, placed before everything else.
pub(super) fn verdict(material: &Material<'_>) -> Markup {
    let warnings: Vec<&str> = rows(material.result, "warnings").iter().filter_map(Value::as_str).collect();
    let sentence = plain(text(material.result, "budget_error"), 1000);
    if warnings.is_empty() {
        let body = html! { p { "R-hat, effective sample sizes and Monte Carlo errors of every parameter are within their limits." } p { (sentence) } };
        return notice(Tone::Good, "No problems were found in these draws", &body, false);
    }
    let body = html! {
        ul { @for warning in &warnings { li { (plain(warning, 2000)) } } }
        p { (sentence) }
    };
    let heading = match warnings.len() {
        _ if !released::is_adequate(material.result) => "Not an adequate answer".to_owned(),
        1 => "One warning".to_owned(),
        several => format!("{several} warnings"),
    };
    notice(Tone::Warning, &heading, &body, false)
}

pub(super) fn diagnostics(material: &Material<'_>) -> Markup {
    let chains = material.result["chains"].as_u64().map_or(material.spec.sampler.chains, |chains| chains as u32);
    let wanted = SamplerSpec { chains, ..material.spec.sampler.clone() }.wanted();
    let origin = if material.spec.sampler.until.is_some() { " (set by the job)" } else { " (100 per chain, 400 in total)" };
    let body: Vec<Vec<Cell>> = rows(material.result, "posterior")
        .iter()
        .map(|row| {
            let share = ratio(row);
            let words = remarks(row, chains, wanted);
            let remark = if words.is_empty() {
                html! { span.ok { "✓ good" } }
            } else {
                html! { span.bad { "! " (words.join("; ")) } }
            };
            vec![
                Cell::Name(text(row, "name").to_owned()),
                Cell::markup(remark),
                cell(&row["rhat"], thousandths),
                cell(&row["ess_bulk"], whole),
                cell(&row["ess_tail"], whole),
                Cell::Number(share.map_or_else(|| "-".to_owned(), |x| format!("{:.1}%", 100.0 * x))),
            ]
        })
        .collect();
    html! {
        (table("Convergence and precision", &["parameter", "verdict", "R-hat", "ESS bulk", "ESS tail", "MCSE / sd"], &body))
        p.note {
            "Limits: R-hat at most " (wanted.rhat) ", bulk and tail effective sample size at least " (whole(wanted.ess)) (origin)
            ", Monte Carlo error of the mean at most " (percent(wanted.error_share())) " of the posterior sd. Rank-normalised split R-hat, effective sample "
            "sizes and Monte Carlo errors are those of Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021). The largest share of "
            "a Monte Carlo error in a posterior sd is " (inline(&material.result["mcse_to_sd"], number)) "."
        }
        @if chains == 1 { p { "One chain can’t be compared with others: R-hat carries no information here." } }
        p { "These figures can’t detect everything: chains that have all missed the same mode agree with each other." }
    }
}

/// Returns the Monte Carlo error of a parameter's mean as a share of its sd.
fn ratio(row: &Value) -> Option<f64> {
    let share = row["mcse_mean"].as_f64()? / row["sd"].as_f64()?;
    share.is_finite().then_some(share)
}

/// Lists the problems of a parameter's draws, by the limits of the run's own warnings.
fn remarks(row: &Value, chains: u32, wanted: Wanted) -> Vec<&'static str> {
    let figure = |key: &str| row[key].as_f64();
    let low = |key: &str| figure(key).is_some_and(|ess| ess < wanted.ess);
    let mut remarks = Vec::new();
    match figure("rhat") {
        Some(rhat) if rhat > wanted.rhat => remarks.push("the chains disagree"),
        None if chains > 1 => remarks.push("not computable: too few draws, or a chain never moved"),
        _ => {}
    }
    if low("ess_bulk") {
        remarks.push("few independent draws for mean and median");
    }
    if low("ess_tail") {
        remarks.push("few independent draws for the 5% and 95% quantiles");
    }
    if ratio(row).is_some_and(|share| share > wanted.error_share()) {
        remarks.push("the mean is uncertain");
    }
    remarks
}
