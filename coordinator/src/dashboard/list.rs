//! The list of all jobs, latest first.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use conclave_ops::web::events;
use conclave_ops::web::{self, Visitor};
use conclave_pages::moment::utc;
use conclave_pages::page::{Tone, notice};
use conclave_pages::short_id::{short, shortest};
use conclave_pages::site::{self, Served};
use conclave_pages::table::{Cell, Column, Table};
use conclave_pages::text::{name, number, percent, plain_name, thousands};
use conclave_pages::verdict::Grade;
use maud::{Markup, html};

use super::shared::{CHECK_INTERVAL, Dashboard, Part, Shared, now, number_in, visible_jobs};
use crate::registry::JobFilter;
use crate::status::{State as JobState, Status};

const MOST: usize = 50;

pub(super) async fn page(State(dashboard): Shared, Extension(visitor): Extension<Visitor>, uri: Uri) -> Response {
    let from = number_in(&uri, "from");
    let filter = visible_jobs(&visitor);
    let parts = parts(&dashboard, &filter, from);
    let body = html! { @for (id, content) in &parts { (site::part(id, *id == "waiting", content)) } };
    let events = format!("/events?from={from}");
    web::html(site::render(&Served {
        title: if filter == JobFilter::All { "Jobs of this coordinator" } else { "Your jobs" },
        parents: &[],
        csrf: (web::CSRF_FIELD, &visitor.csrf),
        has_session: visitor.has_session(),
        events: Some(&events),
        body: &body,
    }))
}

pub(super) async fn events(State(dashboard): Shared, Extension(visitor): Extension<Visitor>, uri: Uri) -> Response {
    let (filter, from) = (visible_jobs(&visitor), number_in(&uri, "from"));
    events::stream(CHECK_INTERVAL, move || {
        let (dashboard, filter) = (Arc::clone(&dashboard), filter.clone());
        async move { now(parts(&dashboard, &filter, from), false) }
    })
}

struct Row {
    id: String,
    name: String,
    analyst: String,
    state: String,
    grade: Option<Grade>,
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
        state: status.state_words(),
        grade: status.grade,
        draws: (status.draws, status.draws_asked),
        acceptance: status.acceptance_rate,
        spent: status.parties.iter().map(|party| party.epsilon_spent).reduce(f64::max),
        submitted: status.submitted_ms,
    }
}

fn parts(dashboard: &Dashboard, filter: &JobFilter, from: usize) -> Vec<Part> {
    let mut counts = JobState::ALL.map(|state| (state, 0_u64));
    let (mut all, mut waiting) = (0_usize, Vec::new());
    dashboard.job_registry.for_each(filter, |status| {
        all += 1;
        counts.iter_mut().filter(|(state, _)| *state == status.state).for_each(|(_, count)| *count += 1);
        if !status.waiting_for.is_empty() && waiting.len() < MOST {
            waiting.push((status.id.clone(), status.name.clone(), status.waiting_for.clone(), status.waiting_since_ms));
        }
    });
    // Latest first: the jobs before these positions are skipped.
    let last = all.saturating_sub(from);
    let first = last.saturating_sub(MOST);
    let (mut at, mut rows) = (0, Vec::new());
    dashboard.job_registry.for_each(filter, |status| {
        if (first..last).contains(&at) {
            rows.push(row(status));
        }
        at += 1;
    });
    rows.reverse();
    // The operator sees all attached parties; analysts see those of their jobs.
    let attached = (*filter == JobFilter::All).then(|| dashboard.party_registry.attached());
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
            (notice(Tone::Warning, &format!("Paused: waiting for {} since {}", plain_name(&parties.join(", ")), utc(*since)), &html! {
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

/// Joins names, at most 20 of them.
fn plain(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(20).map(|name| plain_name(name)).collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn jobs_part(rows: &[Row], (from, first, all): (usize, usize, usize)) -> Markup {
    let done = |row: &Row| {
        let (done, asked) = row.draws;
        site::progress(done, asked, &format!("{} of {}", thousands(done), thousands(asked)))
    };
    let accepted = |row: &Row| if row.draws.0 > 0 { percent(row.acceptance) } else { "-".to_owned() };
    let length = shortest(&rows.iter().map(|row| &*row.id).collect::<Vec<_>>());
    let columns: [Column<'_, Row>; 8] = [
        ("job", &|row| Cell::markup(html! { a href={ "/jobs/" (row.id) } { (name(&row.name)) } " " (short(&row.id, length)) })),
        ("state", &|row| Cell::text(&row.state)),
        ("verdict", &|row| Cell::markup(row.grade.map_or_else(|| html! { "-" }, Grade::html))),
        ("draws per chain", &|row| Cell::markup(done(row))),
        ("accepted", &|row| Cell::number(accepted(row))),
        ("epsilon spent (max)", &|row| Cell::number(row.spent.map_or_else(|| "-".to_owned(), number))),
        ("analyst", &|row| Cell::name(&row.analyst)),
        ("submitted", &|row| Cell::text(utc(row.submitted))),
    ];
    html! {
        @if rows.is_empty() { p { "No job has been submitted yet." } }
        @else { (Table::new("The latest jobs first", rows, &columns).html()) }
        p {
            @if from > 0 { a href={ "/?from=" (from.saturating_sub(MOST)) } { "Later jobs" } " " }
            @if first > 0 { a href={ "/?from=" (all - first) } { "Earlier jobs" } }
        }
    }
}
