//! Traces, densities and pairs of the draws.

use conclave_common::parameter::Interval;
use conclave_common::parameter::Prior;
use conclave_pages::object::{rows, text};
use conclave_pages::page::{Tone, notice};
use conclave_pages::plot::{Densities, Pairs, Trace, Traces, columns, density, pairs, row, trace};
use conclave_pages::released;
use conclave_pages::verdict::Verdict;
use maud::{Markup, html};

use super::fold::folded;
use super::material::Material;
use super::posterior::least;
use conclave_draws::Draws;

/// Maximum number of parameters plotted; a page of more would be unreadable.
const MOST: usize = 40;
/// Number of parameters shown before the others, which are folded.
const WORST: usize = 4;
/// Chains shown separately, and one line for all others.
const LINES: usize = 9;
/// Scale of all plots.
const SCALE: &str = "prior scale";

pub(super) fn section(material: &Material<'_>) -> Markup {
    let Some(draws) = material.draws.filter(|draws| draws.sampling.draws() > 0) else {
        return html! { p { "The coordinator no longer holds draws of this job, so there is nothing to plot. The figures above were computed from them." } };
    };
    let order = worst_first(material, draws);
    let resolution = columns(order.len() * draws.chains().min(LINES));
    let chains = |index: &usize| draws.sampling.theta[*index].iter().map(Vec::as_slice).collect::<Vec<&[f64]>>();
    let samples: Vec<Vec<&[f64]>> = order.iter().map(chains).collect();
    let names: Vec<String> = order.iter().map(|index| draws.parameters[*index].clone()).collect();
    let shown = |at: usize| parameter(material, draws, order[at], resolution, &samples[at]);
    let plots = html! {
        p {
            "On the scale of the priors" @if !released::is_from_releases(material.result) { ", after the warm-up" }
            ". Each chain has its own colour and dash pattern."
        }
        p { "Shown first: the parameters with the fewest effective draws." }
        div.draws { @for at in 0..order.len().min(WORST) { (shown(at)) } }
        @if order.len() > WORST {
            @let more = html! {
                @if draws.parameters.len() > MOST { p { (MOST) " of " (draws.parameters.len()) " parameters are shown." } }
                @for at in WORST..order.len() { (shown(at)) }
            };
            (folded(&format!("The draws of {} more parameters", order.len() - WORST), &more))
        }
        @if order.len() > 1 {
            (folded("Pairs of parameters", &pairs(&Pairs { id: "pairs", names: &names, scale: SCALE, draws: &samples })))
        }
    };
    if Verdict::of(material.result).is_usable() {
        return html! { h3 { "The draws" } (plots) };
    }
    let warned = html! {
        (notice(Tone::Warning, "These draws are not a usable posterior", &html! { p { "They are shown to help find the cause: see above why they are not reliable." } }, false))
        (plots)
    };
    folded("Look at the draws anyway", &warned)
}

/// Returns the parameters to plot, those with the fewest effective draws first.
fn worst_first(material: &Material<'_>, draws: &Draws) -> Vec<usize> {
    let posterior = rows(released::figures(material.result), "posterior");
    let row = |index: &usize| posterior.iter().find(|row| text(row, "name") == draws.parameters[*index]);
    let least = |index: &usize| row(index).map_or(0.0, least);
    let mut order: Vec<usize> = (0..draws.parameters.len().min(draws.sampling.theta.len())).collect();
    order.sort_by(|a, b| least(a).total_cmp(&least(b)));
    order.truncate(MOST);
    order
}

/// Renders the trace and density of one parameter.
fn parameter(material: &Material<'_>, draws: &Draws, index: usize, resolution: usize, chains: &[&[f64]]) -> Markup {
    let traces: Vec<Trace> = chains.iter().map(|chain| Trace::from_draws(chain, resolution)).collect();
    let parameter = &draws.parameters[index];
    let support =
        material.spec.support.get(index).map_or((f64::NEG_INFINITY, f64::INFINITY), |Interval { min, max }| (*min, *max));
    // The components of a Dirichlet prior have no separate densities.
    let prior = material.spec.priors.get(index).filter(|prior| !matches!(prior, Prior::Dirichlet { .. }));
    let log_prior = prior.map(|prior| |x: f64| prior.log_density(x));
    row(&[
        trace(&Traces { id: &format!("trace-{index}"), parameter, scale: SCALE, chains: &traces, warmup: false }),
        density(&Densities {
            id: &format!("density-{index}"),
            parameter,
            scale: SCALE,
            chains,
            support,
            log_prior: log_prior.as_ref().map(|f| f as &dyn Fn(f64) -> f64),
        }),
    ])
}
