//! Traces, densities and pairs of the draws.

use conclave_common::parameter::Interval;
use conclave_common::parameter::Prior;
use conclave_pages::page::{Tone, notice};
use conclave_pages::plot::{Densities, Pairs, Trace, Traces, columns, density, pairs, row, trace};
use conclave_pages::released;
use conclave_pages::text::name;
use maud::{Markup, html};

use super::material::Material;
use conclave_draws::Draws;

/// Maximum number of parameters plotted; a page of more would be unreadable.
const MOST: usize = 40;
/// Chains shown separately, and one line for all others.
const LINES: usize = 9;
/// Scale of all plots.
const SCALE: &str = "prior scale";

pub(super) fn section(material: &Material<'_>) -> Markup {
    let Some(draws) = material.draws.filter(|draws| draws.sampling.draws() > 0) else {
        return html! { p { "The coordinator no longer holds draws of this job, so there is nothing to plot. The figures above were computed from them." } };
    };
    let drawn = draws.parameters.len().min(MOST);
    let resolution = columns(drawn * draws.chains().min(LINES));
    let samples: Vec<Vec<&[f64]>> =
        draws.sampling.theta[..drawn].iter().map(|chains| chains.iter().map(Vec::as_slice).collect()).collect();
    html! {
        @if !released::is_adequate(material.result) {
            (notice(Tone::Warning, "These draws are not a usable posterior", &html! { p { "They are shown to help find the cause: see above why they are not reliable." } }, false))
        }
        p {
            "On the scale of the priors" @if !released::is_from_releases(material.result) { ", after the warm-up" }
            ". Each chain has its own colour and dash pattern."
        }
        @if draws.parameters.len() > MOST { p { "The first " (MOST) " of " (draws.parameters.len()) " parameters are shown." } }
        @for index in 0..drawn {
            h3 { (name(&draws.parameters[index])) }
            (parameter(material, draws, index, resolution, &samples[index]))
        }
        @if drawn > 1 {
            h3 { "Pairs" }
            (pairs(&Pairs { id: "pairs", names: &draws.parameters[..drawn], scale: SCALE, draws: &samples }))
        }
    }
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
