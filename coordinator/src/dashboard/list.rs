//! The list of all jobs, latest first.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use conclave_common::epsilon;
use conclave_ops::web::events;
use conclave_ops::web::{self, Visitor};
use conclave_pages::moment::utc;
use conclave_pages::page::{Tone, notice};
use conclave_pages::short_id::{short, shortest};
use conclave_pages::site::{self, Served};
use conclave_pages::table::{Cell, Column, Table};
use conclave_pages::text::{name, percent, plain_name, thousands};
use conclave_pages::verdict::Grade;
use conclave_pages::waiting;
use maud::{Markup, html};

use super::shared::{CHECK_INTERVAL, DAEMON, Dashboard, Part, Shared, now, number_in, sentence_case, visible_jobs};
use crate::clock::now_ms;
use crate::registry::JobFilter;
use crate::status::{State as JobState, Status};

const MOST: usize = 50;

pub(super) async fn page(State(dashboard): Shared, Extension(visitor): Extension<Visitor>, uri: Uri) -> Response {
    let from = number_in(&uri, "from");
    let filter = visible_jobs(&visitor);
    let Parts { parts, undecided } = parts(&dashboard, &filter, from);
    let body = html! { @for (id, content) in &parts { (site::part(id, *id == "waiting", content)) } };
    let events = format!("/events?from={from}");
    web::html(site::render(&Served {
        title: if filter == JobFilter::All { "Jobs of this coordinator" } else { "Your jobs" },
        tab: &site::tab("Jobs", DAEMON, undecided),
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
        async move { now(parts(&dashboard, &filter, from).parts, false) }
    })
}

struct Row {
    id: String,
    name: String,
    analyst: String,
    state: String,
    grade: Option<Grade>,
    draws: (u64, u64),
    acceptance: Option<f64>,
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
        acceptance: status.acceptance(),
        spent: status.parties.iter().map(|party| party.epsilon_spent).reduce(f64::max),
        submitted: status.submitted_ms,
    }
}

/// The parts of the page, and the number of jobs that wait for consent.
struct Parts {
    parts: Vec<Part>,
    undecided: usize,
}

fn parts(dashboard: &Dashboard, filter: &JobFilter, from: usize) -> Parts {
    let mut counts = Counts::default();
    let (mut all, mut undecided, mut waiting) = (0_usize, 0_usize, Vec::new());
    dashboard.job_registry.for_each(filter, |status| {
        all += 1;
        counts.add(status);
        undecided += usize::from(!status.awaiting_consent.is_empty() && !status.state.has_ended());
        if !status.waiting_for.is_empty() && waiting.len() < MOST {
            let decides = status.waits_for_consent();
            waiting.push(Waiting {
                id: status.id.clone(),
                name: status.name.clone(),
                parties: status.waiting_for.clone(),
                decides,
                since_ms: status.waiting_since_ms,
            });
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
    let tab = site::tab_mark(&site::tab("Jobs", DAEMON, undecided));
    let parts = vec![
        ("waiting", html! { (tab) (waiting_part(&waiting)) }),
        ("counts", counts_part(&counts, attached.as_deref())),
        ("jobs", jobs_part(&rows, (from, first, all))),
    ];
    Parts { parts, undecided }
}

/// A job that waits for parties.
struct Waiting {
    id: String,
    name: String,
    parties: Vec<String>,
    /// True if it waits for decisions alone.
    decides: bool,
    since_ms: i64,
}

/// Renders one notice for all jobs that wait for the same parties in the same way. An owner's decision is no fault.
fn waiting_part(waiting: &[Waiting]) -> Markup {
    let mut kinds: Vec<(bool, &[String], Vec<&Waiting>)> = Vec::new();
    for job in waiting {
        match kinds.iter_mut().find(|(decides, parties, _)| *decides == job.decides && *parties == job.parties) {
            Some((_, _, jobs)) => jobs.push(job),
            None => kinds.push((job.decides, &job.parties, vec![job])),
        }
    }
    html! {
        @for (decides, parties, jobs) in &kinds {
            @let (tone, words) = match decides {
                true => (Tone::Note, sentence_case(&waiting::for_decision(parties))),
                false => (Tone::Warning, format!("Paused: waiting for {}", plain_name(&parties.join(", ")))),
            };
            (notice(tone, &words, &html! {
                ul { @for job in jobs {
                    li { a href={ "/jobs/" (job.id) } { (plain_name(&job.name)) } (waiting::since(job.since_ms, now_ms())) }
                } }
            }, false))
        }
    }
}

/// The number of jobs in each state; of those that have finished, the number without a usable answer.
#[derive(Default)]
struct Counts {
    states: [u64; JobState::ALL.len()],
    unusable: u64,
}

impl Counts {
    fn add(&mut self, status: &Status) {
        let is_unusable = status.grade.is_none_or(|grade| grade <= Grade::NotUsable);
        self.unusable += u64::from(status.state == JobState::Finished && is_unusable);
        JobState::ALL
            .iter()
            .zip(&mut self.states)
            .filter(|(state, _)| **state == status.state)
            .for_each(|(_, count)| *count += 1);
    }

    /// Returns the counts that are not zero, with their words.
    fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let one = |(state, count): (&JobState, u64)| match state {
            JobState::Finished => {
                [("finished, with a usable answer", count - self.unusable), ("finished, without a usable answer", self.unusable)]
            }
            other => [(other.as_str(), count), ("", 0)],
        };
        JobState::ALL.iter().zip(self.states).flat_map(one).filter(|(_, count)| *count > 0)
    }
}

fn counts_part(counts: &Counts, attached: Option<&[String]>) -> Markup {
    html! {
        dl.tiles { @for (words, count) in counts.named() { div { dt { (words) } dd { (thousands(count)) } } } }
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
    let accepted = |row: &Row| row.acceptance.map_or_else(|| "-".to_owned(), percent);
    let length = shortest(&rows.iter().map(|row| &*row.id).collect::<Vec<_>>());
    let columns: [Column<'_, Row>; 8] = [
        ("job", &|row| Cell::markup(html! { a href={ "/jobs/" (row.id) } { (name(&row.name)) } " " (short(&row.id, length)) })),
        ("state", &|row| Cell::text(&row.state)),
        ("verdict", &|row| Cell::markup(row.grade.map_or_else(|| html! { "-" }, Grade::html))),
        ("draws per chain", &|row| Cell::markup(done(row))),
        ("accepted", &|row| Cell::number(accepted(row))),
        ("epsilon spent (max)", &|row| Cell::number(row.spent.map_or_else(|| "-".to_owned(), epsilon::spent))),
        ("analyst", &|row| Cell::name(&row.analyst)),
        ("submitted", &|row| Cell::text(utc(row.submitted))),
    ];
    html! {
        @if !rows.is_empty() { p { "Each row is an analysis over the parties’ records, which runs or has ended. Open it to read its verdict, its privacy spending and what to do." } }
        @if rows.is_empty() { p { "No job has been submitted yet." } }
        @else { (Table::new("The latest jobs first", rows, &columns).html()) }
        p {
            @if from > 0 { a href={ "/?from=" (from.saturating_sub(MOST)) } { "Later jobs" } " " }
            @if first > 0 { a href={ "/?from=" (all - first) } { "Earlier jobs" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jobs without a usable answer are not among those that have finished with one, and a job that releases once accepts nothing.
    #[test]
    fn the_list_tells_answers_from_ends_without_one() {
        let job = |grade| Status { state: JobState::Finished, grade, draws: 9, acceptance_rate: 0.84, ..Status::default() };
        let mut counts = Counts::default();
        for grade in [Some(Grade::FitToPublish), Some(Grade::Preliminary), Some(Grade::NotUsable), Some(Grade::NoAnswer), None] {
            counts.add(&job(grade));
        }
        counts.add(&Status { state: JobState::Failed, ..Status::default() });
        let named: Vec<_> = counts.named().collect();
        let expected = [("finished, with a usable answer", 2), ("finished, without a usable answer", 3), ("failed", 1)];
        assert_eq!(named, expected);
        let listed = |status: &Status| jobs_part(&[row(status)], (0, 0, 1)).into_string().contains("84%");
        assert!(listed(&job(None)) && !listed(&Status { never_rejects: true, ..job(None) }));
    }
}
