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

/// Parameters that are drawn; a page of more could not be read.
const MOST: usize = 40;
/// Chains that a plot tells apart, and one for the others together.
const LINES: usize = 9;
/// On which scale all of it is.
const SCALE: &str = "prior scale";

pub(super) fn section(material: &Material<'_>) -> Markup {
    let Some(draws) = material.draws.filter(|draws| draws.sampling.draws() > 0) else {
        return html! { p { "The coordinator holds no draws of this job any more, so that there is nothing to plot. The figures above were computed from them." } };
    };
    let drawn = draws.parameters.len().min(MOST);
    let resolution = columns(drawn * draws.chains().min(LINES));
    let samples: Vec<Vec<&[f64]>> =
        draws.sampling.theta[..drawn].iter().map(|chains| chains.iter().map(Vec::as_slice).collect()).collect();
    html! {
        @if !released::is_adequate(material.result) {
            (notice(Tone::Warning, "These draws are no answer", &html! { p { "They are shown for who looks for what went wrong: see above why they cannot be relied on." } }, false))
        }
        p { "On the scale of the priors, after the warm-up. Each chain has its colour and its dashes." }
        @if draws.parameters.len() > MOST { p { "The first " (MOST) " of " (draws.parameters.len()) " parameters are drawn." } }
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

/// Trace and density of one parameter.
fn parameter(material: &Material<'_>, draws: &Draws, index: usize, resolution: usize, chains: &[&[f64]]) -> Markup {
    let traces: Vec<Trace> = chains.iter().map(|chain| Trace::from_draws(chain, resolution)).collect();
    let parameter = &draws.parameters[index];
    let support =
        material.spec.support.get(index).map_or((f64::NEG_INFINITY, f64::INFINITY), |Interval { min, max }| (*min, *max));
    // A dirichlet's components have no density of their own.
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
