//! The overview page of the party.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use conclave_common::epsilon;
use conclave_ops::web::events::{self, Snapshot};
use conclave_ops::web::{self, Visitor};
use conclave_pages::document::{self, Block};
use conclave_pages::moment::stored;
use conclave_pages::page::{Tone, notice};
use conclave_pages::plot;
use conclave_pages::precision::rough;
use conclave_pages::short_id::{short, shortest};
use conclave_pages::site::{self, Served};
use conclave_pages::table::{Cell, Table};
use conclave_pages::text::{name, plain, thousands};
use conclave_privacy::accounting::gaussian_dp;
use maud::{Markup, html};
use time::OffsetDateTime;

use super::read::{Facts, Ledger, audit_of};
use super::state::{FRESH, PageState, Shared, message_page};
use super::times;
use crate::config::PartyConfig;
use crate::ledger_views::Listed;
use crate::owner::{Scale, State as JobState, budget, masked};

/// Name of this daemon in the titles of tabs.
pub(super) const DAEMON: &str = "data owner";
const DAYS: usize = 14;
const JOBS: usize = 50;
const SENTENCE: usize = 600;
/// Maximum size of an audit's plot in bytes.
const PLOT: u64 = 4 << 20;

pub(super) async fn page(State(shared): Shared, Extension(visitor): Extension<Visitor>) -> Response {
    let facts = shared.facts().await;
    let body =
        html! { @for (id, content) in parts(&shared, &facts) { (site::part(id, matches!(id, "state" | "waiting"), &content)) } };
    web::html(site::render(&Served {
        title: &format!("Party {}", shared.config.name),
        tab: &tab(&shared.config, &facts),
        parents: &[],
        csrf: (web::CSRF_FIELD, &visitor.csrf),
        has_session: visitor.has_session(),
        events: Some("/events"),
        body: &body,
    }))
}

pub(super) async fn events(State(shared): Shared) -> Response {
    events::stream(FRESH, move || {
        let shared = Arc::clone(&shared);
        async move {
            let facts = shared.facts().await;
            let parts = parts(&shared, &facts).into_iter().map(|(id, content)| (id, content.into_string())).collect();
            Snapshot { parts, is_final: false }
        }
    })
}

pub(super) async fn audit(State(shared): Shared) -> Response {
    let path = audit_of(&shared.config.ledger);
    let read = tokio::task::spawn_blocking(move || {
        let long = std::fs::metadata(&path).is_ok_and(|found| found.len() > PLOT);
        if long { None } else { std::fs::read_to_string(&path).ok() }
    });
    match read.await.ok().flatten() {
        Some(text) => web::picture(text),
        None => message_page("Not found", &html! { p { "No audit has written a plot." } }, web::missing),
    }
}

fn parts(shared: &PageState, facts: &Facts) -> Vec<(&'static str, Markup)> {
    let config = &shared.config;
    let mark = site::tab_mark(&tab(config, facts));
    let mut parts = vec![("state", html! { (mark) (state(config, facts)) })];
    if let Ok(ledger) = &facts.ledger {
        parts.push(("waiting", waiting(&ledger.jobs)));
        parts.push(("budget", budget_part(ledger, config)));
        parts.push(("days", days(&ledger.days)));
        parts.push(("jobs", all(ledger, config)));
        parts.push(("releases", last(ledger)));
    }
    parts.push(("times", times::part(config.durability, &shared.times)));
    parts.push(("audit", audited(facts.audited)));
    parts
}

/// Returns the title of the tab, with the number of jobs that wait for consent.
fn tab(config: &PartyConfig, facts: &Facts) -> String {
    let jobs = facts.ledger.as_ref().map(|ledger| ledger.jobs.as_slice()).unwrap_or_default();
    let waiting = jobs.iter().filter(|job| job.state() == JobState::Awaiting).count();
    site::tab(&plain(&config.name, 80), DAEMON, waiting)
}

fn state(config: &PartyConfig, facts: &Facts) -> Markup {
    let problem = facts.daemon.as_ref().and_then(|daemon| daemon.ledger.as_ref()).or(facts.ledger.as_ref().err());
    html! {
        @if let Some(problem) = problem {
            (notice(Tone::Warning, "The ledger answers nothing", &html! { p { (plain(problem, SENTENCE)) } }, false))
        }
        @match &facts.daemon {
            Some(daemon) if daemon.attached => p { "Attached to " code { (config.coordinator) } " since " (stored(&daemon.since)) "." },
            Some(daemon) => { (notice(Tone::Warning, &format!("Not attached since {}", stored(&daemon.since)), &html! { p { "Jobs that need this party are paused; it dials " code { (config.coordinator) } " again by itself." } }, false)) }
            None => p { "The daemon has not reported its state yet." },
        }
    }
}

fn waiting(jobs: &[crate::owner::JobView]) -> Markup {
    let waiting: Vec<_> = jobs.iter().filter(|job| job.state() == JobState::Awaiting).collect();
    html! {
        h2 { "Waiting for your decision" }
        @if waiting.is_empty() { p { "Nothing to do: no job waits for your consent." } }
        @for job in waiting.iter().take(JOBS) {
            (notice(Tone::Note, &format!("{} submitted {}", plain(&job.request.analyst, 80), plain(job.name(), 80)), &html! {
                p { "Submitted on " (stored(&job.request.asked)) ". " a href={ "/jobs/" (job.request.job) } { "Review and decide" } }
            }, false))
        }
        @if waiting.len() > JOBS { p { "And " (waiting.len() - JOBS) " more: " code { "conclave-party jobs" } "." } }
    }
}

fn budget_part(ledger: &Ledger, config: &PartyConfig) -> Markup {
    let r = &ledger.report;
    html! {
        h2 { "The data's budget, over all jobs, permanent" }
        (document::html(&budget::blocks(r, &Scale::new(r, config), "budget-bar")))
        @for job in r.masked_jobs.iter().filter(|job| job.open) {
            details { summary { "Masked job " (plain(&job.job, 80)) ": members and key" } (document::html(&[Block::Facts(masked::status(job))])) }
        }
    }
}

fn days(days: &std::collections::BTreeMap<i64, u64>) -> Markup {
    let today = OffsetDateTime::now_utc().unix_timestamp().div_euclid(86_400);
    let shown: Vec<(i64, u64)> =
        (0..DAYS as i64).rev().map(|back| today - back).map(|day| (day, days.get(&day).copied().unwrap_or(0))).collect();
    let date =
        |day: i64| OffsetDateTime::from_unix_timestamp(day * 86_400).map(|time| time.date().to_string()).unwrap_or_default();
    let values: Vec<f64> = shown.iter().map(|(_, count)| *count as f64).collect();
    let latest: Vec<_> = shown.iter().rev().copied().collect();
    let table = Table::new(
        "Releases per day, UTC",
        &latest,
        &[("day", &|(day, _)| Cell::text(date(*day))), ("releases", &|(_, count)| Cell::number(thousands(*count)))],
    );
    html! {
        h2 { "Releases per day" }
        p { (plot::spark("per-day", "Releases per day", &values)) " the last " (DAYS) " days; " (thousands(days.values().sum())) " in total" }
        details { summary { "As a table" } (table.html()) }
    }
}

fn all(ledger: &Ledger, config: &PartyConfig) -> Markup {
    let latest: Vec<_> = ledger.jobs.iter().rev().take(JOBS).collect();
    let length = shortest(&ledger.jobs.iter().map(|job| &*job.request.job).collect::<Vec<_>>());
    let table = Table::new(
        "The latest jobs first",
        &latest,
        &[
            ("job", &|job| {
                Cell::markup(
                    html! { a href={ "/jobs/" (job.request.job) } { (name(job.name())) } " " (short(&job.request.job, length)) },
                )
            }),
            ("state", &|job| Cell::text(job.state_words())),
            ("numbers", &|job| Cell::number(thousands(job.spent().draws))),
            ("epsilon spent", &|job| Cell::number(epsilon::spent(job.epsilon_spent(&config.budget)))),
            ("analyst", &|job| Cell::name(&job.request.analyst)),
            ("submitted", &|job| Cell::text(stored(&job.request.asked))),
        ],
    );
    html! {
        h2 { "Jobs" }
        @if table.is_empty() { p { "No job has been submitted to this party yet." } } @else { (table.html()) }
    }
}

fn last(ledger: &Ledger) -> Markup {
    let alone = |release: &Listed| gaussian_dp::epsilon(release.mu_squared.sqrt(), ledger.report.delta);
    let length = shortest(&ledger.jobs.iter().map(|job| &*job.request.job).collect::<Vec<_>>());
    let table = Table::new(
        "Releases, the latest first",
        &ledger.last,
        &[
            ("charged", &|release| Cell::text(stored(&release.time))),
            ("job", &|release| Cell::markup(short(&release.job, length))),
            ("round", &|release| Cell::number(thousands(release.iteration))),
            ("chain", &|release| Cell::number(release.chain)),
            ("kind", &|release| Cell::text(&release.kind)),
            ("noise sd", &|release| Cell::number(rough(release.sigma))),
            ("epsilon alone", &|release| Cell::number(epsilon::spent(alone(release)))),
            ("integers", &|release| Cell::number(thousands(release.integers as u64))),
            ("released numbers", &|release| Cell::number(release.shown(1))),
        ],
    );
    html! {
        h2 { "The last releases" }
        @if table.is_empty() { p { "No releases yet." } }
        @else {
            (table.html())
            p.note { "Numbers are in lattice units and include their noise, as released. The noise is in the unit of each kind: log-likelihood units for a ratio, widths of its range for a statistic, units of privacy for counts, products of two numbers within 1 for moments and curvatures, and one unit's largest contribution for a gradient. All releases: " code { "conclave-party ledger" } "." }
        }
    }
}

fn audited(there: bool) -> Markup {
    html! {
        h2 { "Audit" }
        @if there {
            img.picture src="/audit.svg" alt="Plot of the last privacy audit: the test statistic with and without one record, and the errors of every test. Its figures are in the picture.";
            p.note { "Run on simulated records, through this party's answer path. To run it again: " code { "conclave-party audit --config party.toml" } "." }
        } @else {
            p { "No audit has been run with this configuration. " code { "conclave-party audit --config party.toml" } " attacks this party's own answer path on simulated records, and shows its plot here." }
        }
    }
}
