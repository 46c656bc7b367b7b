//! One job's page: rendering, live updates, and the form that cancels the job.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;
use conclave_common::job::JobSpec;
use conclave_ops::web::events as event_stream;
use conclave_ops::web::{self, Principal, Visitor};
use conclave_pages::moment::utc;
use conclave_pages::short_id::{SHORT, short};
use conclave_pages::site::{self, Served};
use conclave_pages::study::Study;
use conclave_pages::text::{name, plain_name};
use maud::html;

use super::super::shared::{CHECK_INTERVAL, DAEMON, Shared, is_operator, missing, now, number_in, visible_jobs};
use super::parts::parts;

pub(in crate::dashboard) async fn page(
    State(dashboard): Shared,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    uri: Uri,
) -> Response {
    let Some(shown) = dashboard.job_registry.view(&id, &visible_jobs(&visitor)) else { return missing("There is no such job.") };
    let from = number_in(&uri, "from");
    let (parts, over) = parts(&dashboard, &shown, from, is_operator(&visitor)).await;
    let status = shown.status.borrow().clone();
    let title = plain_name(&status.name);
    let study = JobSpec::parse(&shown.source).ok().map(|spec| Study::new(&spec));
    let body = html! {
        p.lead { "Job " (short(&status.id, SHORT)) ", submitted by " (name(&status.analyst)) " on " (utc(status.submitted_ms)) }
        @if let Some(study) = study { p { "The research question: " (study.short()) ", over the records of " (parties(status.parties.len())) "." } }
        @for (id, content) in &parts { (site::part(id, *id == "state", content)) }
    };
    let events = format!("/jobs/{}/events?from={from}", status.id);
    web::html(site::render(&Served {
        title: &title,
        tab: &site::tab(&title, DAEMON, usize::from(!status.awaiting_consent.is_empty())),
        parents: &[("/", "Jobs")],
        csrf: (web::CSRF_FIELD, &visitor.csrf),
        has_session: visitor.has_session(),
        events: (!over).then_some(&*events),
        body: &body,
    }))
}

fn parties(count: usize) -> String {
    if count == 1 { "one party".to_owned() } else { format!("{count} parties together") }
}

pub(in crate::dashboard) async fn events(
    State(dashboard): Shared,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    uri: Uri,
) -> Response {
    let Some(shown) = dashboard.job_registry.view(&id, &visible_jobs(&visitor)) else { return missing("There is no such job.") };
    let (from, operator) = (number_in(&uri, "from"), is_operator(&visitor));
    event_stream::stream(CHECK_INTERVAL, move || {
        let (dashboard, shown) = (Arc::clone(&dashboard), shown.clone());
        async move {
            let (parts, over) = parts(&dashboard, &shown, from, operator).await;
            now(parts, over)
        }
    })
}

pub(in crate::dashboard) async fn ask_to_cancel(
    State(dashboard): Shared,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Response {
    let Some(shown) = dashboard.job_registry.view(&id, &visible_jobs(&visitor)) else { return missing("There is no such job.") };
    let status = shown.status.borrow().clone();
    let (title, back) = (format!("Cancel {}?", plain_name(&status.name)), format!("/jobs/{}", status.id));
    let body = match status.state.has_ended() {
        true => html! { p { "The job has already ended." } p { a href=(back) { "Back to the job" } } },
        false => html! {
            p { "This ends the job of " (name(&status.analyst)) ". Its draws so far are kept, and its charges at each party remain." }
            (site::form(&format!("{back}/cancel"), (web::CSRF_FIELD, &visitor.csrf), &html! { button.danger { "Cancel this job" } " " a href=(back) { "Leave it running" } }))
        },
    };
    web::html(site::render(&Served {
        title: &title,
        tab: &site::tab(&title, DAEMON, 0),
        parents: &[("/", "Jobs"), (&back, "The job")],
        csrf: (web::CSRF_FIELD, &visitor.csrf),
        has_session: visitor.has_session(),
        events: None,
        body: &body,
    }))
}

pub(in crate::dashboard) async fn cancel(
    State(dashboard): Shared,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Response {
    let Some(shown) = dashboard.job_registry.view(&id, &visible_jobs(&visitor)) else { return missing("There is no such job.") };
    let analyst = shown.status.borrow().analyst.clone();
    let by = match &visitor.principal {
        Principal::Operator => "the operator",
        Principal::Member(name) => name,
    };
    tracing::info!(job = %id, by, "cancelled at the dashboard");
    match dashboard.job_registry.cancel(&id, &analyst).await {
        Ok(_) => web::see_other(&format!("/jobs/{id}")),
        Err(_) => missing("There is no such job."),
    }
}
