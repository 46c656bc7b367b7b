//! All jobs, the latest first.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use conclave_ops::web::events;
use conclave_ops::web::{self, Visitor};
use conclave_pages::page::{Tone, notice};
use conclave_pages::site::{self, Served};
use conclave_pages::table::{Cell, table};
use conclave_pages::text::{percent, plain_name, thousands};
use maud::{Markup, html};

use super::shared::{Dashboard, LOOK, Part, Shared, now, number_in, utc, whose};
use crate::registry::Whose;
use crate::status::{State as JobState, Status};

/// Jobs on one page.
const MOST: usize = 50;

pub(super) async fn page(State(dashboard): Shared, Extension(visitor): Extension<Visitor>, uri: Uri) -> Response {
    let from = number_in(&uri, "from");
    let whose = whose(&visitor);
    let parts = parts(&dashboard, &whose, from);
    let body = html! { @for (id, content) in &parts { (site::part(id, *id == "waiting", content)) } };
    let events = format!("/events?from={from}");
    web::html(site::render(&Served {
        title: if whose == Whose::Everybodys { "Jobs of this coordinator" } else { "Your jobs" },
        parents: &[],
        csrf: (web::CSRF_FIELD, &visitor.csrf),
        has_session: visitor.has_session(),
        events: Some(&events),
        body: &body,
    }))
}

pub(super) async fn events(State(dashboard): Shared, Extension(visitor): Extension<Visitor>, uri: Uri) -> Response {
    let (whose, from) = (whose(&visitor), number_in(&uri, "from"));
    events::stream(LOOK, move || {
        let (dashboard, whose) = (Arc::clone(&dashboard), whose.clone());
        async move { now(parts(&dashboard, &whose, from), false) }
    })
}

/// What the page shows of a job.
struct Row {
    id: String,
    name: String,
    analyst: String,
    state: JobState,
    draws: (u64, u64),
    acceptance: f64,
    spent: Option<f64>,
    submitted: i64,
}

fn row(status: &Status) -> Row {
    Row {
        id: status.id.clone(),
        name: status.name.clone(),
        analyst: status.analyst.clone(),
        state: status.state,
        draws: (status.draws, status.draws_asked),
        acceptance: status.acceptance_rate,
        spent: status.parties.iter().map(|party| party.epsilon_spent).reduce(f64::max),
        submitted: status.submitted_ms,
    }
}

fn parts(dashboard: &Dashboard, whose: &Whose, from: usize) -> Vec<Part> {
    let mut counts = JobState::ALL.map(|state| (state, 0_u64));
    let (mut all, mut waiting) = (0_usize, Vec::new());
    dashboard.job_registry.each(whose, |status| {
        all += 1;
        counts.iter_mut().filter(|(state, _)| *state == status.state).for_each(|(_, count)| *count += 1);
        if !status.waiting_for.is_empty() && waiting.len() < MOST {
            waiting.push((status.id.clone(), status.name.clone(), status.waiting_for.clone(), status.waiting_since_ms));
        }
    });
    // The latest first: what comes before these is passed over.
    let last = all.saturating_sub(from);
    let first = last.saturating_sub(MOST);
    let (mut at, mut rows) = (0, Vec::new());
    dashboard.job_registry.each(whose, |status| {
        if (first..last).contains(&at) {
            rows.push(row(status));
        }
        at += 1;
    });
    rows.reverse();
    // Which parties there are is the operator's to see: analysts see those of their jobs.
    let attached = (*whose == Whose::Everybodys).then(|| dashboard.party_registry.attached());
    vec![
        ("waiting", waiting_part(&waiting)),
        ("counts", counts_part(&counts, attached.as_deref())),
        ("jobs", jobs_part(&rows, (from, first, all))),
    ]
}

type Waiting = (String, String, Vec<String>, i64);

fn waiting_part(waiting: &[Waiting]) -> Markup {
    html! {
        @for (id, name, parties, since) in waiting {
            (notice(Tone::Warning, &format!("Paused: waits for {} since {}", plain_name(&parties.join(", ")), utc(*since)), &html! {
                p { a href={ "/jobs/" (id) } { (plain_name(name)) } }
            }, false))
        }
    }
}

fn counts_part(counts: &[(JobState, u64)], attached: Option<&[String]>) -> Markup {
    html! {
        dl.tiles { @for (state, count) in counts.iter().filter(|(_, count)| *count > 0) { div { dt { (state.as_str()) } dd { (thousands(*count)) } } } }
        @if let Some(attached) = attached {
            p.note { "Parties attached: " @if attached.is_empty() { "none" } @else { (plain(attached)) } }
        }
    }
}

/// Names beside each other, not too many of them.
fn plain(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(20).map(|name| plain_name(name)).collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn jobs_part(rows: &[Row], (from, first, all): (usize, usize, usize)) -> Markup {
    let cells = rows.iter().map(|row| {
        let (done, asked) = row.draws;
        let words = format!("{} of {}", thousands(done), thousands(asked));
        vec![
            Cell::markup(html! { a href={ "/jobs/" (row.id) } { (conclave_pages::text::name(&row.name)) } }),
            Cell::Text(row.state.as_str().to_owned()),
            Cell::markup(site::progress(done, asked, &words)),
            Cell::Number(if row.draws.0 > 0 { percent(row.acceptance) } else { "-".to_owned() }),
            Cell::Number(row.spent.map_or_else(|| "-".to_owned(), conclave_pages::text::number)),
            Cell::Name(row.analyst.clone()),
            Cell::Text(utc(row.submitted)),
        ]
    });
    let header = ["job", "state", "draws per chain", "accepted", "epsilon spent (most)", "analyst", "submitted (UTC)"];
    html! {
        @if rows.is_empty() { p { "No job has been submitted yet." } }
        @else { (table("The latest jobs first", &header, &cells.collect::<Vec<_>>())) }
        p {
            @if from > 0 { a href={ "/?from=" (from.saturating_sub(MOST)) } { "Later jobs" } " " }
            @if first > 0 { a href={ "/?from=" (all - first) } { "Earlier jobs" } }
        }
    }
}
