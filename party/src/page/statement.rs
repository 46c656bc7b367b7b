//! The statement on a job, as a page to print.

use axum::extract::{Path, State};
use axum::response::Response;
use conclave_ops::web;
use conclave_pages::document;
use conclave_pages::page::Footer;
use maud::html;

use super::state::{Shared, message_page};
use crate::owner::{find, statement};

pub(super) async fn page(State(shared): Shared, Path(id): Path<String>) -> Response {
    let reading = move || {
        let job = find(&shared.config.ledger, &id).ok().filter(|job| job.request.job == id)?;
        let (text, at) = (statement::footer(&shared.config, &job), format!("/jobs/{id}/statement.css"));
        let blocks = statement::statement_now(&shared.config, &job).ok()?;
        Some(document::printed_page(&blocks, "/style.css", &Footer { text: &text, at: &at }))
    };
    match tokio::task::spawn_blocking(reading).await {
        Ok(Some(page)) => web::html(page),
        _ => message_page("Not found", &html! { p { "There is no statement on such a job." } }, web::missing),
    }
}

/// Returns the stylesheet of the foot of the printed pages.
pub(super) async fn style(State(shared): Shared, Path(id): Path<String>) -> Response {
    let reading = move || {
        let job = find(&shared.config.ledger, &id).ok().filter(|job| job.request.job == id)?;
        Some(Footer { text: &statement::footer(&shared.config, &job), at: "" }.style())
    };
    match tokio::task::spawn_blocking(reading).await {
        Ok(Some(style)) => web::style(style),
        _ => message_page("Not found", &html! { p { "There is no such job." } }, web::missing),
    }
}
