//! Plots and diagnostics of running chains. Slow: call it on a thread that may block.

use conclave_common::job::RHAT;
use conclave_pages::plot::{self, Densities, Traces};
use conclave_pages::precision::by_sd;
use conclave_pages::table::{Cell, Table};
use conclave_pages::text::{effective, name, percent, thousands, thousandths};
use maud::{Markup, html};

use crate::live::{Live, ParameterView, View};
use crate::status::Status;

pub(super) const PARAMETERS: usize = 8;
/// Label of the parameters' scale.
const SCALE: &str = "scale of the priors";

/// Renders the chains of the job of this status for [`PARAMETERS`] parameters, starting with parameter `from`.
pub(super) fn draw(live: &Live, names: &[String], from: usize, status: &Status) -> Markup {
    let Some(view) = live.view(from..from + PARAMETERS) else {
        return html! { h2 { "Chains" } p { "No draws." } };
    };
    let shown = || names.iter().skip(from).zip(&view.parameters);
    html! {
        h2 { "Chains" }
        @if view.warmup { p { "These are warm-up draws: they are not kept, and the plots restart after the warm-up." } }
        @if !status.never_rejects { (acceptance(&view)) }
        (diagnostics(shown(), &view))
        @if names.len() > PARAMETERS { (pages(names.len(), from, &status.id)) }
        @for (index, (parameter, of)) in shown().enumerate() {
            h3 { (name(parameter)) }
            (plots(index, parameter, of, view.warmup))
        }
    }
}

fn acceptance(view: &View) -> Markup {
    html! {
        p { "Accepted by chain: " @for (chain, (draws, share)) in view.chains.iter().take(16).enumerate() {
            @if chain > 0 { ", " }
            (percent(*share)) " of " (thousands(*draws))
        } @if view.chains.len() > 16 { ", …" } "." }
    }
}

fn diagnostics<'a>(shown: impl Iterator<Item = (&'a String, &'a ParameterView)>, view: &View) -> Markup {
    let rows: Vec<_> = shown.map(|(parameter, of)| (parameter, of.summary())).collect();
    let figure = |x: f64, show: fn(f64) -> String| Cell::number(if x.is_finite() { show(x) } else { "-".to_owned() });
    let table = Table::new(
        "How the chains mix",
        &rows,
        &[
            ("parameter", &|(parameter, _)| Cell::name(parameter)),
            ("mean", &|(_, of)| Cell::number(if of.mean.is_finite() { by_sd(of.mean, of.sd) } else { "-".to_owned() })),
            ("sd", &|(_, of)| Cell::number(if of.sd.is_finite() { by_sd(of.sd, of.sd) } else { "-".to_owned() })),
            ("R-hat", &|(_, of)| judged(of.rhat)),
            ("ESS bulk", &|(_, of)| figure(of.ess_bulk, effective)),
            ("ESS tail", &|(_, of)| figure(of.ess_tail, effective)),
        ],
    );
    html! {
        (table.html())
        p.note {
            "R-hat near 1 means that the chains agree; above " (RHAT) " they do not agree yet. ESS is the equivalent number of independent draws."
            @if view.every > 1 { " Both use one draw in " (view.every) " here; the result uses all draws, whose ESS is at least about this." }
        }
    }
}

/// Renders a split R-hat with its verdict.
fn judged(rhat: f64) -> Cell {
    let digits = if rhat.is_finite() { thousandths(rhat) } else { "∞".to_owned() };
    match rhat {
        x if x > RHAT => Cell::marked(html! { span.bad { (digits) " (above " (RHAT) ")" } }),
        x if x.is_finite() => Cell::marked(html! { span.ok { (digits) } }),
        _ => Cell::number("-"),
    }
}

fn plots(index: usize, parameter: &str, of: &ParameterView, warmup: bool) -> Markup {
    let chains: Vec<&[f64]> = of.samples.iter().map(Vec::as_slice).collect();
    let (trace_id, density_id) = (format!("trace-{index}"), format!("density-{index}"));
    let density = Densities {
        id: &density_id,
        parameter,
        scale: SCALE,
        chains: &chains,
        support: (f64::NEG_INFINITY, f64::INFINITY),
        log_prior: None,
    };
    plot::row(&[
        plot::trace(&Traces { id: &trace_id, parameter, scale: SCALE, chains: &of.traces, warmup }),
        plot::density(&density),
    ])
}

/// Links to the pages of the other parameters.
fn pages(all: usize, from: usize, job: &str) -> Markup {
    html! {
        nav aria-label="Parameters" { ul { @for first in (0..all).step_by(PARAMETERS) {
            @let words = format!("Parameters {} to {}", first + 1, (first + PARAMETERS).min(all));
            li { @if first == from { b aria-current="page" { (words) } } @else { a href={ "/jobs/" (job) "?from=" (first) } { (words) } } }
        } } }
    }
}
