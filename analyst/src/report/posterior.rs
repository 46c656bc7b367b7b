//! The posterior in numbers, and its reliability.

use conclave_common::job::SamplerSpec;
use conclave_common::job::Wanted;
use conclave_inference::sampler::Stage;
use conclave_pages::ends::{Ends, percentage};
use conclave_pages::object::{rows, text};
use conclave_pages::page::{Tone, notice};
use conclave_pages::precision::{of_row, rough};
use conclave_pages::table::{Cell, Column, Table, inline};
use conclave_pages::text::{effective, number, percent, plain, thousandths, whole};
use conclave_pages::verdict::{Verdict, other_warnings};
use conclave_pages::{released, run};
use maud::{Markup, html};
use serde_json::Value;

use super::fold::{MANY, folded, folded_if_many, folded_unless_usable};
use super::material::Material;

/// Number of parameters whose figures are shown before the others, which are folded.
const WORST: usize = 8;
/// Scale on which the posterior is plotted.
const SCALE: &str = "scale of the priors";

pub(super) fn section(material: &Material<'_>) -> Markup {
    if !released::is_adequate(material.result) {
        return html! { p { "Not shown: see the reasons under “Result”." } };
    }
    let posterior = rows(material.result, "posterior");
    let ends = Ends::of(posterior);
    let [low, high] = &ends.headings;
    let count = posterior.len();
    let coded = "On the scale of the priors: numeric columns coded to [−1, 1] by their public bounds, binary ones 0 or 1";
    let of_prior =
        html! { (summaries(material, coded, posterior, true)) (released::noise_plot(material.result, SCALE, usize::MAX)) };
    let stages = released::stage_plots(material.result, &Stage::sds_of_logarithms(material.spec), SCALE, usize::MAX);
    let surrogate = surrogate(material);
    let body = html! {
        (summaries(material, "In the units of the data", rows(material.result, "posterior_original"), false))
        (folded_if_many(count, "On the scale of the priors", of_prior))
        @if let Some(ratios) = run::ratios(material.result) { (folded("Ratios of one unit of each predictor", &ratios.html())) }
        @if !stages.0.is_empty() { (folded("Estimates after each stage", &stages)) }
        @if !surrogate.0.is_empty() { (folded("The posterior by a quadratic fitted to the releases (“surrogate”)", &surrogate)) }
        p.note { "“±” is the Monte Carlo standard error of the mean. Each row is rounded to the second digit of it: further digits are noise. Programs "
            "find every digit in the page’s data elements and in the object at its end. " (low) " and " (high) " bound the central " (percentage(ends.level)) " interval."
            (released::noise_note(material.result)) }
    };
    folded_unless_usable(material.result, body)
}

/// Renders the figures of each parameter; with `noise`, adds the columns of the noise's share.
fn summaries(material: &Material<'_>, caption: &str, posterior: &[Value], noise: bool) -> Markup {
    let figure = |row: &Value, key: &str| Cell::figure(&row[key], |x| fixed(x, decimals_of(row)));
    let ends = Ends::of(posterior);
    let [low, high] = &ends.headings;
    let end = |row: &Value, end: &Value| Cell::figure(end, |x| fixed(x, decimals_of(row)));
    let columns: [Column<'_, Value>; 7] = [
        ("parameter", &|row| Cell::name(text(row, "name"))),
        ("mean", &|row| figure(row, "mean")),
        ("±", &|row| figure(row, "mcse_mean")),
        ("sd", &|row| figure(row, "sd")),
        (low, &|row| end(row, ends.low(row))),
        ("median", &|row| figure(row, "median")),
        (high, &|row| end(row, ends.high(row))),
    ];
    let of_noise = if noise { released::noise_columns(material.result) } else { &[] };
    Table::new(caption, posterior, &columns).beside(posterior, of_noise).html()
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
    let Some(table) = run::surrogate_table(material.result, None, usize::MAX) else { return Markup::default() };
    let original = |row: &Value, key: &str| {
        let of = &surrogate["parameters_original"][text(row, "name")];
        Cell::figure(&of[key], |x| of_row(of, x))
    };
    let columns: [Column<'_, Value>; 3] = [
        ("mean, data units", &|row| original(row, "mean")),
        ("sd, data units", &|row| original(row, "sd")),
        ("noise sd, data units", &|row| original(row, "noise_sd")),
    ];
    // The chains' posterior stands above; with it this table would be wider than a page.
    let table = table.without("chains' mean").without("chains' sd");
    html! {
        (released::surrogate_noise_plot(material.result, SCALE, usize::MAX))
        (table.beside(&run::fitted(material.result, usize::MAX), &columns).html())
        p.note { "A normal approximation of the posterior from the same releases as the draws, " (inline(&surrogate["answers"], whole))
            " of them: the two check each other and must not be averaged. Its sd includes the noise. Cubic terms, which would indicate "
            "a non-normal posterior: chi-square " (inline(&surrogate["chi2"], rough)) " on "
            (inline(&surrogate["degrees_of_freedom"], whole)) " degrees of freedom, p = " (inline(&surrogate["p_value"], rough)) "." }
    }
}

/// Returns the decimals that show two digits of the mean's Monte Carlo error, 2 to 9; 4 without such an error.
fn decimals_of(row: &Value) -> usize {
    let error = row["mcse_mean"].as_f64().filter(|error| *error > 0.0 && error.is_finite());
    // Bounded, so the conversion is exact.
    error.map_or(4, |error| (1.0 - libm::log10(error).floor()).clamp(2.0, 9.0) as usize)
}

/// Formats a number to a given number of decimals, or in powers of ten if it is too long for a table.
fn fixed(x: f64, decimals: usize) -> String {
    if x.abs() < 1e7 { format!("{x:.decimals$}") } else { number(x) }
}

/// Renders the verdict on the run, placed before everything else, and the warnings that it does not state.
pub(super) fn verdict(material: &Material<'_>) -> Markup {
    let warnings = other_warnings(material.result);
    let body = html! { ul { @for warning in &warnings { li { (warning) } } } };
    let heading = if warnings.len() == 1 { "One warning".to_owned() } else { format!("{} warnings", warnings.len()) };
    html! {
        (Verdict::of(material.result).notice())
        @if !warnings.is_empty() { (notice(Tone::Warning, &heading, &body, false)) }
        p { (plain(text(material.result, "budget_error"), 1000)) }
    }
}

pub(super) fn diagnostics(material: &Material<'_>) -> Markup {
    let chains = material.result["chains"].as_u64().map_or(material.spec.sampler.chains, |chains| chains as u32);
    let wanted = SamplerSpec { chains, ..material.spec.sampler.clone() }.wanted();
    let origin = if material.spec.sampler.until.is_some() { " (set by the job)" } else { " (100 per chain, 400 in total)" };
    let verdict = |row: &Value| match remarks(row, chains, wanted) {
        words if words.is_empty() && !released::is_adequate(material.result) => {
            Cell::markup(html! { span.bad { "! no adequate answer" } })
        }
        words if words.is_empty() => Cell::markup(html! { span.ok { "✓ good" } }),
        words => Cell::markup(html! { span.bad { "! " (words.join("; ")) } }),
    };
    let mut posterior: Vec<Value> = rows(released::figures(material.result), "posterior").to_vec();
    if posterior.len() > MANY {
        posterior.sort_by(|a, b| least(a).total_cmp(&least(b)));
    }
    let first = if posterior.len() > MANY { WORST } else { posterior.len() };
    let share = |row: &Value| ratio(row).map_or_else(|| "-".to_owned(), |x| format!("{:.1}%", 100.0 * x));
    let columns: [Column<'_, Value>; 6] = [
        ("parameter", &|row| Cell::name(text(row, "name"))),
        ("verdict", &verdict),
        ("R-hat", &|row| Cell::figure(&row["rhat"], thousandths)),
        ("ESS bulk", &|row| Cell::figure(&row["ess_bulk"], effective)),
        ("ESS tail", &|row| Cell::figure(&row["ess_tail"], effective)),
        ("MCSE / sd", &|row| Cell::number(share(row))),
    ];
    html! {
        (Table::new("Convergence and precision", &posterior[..first], &columns).html())
        @if posterior.len() > first {
            @let more = Table::new("Convergence and precision of the other parameters", &posterior[first..], &columns).html();
            (folded(&format!("The figures of {} more parameters", posterior.len() - first), &more))
        }
        p.note {
            @if released::is_adequate(material.result) {
                "Limits: R-hat at most " (wanted.rhat) ", bulk and tail effective sample size at least " (whole(wanted.ess)) (origin)
                ", Monte Carlo error of the mean at most " (percent(wanted.error_share())) " of the posterior sd. The largest share of a Monte Carlo "
                "error in a posterior sd is " (inline(&material.result["mcse_to_sd"], rough)) "."
            } @else { "The checks under “Result” decide, and at least one of them failed: these figures are of the draws alone." }
            " Rank-normalised split R-hat, effective sample sizes and Monte Carlo errors are those of Vehtari, Gelman, Simpson, Carpenter & Bürkner "
            "(2021)."
        }
        @if chains == 1 { p { "One chain can’t be compared with others: R-hat carries no information here." } }
        p { "These figures can’t detect everything: chains that have all missed the same mode agree with each other." }
    }
}

/// Returns the smaller effective sample size of a parameter; 0 for a chain that never moved.
pub(super) fn least(row: &Value) -> f64 {
    let figure = |key: &str| row[key].as_f64().unwrap_or(0.0);
    figure("ess_bulk").min(figure("ess_tail"))
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
