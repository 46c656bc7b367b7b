//! How the run went: counts, acceptance, what ended it, what the clip did.

use conclave_common::job::{Algorithm, ClipRule, HmcTest, JobSpec, Radius, Warmup};
use conclave_pages::table::facts;
use conclave_pages::text::{duration, name, percent, plain as line, thousands};
use conclave_pages::{barker, gradients};
use maud::{Markup, html};
use serde_json::Value;

use super::figures::{inline, plain, rows, text, thousandths, whole};
use super::material::Material;

/// The figures that are looked for first.
pub(super) fn tiles(material: &Material<'_>) -> Markup {
    let result = material.result;
    let figures =
        |key: &str| rows(result, "posterior").iter().map(|row| row[key].clone()).filter(Value::is_number).collect::<Vec<_>>();
    let by = |a: &Value, b: &Value| a.as_f64().unwrap_or(f64::NAN).total_cmp(&b.as_f64().unwrap_or(f64::NAN));
    let worst = figures("rhat").into_iter().max_by(by).unwrap_or(Value::Null);
    let least = figures("ess_bulk").into_iter().chain(figures("ess_tail")).min_by(by).unwrap_or(Value::Null);
    let greatest = rows(result, "parties").iter().map(|party| party["epsilon_spent"].clone()).max_by(by).unwrap_or(Value::Null);
    let tile = |name: &str, value: &Markup| html! { div { dt { (name) } dd { (value) } } };
    let draws = html! { (inline(&result["chains"], whole)) " × " (inline(&result["draws_per_chain"], whole)) };
    html! {
        dl.tiles {
            (tile("chains × draws", &draws))
            (tile("ended by", &html! { (ended(text(result, "stopped_by"))) }))
            (tile("largest R-hat", &inline(&worst, thousandths)))
            (tile("smallest ESS", &inline(&least, whole)))
            (tile("accepted", &inline(&result["acceptance_rate"], percent)))
            (tile("epsilon spent, at most", &html! { (inline(&greatest, |x| format!("{x:.3}"))) " of " (plain(material.spec.privacy.budget.epsilon)) }))
        }
    }
}

/// What ended a run, in few words.
fn ended(stopped_by: &str) -> String {
    match stopped_by {
        "draws" => "its last draw".to_owned(),
        "budget" => "the budget".to_owned(),
        "cancelled" => "its analyst".to_owned(),
        "policy" => "a data owner".to_owned(),
        "clip" => "the clip watch".to_owned(),
        "failure" => "a failure".to_owned(),
        "released" => "the whole budget, released once".to_owned(),
        "until" => "having enough draws".to_owned(),
        "hopeless" => "a forecast of no use".to_owned(),
        other => line(other, 40),
    }
}

pub(super) fn section(material: &Material<'_>) -> Markup {
    let (result, spec) = (material.result, material.spec);
    let party = result["budget_party"].as_str();
    let ending = html! {
        @match text(result, "stopped_by") {
            "draws" => "All draws that were asked for are made.",
            "until" => "The draws have come to what the job wants of them. What is left of the budget was not spent.",
            "hopeless" => "With the whole budget its draws would have been of no use, by a forecast. What is left of the budget was not spent.",
            "budget" => {
                "A budget ended it before the last draw asked for" @if let Some(party) = party { ": that of " (name(party)) }
                ". The draws are of the same posterior; there are fewer of them."
            }
            "cancelled" => "The analyst ended it. The draws made until then are kept.",
            "policy" => "A data owner ended it, by withdrawing the consent or by a limit. The draws made until then are kept.",
            "failure" => "Something went wrong. The draws made until then are kept.",
            "clip" => "It was stopped because the clip cuts too much: the draws are of another posterior than the one asked for.",
            other => (line(other, 200)),
        }
        @if !material.status.error.is_empty() { " " (line(&material.status.error, 1000)) }
    };
    let warmup = match spec.sampler.warmup {
        _ if spec.is_polished() => format!(
            "{} steps without a test, not among the draws",
            result["stochastic_gradients"]["polish"]["steps"].as_u64().map_or_else(|| "some".to_owned(), thousands)
        ),
        _ if spec.algorithm.follows_gradients() => {
            let told = if spec.algorithm.is_unadjusted() { "stochastic_gradients" } else { "gradients" };
            format!("{} steps, not among the draws", result[told]["warmup"].as_u64().map_or_else(|| "some".to_owned(), thousands))
        }
        Warmup::Sweeps(sweeps) => format!("{} sweeps, not among the draws", thousands(sweeps)),
        Warmup::UntilRhat { rhat, max } => {
            format!("until split R-hat was below {rhat}, at most {} sweeps; not among the draws", thousands(max))
        }
    };
    let told = gradients::diagnostics(result);
    let driven: Vec<(&str, Markup)> = told.iter().map(|(what, words)| (*what, html! { (words) })).collect();
    html! {
        (facts(&[
            ("ended", ending),
            ("rounds", html! { (inline(&result["iterations"], whole)) ", a message to every party each, all chains together" }),
            ("draws", html! {
                (inline(&result["draws_per_chain"], whole)) " kept in each of " (inline(&result["chains"], whole)) " chains, of "
                (thousands(spec.draws_asked())) " asked for"
            }),
            ("accepted", html! { (inline(&result["acceptance_rate"], |x| format!("{:.1}%", 100.0 * x))) " of the proposals of the kept draws" }),
            ("time", html! { (inline(&result["seconds"], duration)) " of sampling" }),
            ("algorithm", html! { (algorithm(spec)) }),
            ("warm-up", html! { (warmup) }),
            ("clip", clip(material)),
        ]))
        @if let Some(words) = barker::summary(result) { h3 { "How steps were decided" } p { (words) } }
        @if !driven.is_empty() { h3 { "How gradients drove the chains" } (facts(&driven)) }
    }
}

fn algorithm(spec: &JobSpec) -> String {
    if spec.algorithm == Algorithm::Hmc {
        return match spec.sampler.hmc.test {
            HmcTest::Remainder => "hmc, whose chains released gradients drive".to_owned(),
            HmcTest::Ratio { kicks } => format!(
                "hmc without friction, in trajectories of {kicks} kicks by released gradients (Räisä, Koskela & Honkela, 2021)"
            ),
            HmcTest::None => "hmc without a test, whose chains released gradients drive: its draws are approximate".to_owned(),
        };
    }
    if spec.is_polished() {
        let (name, sweeps) = (spec.algorithm.as_str(), thousands(spec.sampler.stochastic.polish));
        return format!(
            "{name}, whose chains released gradients drive, without a test; then {sweeps} penalty sweeps, which the draws are of"
        );
    }
    if spec.algorithm.is_unadjusted() {
        return format!("{}, whose chains released gradients drive, without a test", spec.algorithm.as_str());
    }
    let moves = match spec.sampler.radius {
        Radius::Auto => "step lengths found in the search and the warm-up",
        Radius::Fixed(_) => "step lengths given by the analyst",
    };
    format!(
        "{}, {} proposals, {moves}{}",
        spec.algorithm.as_str(),
        spec.sampler.proposal.as_str().replace('_', " "),
        if spec.sampler.rotate { ", turned into the posterior’s principal axes" } else { "" }
    )
}

/// What cut the records' contributions, and what the watch on it has said.
fn clip(material: &Material<'_>) -> Markup {
    let set = match material.spec.privacy.clip {
        None => "the model’s public bound, which cuts nothing within the declared bounds".to_owned(),
        Some(ClipRule::PerRecord(clip)) => format!("{} log-likelihood units per record, set by the analyst", plain(clip)),
        Some(ClipRule::Slope(slope)) => {
            format!("{} log-likelihood units per record for each unit of a step’s length, set by the analyst", plain(slope))
        }
    };
    let warnings = rows(material.result, "warnings").iter().filter_map(Value::as_str);
    let said: Vec<String> =
        warnings.filter(|warning| warning.contains("privacy.clip")).map(|warning| line(warning, 2000)).collect();
    html! {
        (set)
        @if said.is_empty() {
            @if material.spec.privacy.clip.is_some() { ". The watch on it has found nothing to warn of." }
        } @else { ". " strong { "The watch on it says: " } @for sentence in &said { (sentence) " " } }
    }
}
