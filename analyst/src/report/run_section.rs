//! The run: counts, acceptance, reason for its end, effect of the clip.

use conclave_common::epsilon;
use conclave_common::job::{Algorithm, ClipRule, HmcTest, JobSpec, Radius, Warmup};
use conclave_pages::object::{rows, sentences, text};
use conclave_pages::table::{facts, inline};
use conclave_pages::text::{
    as_written as plain, duration, effective, name, percent, plain as line, thousands, thousandths, whole,
};
use conclave_pages::{document, released, run};
use maud::{Markup, html};
use serde_json::Value;

use super::material::Material;

/// Renders the most important figures.
pub(super) fn tiles(material: &Material<'_>) -> Markup {
    let result = material.result;
    let figures = |key: &str| {
        rows(released::figures(result), "posterior")
            .iter()
            .map(|row| row[key].clone())
            .filter(Value::is_number)
            .collect::<Vec<_>>()
    };
    let by = |a: &Value, b: &Value| a.as_f64().unwrap_or(f64::NAN).total_cmp(&b.as_f64().unwrap_or(f64::NAN));
    let worst = figures("rhat").into_iter().max_by(by).unwrap_or(Value::Null);
    let least = figures("ess_bulk").into_iter().chain(figures("ess_tail")).min_by(by).unwrap_or(Value::Null);
    let greatest = rows(result, "parties").iter().map(|party| party["epsilon_spent"].clone()).max_by(by).unwrap_or(Value::Null);
    let tile = |name: &str, value: &Markup| html! { div { dt { (name) } dd { (value) } } };
    let draws = html! { (inline(&result["chains"], whole)) " × " (inline(&result["draws_per_chain"], whole)) };
    html! {
        dl.tiles {
            (tile("chains × draws", &draws))
            (tile("ended by", &html! { (ended_by(text(result, "stopped_by"))) }))
            (tile("largest R-hat", &inline(&worst, thousandths)))
            (tile("smallest ESS", &inline(&least, effective)))
            @if !released::is_from_releases(result) { (tile("accepted", &inline(&result["acceptance_rate"], percent))) }
            (tile("epsilon spent, at most", &html! { (inline(&greatest, epsilon::spent)) " of " (plain(material.spec.privacy.budget.epsilon)) }))
        }
    }
}

/// Returns the short name of the cause of a run's end.
fn ended_by(stopped_by: &str) -> String {
    match stopped_by {
        "draws" => "its last draw".to_owned(),
        "budget" => "the budget".to_owned(),
        "cancelled" => "its analyst".to_owned(),
        "policy" => "a data owner".to_owned(),
        "clip" => "the clip watch".to_owned(),
        "failure" => "a failure".to_owned(),
        "released" => "its releases, which used the whole budget".to_owned(),
        "until" => "enough draws".to_owned(),
        "futility" | "hopeless" => "futility".to_owned(),
        other => line(other, 40),
    }
}

pub(super) fn section(material: &Material<'_>) -> Markup {
    let (result, spec) = (material.result, material.spec);
    let party = result["budget_party"].as_str();
    let ending = html! {
        @match text(result, "stopped_by") {
            "draws" => "All requested draws were made.",
            "until" => "The draws reached the job’s targets. The remaining budget was not spent.",
            "futility" | "hopeless" => "A forecast showed that its draws would be unusable even with the whole budget. The remaining budget was not spent.",
            "budget" => {
                "A budget ended it before the last requested draw" @if let Some(party) = party { ": that of " (name(party)) }
                ". The draws are of the same posterior; there are fewer of them."
            }
            "cancelled" => "The analyst ended it. The draws made before are kept.",
            "policy" => "A data owner ended it, by withdrawing consent or by a limit. The draws made before are kept.",
            "failure" => "It failed. The draws made before are kept.",
            "released" => "All planned releases were made.",
            "clip" => "It was stopped because the clip truncates too much: the draws target another posterior than the requested one.",
            other => (line(other, 200)),
        }
        @if !material.status.error.is_empty() { " " (line(&material.status.error, 1000)) }
    };
    let mut lines = vec![
        ("ended", ending),
        ("rounds", html! { (inline(&result["iterations"], whole)) ", each one message to every party for all chains" }),
        (
            "draws",
            html! {
                (inline(&result["draws_per_chain"], whole)) " kept in each of " (inline(&result["chains"], whole)) " chains, of "
                (thousands(spec.draws_asked())) " requested"
            },
        ),
        (
            "accepted",
            html! { (inline(&result["acceptance_rate"], |x| format!("{:.1}%", 100.0 * x))) " of the proposals of the kept draws" },
        ),
        ("time", html! { (inline(&result["seconds"], duration)) " of sampling" }),
        ("algorithm", html! { (algorithm(spec)) }),
        ("warm-up", html! { (warmup(material)) }),
        ("clip", clip(material)),
    ];
    // Draws from a release are made without proposals to the parties.
    lines.retain(|(what, _)| !released::is_from_releases(result) || !["accepted", "warm-up"].contains(what));
    html! {
        (facts(&lines))
        (document::html(&run::chains(result)))
    }
}

/// Describes the draws or steps before the kept ones.
pub(super) fn warmup(material: &Material<'_>) -> String {
    let (result, spec) = (material.result, material.spec);
    match spec.sampler.warmup {
        _ if spec.is_polished() => format!(
            "{} steps without a test, excluded from the draws",
            result["stochastic_gradients"]["polish"]["steps"].as_u64().map_or_else(|| "some".to_owned(), thousands)
        ),
        _ if spec.algorithm.follows_gradients() => {
            let key = if spec.algorithm.is_unadjusted() { "stochastic_gradients" } else { "gradients" };
            format!(
                "{} steps, excluded from the draws",
                result[key]["warmup"].as_u64().map_or_else(|| "some".to_owned(), thousands)
            )
        }
        Warmup::Sweeps(sweeps) => format!("{} sweeps, excluded from the draws", thousands(sweeps)),
        Warmup::UntilRhat { rhat, max } => {
            format!("until split R-hat was below {rhat}, at most {} sweeps; excluded from the draws", thousands(max))
        }
    }
}

fn algorithm(spec: &JobSpec) -> String {
    if spec.algorithm == Algorithm::Hmc {
        return match spec.sampler.hmc.test {
            HmcTest::Remainder => "hmc, driven by released gradients".to_owned(),
            HmcTest::Ratio { kicks } => format!(
                "hmc without friction, in trajectories of {kicks} kicks by released gradients (Räisä, Koskela & Honkela, 2021)"
            ),
            HmcTest::None => "hmc without a test, driven by released gradients: its draws are approximate".to_owned(),
        };
    }
    if spec.is_polished() {
        let (name, sweeps) = (spec.algorithm.as_str(), thousands(spec.sampler.stochastic.polish));
        return format!(
            "{name}, driven by released gradients, without a test; then {sweeps} penalty sweeps, which supply the draws"
        );
    }
    if spec.algorithm.is_unadjusted() {
        let start = if spec.start_share().is_some() { ", started at one draw by the exponential mechanism" } else { "" };
        return format!("{}, driven by released gradients, without a test{start}", spec.algorithm.as_str());
    }
    if !spec.algorithm.proposes() {
        return spec.algorithm.as_str().to_owned();
    }
    let moves = match spec.sampler.radius {
        Radius::Auto => "step lengths found in the search and the warm-up",
        Radius::Fixed(_) => "step lengths given by the analyst",
    };
    format!(
        "{}, {} proposals, {moves}{}",
        spec.algorithm.as_str(),
        spec.sampler.proposal.as_str().replace('_', " "),
        if spec.sampler.rotate { ", along the posterior’s principal axes" } else { "" }
    )
}

/// Renders the clip of the records' contributions, and the warnings of the clip watch.
fn clip(material: &Material<'_>) -> Markup {
    let set = match material.spec.privacy.clip {
        None => "the model’s public bound, which truncates nothing within the declared bounds".to_owned(),
        Some(ClipRule::PerRecord(clip)) => format!("{} log-likelihood units per record, set by the analyst", plain(clip)),
        Some(ClipRule::Slope(slope)) => {
            format!("{} log-likelihood units per record for each unit of a step’s length, set by the analyst", plain(slope))
        }
    };
    let mut said = sentences(material.result, "warnings");
    said.retain(|warning| warning.contains("privacy.clip"));
    html! {
        (set)
        @if said.is_empty() {
            @if material.spec.privacy.clip.is_some() { ". The clip watch raised no warning." }
        } @else { ". " strong { "The clip watch warned: " } @for sentence in &said { (sentence) " " } }
    }
}
