//! The addresses of the owner's pages, and the token that opens them.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use conclave_ops::web;
use conclave_pages::page;
use conclave_pages::site;
use maud::html;

use super::state::{PageState, message_page};
use super::warnings::Warnings;
use super::{job, overview, statement};
use crate::config::PartyConfig;
use conclave_vault::answer::answer_timing::OwnTimes;

const TOKEN: &str = "page-token";

/// Returns the token's path: in the identity folder or, if the party can't write there, beside the head file.
pub(crate) fn token_of(config: &PartyConfig) -> PathBuf {
    let preferred = config.identity.join(TOKEN);
    if preferred.exists() { preferred } else { config.head_file.with_file_name(TOKEN) }
}

/// Returns the routes of all pages; `times` are those of the running party.
pub(crate) fn pages(config: PartyConfig, times: OwnTimes) -> Router {
    let shared = Arc::new(PageState { config, times, warnings: Warnings::default(), read: tokio::sync::Mutex::default() });
    Router::new()
        .route("/", get(overview::page))
        .route("/events", get(overview::events))
        .route("/audit.svg", get(overview::audit))
        .route("/jobs/{id}", get(job::page))
        .route("/jobs/{id}/statement", get(statement::page))
        .route("/jobs/{id}/statement.css", get(statement::style))
        .route("/jobs/{id}/approve", post(job::approve))
        .route("/jobs/{id}/reject", post(job::reject))
        .route("/style.css", get(|| async { web::file("text/css; charset=utf-8", page::STYLE) }))
        .route("/live.js", get(|| async { web::file("text/javascript; charset=utf-8", site::SCRIPT) }))
        .route("/favicon.svg", get(|| async { web::file("image/svg+xml", site::OWNER_ICON) }))
        .route("/favicon.ico", get(|| async { web::file("image/svg+xml", site::OWNER_ICON) }))
        .fallback(|| async { message_page("Not found", &html! { p { "There is no such page." } }, web::missing) })
        .with_state(shared)
}
