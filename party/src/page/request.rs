//! The plain-language part of a job's page: who asks what, what it costs, and what one patient risks.

use conclave_pages::page::{Tone, notice};
use conclave_pages::text::{name, plain};
use maud::{Markup, html};

use crate::owner::Summary;
use crate::owner::inquiries::{Inquiry, joined};
use crate::owner::odds::right;

const SENTENCE: usize = 600;

/// Renders the summary of a job; a waiting one is phrased as a request.
pub(super) fn summary(summary: &Summary) -> Markup {
    html! {
        p.ask { b { (name(&summary.analyst)) } " wants to know " (summary.study.html()) ", " (plain(&summary.owners, SENTENCE)) ". " b { "No record leaves." } " " (plain(&summary.releases, SENTENCE)) }
        p.note { @for (i, (key, words)) in summary.request.iter().enumerate() { @if i > 0 { " · " } (capital(key.split(',').next().unwrap_or_default(), 0)) ": " (plain(words, SENTENCE)) } }
        h2 { (summary.cost_heading()) }
        (summary.scale.shares("job-cost").html())
        p.note { (plain(&summary.in_epsilon(), SENTENCE)) @if let Some(waits) = summary.waits { " " (waits) } }
        h2 { "What one patient risks" }
        dl.tiles.odds { @for (situation, of_100) in summary.odds.situations() { div { dt { (situation) } dd { (guesses(of_100)) } } } }
        p.note { (plain(&summary.scope, 2 * SENTENCE)) }
    }
}

/// Renders the right guesses of 100, with the bound in smaller type.
fn guesses(of_100: u32) -> Markup {
    let words = right(of_100);
    let (bound, number) = words.rsplit_once(' ').unwrap_or(("", &words));
    html! { @if !bound.is_empty() { small { (bound) } " " } span.whole { (number) " of 100" } }
}

/// Renders the findings about the records as points to raise with the analyst.
pub(super) fn inquiries(analyst: &str, inquiries: &[Inquiry]) -> Markup {
    let heading = match inquiries.len() {
        0 => return html! {},
        1 => format!("1 point to raise with {}", plain(analyst, 80)),
        n => format!("{n} points to raise with {}", plain(analyst, 80)),
    };
    let body = html! {
        @for inquiry in inquiries {
            @let found = joined(&inquiry.found);
            p {
                @for (i, clause) in found.iter().enumerate() { @if i > 0 { "; " } (plain(capital(clause, i).trim_end_matches('.'), SENTENCE)) }
                @if !inquiry.remedy.is_empty() { ": " (plain(inquiry.remedy.trim_end_matches('.'), SENTENCE)) } "."
            }
        }
    };
    notice(Tone::Warning, &heading, &body, false)
}

/// Capitalises the first clause of a sentence, unless it begins with a key of the job file.
fn capital(clause: &str, place: usize) -> String {
    let mut rest = clause.chars();
    let is_key = clause.split(' ').next().is_some_and(|word| word.contains(['.', '_', '[']));
    match (place, rest.next()) {
        (0, Some(first)) if !is_key => first.to_uppercase().chain(rest).collect(),
        _ => clause.to_owned(),
    }
}
