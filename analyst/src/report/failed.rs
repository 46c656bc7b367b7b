//! The report of a job that ended without a draw: its request, the spending of each party, the reason, and the remedy.

use conclave_common::epsilon;
use conclave_common::job::JobSpec;
use conclave_pages::moment::utc;
use conclave_pages::page::{Page, Style, Tone, document, notice};
use conclave_pages::plot::{Budget, budget};
use conclave_pages::table::{Cell, Column, Table, facts};
use conclave_pages::text::{as_written, name, plain, plain_name, thousands};
use conclave_proto::error::ErrorCode;
use conclave_proto::v1::{JobStatus, PartyStatus};
use maud::{Markup, html};

use super::repeat::{build, digest, log_words, party_software};

/// Maximum length of a reason.
const REASON: usize = 2000;

/// Renders the report.
pub(super) fn page(status: &JobStatus, source: &str, spec: &JobSpec, log: Option<&str>, coordinator: &str) -> String {
    let heading = if status.state == "cancelled" { "Cancelled before its first draw" } else { "Failed before its first draw" };
    let body = html! {
        h1 { (name(&spec.name)) }
        p.lead { "A job of " (spec.parties.len()) " data owners that ended without a result" }
        (notice(Tone::Warning, heading, &html! { p { (reason(status)) } }, false))
        nav aria-label="Sections" { ul {
            @for (anchor, words) in SECTIONS { li { a href={ "#" (anchor) } { (words) } } }
        } }
        (section(0, &remedy(status)))
        (section(1, &request(spec)))
        (section(2, &spending(status, spec)))
        (section(3, &repeat(status, source, log, coordinator)))
    };
    let title = format!("{} – a report by Conclave", plain_name(&spec.name));
    document(&Page { title: &title, style: Style::Embedded, script: None, body: &body })
}

/// Anchors and headings, in order.
const SECTIONS: [(&str, &str); 4] =
    [("remedy", "What to do"), ("request", "The request"), ("privacy", "Privacy spent"), ("repeat", "The job")];

fn section(at: usize, body: &Markup) -> Markup {
    let (anchor, heading) = SECTIONS[at];
    html! { section aria-labelledby=(anchor) { h2 id=(anchor) { (heading) } (body) } }
}

fn reason(status: &JobStatus) -> String {
    match status.error.as_str() {
        "" if status.state == "cancelled" => "The analyst cancelled the job.".to_owned(),
        "" => "No reason was recorded; the coordinator’s log may have one.".to_owned(),
        error => plain(error, REASON),
    }
}

/// Renders the next steps, by the code of the failure.
fn remedy(status: &JobStatus) -> Markup {
    let job = plain(&status.job, 100);
    let steps = match ErrorCode::parse(&status.error_code) {
        _ if status.state == "cancelled" => "Submit the job again when it is wanted.",
        Some(ErrorCode::InvalidInput | ErrorCode::NotFound) => {
            "Correct the key, column or file that the reason names. Run the job on files of your own with `conclave rehearse job.toml`, then submit it again."
        }
        Some(ErrorCode::Policy) => {
            "An owner’s policy forbids the job. Change the setting that the reason names, or ask the owner to change the policy; then submit the job again."
        }
        Some(ErrorCode::Revoked) if status.error.contains("no longer answers this job: permit_expired:") => {
            "An owner’s permit for the job has ended. Ask the owner for a new one, then submit the job again. If draws were made, `conclave extend` continues from them."
        }
        Some(ErrorCode::Revoked) => "An owner has withdrawn its consent or its trust. Ask the owner, then submit the job again.",
        Some(ErrorCode::Budget) => {
            "A budget does not cover the job. Lower `privacy.epsilon`, or ask the owner for room; `conclave plan job.toml` predicts the effective draws of \
             each epsilon."
        }
        Some(ErrorCode::Unauthenticated) => "A certificate does not authorise the job. Ask the operator for a new one.",
        Some(ErrorCode::Unreachable) => {
            "A party or the coordinator could not be reached. Ask its operator, then submit the job again."
        }
        Some(ErrorCode::Conflict) => "Its id was used before for other content. Submit the job again: it gets a new id.",
        Some(ErrorCode::Internal) | None => {
            "Give the operator this page. The coordinator’s log has the details under the job’s id."
        }
    };
    html! {
        p { (steps) }
        p { "A job that is submitted again is a new job and spends its own budget. The events of this one: " code { "conclave watch " (job) } "." }
    }
}

fn request(spec: &JobSpec) -> Markup {
    let limit = &spec.privacy.budget;
    let said = vec![
        ("model", html! { bdi { (plain(&spec.model.describe(), usize::MAX)) } }),
        ("algorithm", html! { (spec.algorithm.as_str()) }),
        ("parties", html! { @for (at, party) in spec.parties.iter().enumerate() { @if at > 0 { ", " } (name(party)) } }),
        (
            "privacy",
            html! { "epsilon " (as_written(limit.epsilon)) " at delta " (as_written(limit.promised_delta())) " at each owner, at most" },
        ),
        ("draws", html! { (thousands(spec.draws_asked())) " in each of " (spec.sampler.chains) " chains" }),
    ];
    facts(&said)
}

/// Renders the spending of each party.
fn spending(status: &JobStatus, spec: &JobSpec) -> Markup {
    let records = |party: &PartyStatus| if party.records > 0 { thousands(party.records) } else { "not opened".to_owned() };
    let columns: [Column<'_, PartyStatus>; 4] = [
        ("party", &|party| Cell::name(&party.name)),
        ("records", &|party| Cell::number(records(party))),
        ("releases", &|party| Cell::number(thousands(party.queries))),
        ("epsilon spent", &|party| Cell::figure(&party.epsilon_spent.into(), epsilon::spent)),
    ];
    let limit = spec.privacy.budget.epsilon;
    let bar = |(at, party): (usize, &PartyStatus)| {
        let limit = if party.epsilon_budget > 0.0 { party.epsilon_budget } else { limit };
        let id = format!("budget-{at}");
        budget(&Budget { id: &id, party: &party.name, spent: party.epsilon_spent, projected: None, limit, has_ended: true })
    };
    let nothing = status.parties.iter().all(|party| party.queries == 0);
    html! {
        @if nothing { p { "No party made a release: nothing was spent, and nothing about any record was revealed." } }
        @else { p { "Releases made before the failure stay charged: they reached the coordinator, so their cost cannot be taken back." } }
        @for part in status.parties.iter().enumerate().map(bar) { (part) }
        (Table::new("Spent by this job at each party", &status.parties, &columns).html())
    }
}

fn repeat(status: &JobStatus, source: &str, log: Option<&str>, coordinator: &str) -> Markup {
    html! {
        (facts(&[
            ("job", html! { code { (plain(&status.job, 100)) } }),
            ("state", html! { (plain(&status.state, 40)) @if !status.error_code.is_empty() { " (" (plain(&status.error_code, 40)) ")" } }),
            ("analyst", name(&status.analyst)),
            ("submitted", html! { (utc(status.submitted_unix_ms)) }),
            ("coordinator", name(coordinator.trim_start_matches("https://"))),
            ("software", html! { (build()) " wrote this report" }),
            ("parties", party_software(&status.parties)),
            ("digest", html! { "SHA-256 of the job file: " code { (digest(source)) } }),
            ("log", log_words(log)),
        ]))
        h3 { "The job file, byte for byte" }
        pre tabindex="0" { (source) }
    }
}
