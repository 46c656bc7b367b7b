//! The addresses of the owner's pages, and the token that opens them.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use conclave_ops::web;
use conclave_pages::page;
use conclave_pages::site;
use maud::html;

use super::state::{PageState, said};
use super::warnings::Warnings;
use super::{job, overview};
use crate::config::PartyConfig;
use conclave_vault::answer::answer_timing::OwnTimes;

/// The file of the token.
const TOKEN: &str = "page-token";

/// Where the token is: in the identity folder, or beside the head file, which is there too unless the party may not write to that folder.
pub(crate) fn token_of(config: &PartyConfig) -> PathBuf {
    let kept = config.identity.join(TOKEN);
    if kept.exists() { kept } else { config.head_file.with_file_name(TOKEN) }
}

/// Every page of the party's; `times` are the running party's.
pub(crate) fn pages(config: PartyConfig, times: OwnTimes) -> Router {
    let shared = Arc::new(PageState { config, times, warnings: Warnings::default(), read: tokio::sync::Mutex::default() });
    Router::new()
        .route("/", get(overview::page))
        .route("/events", get(overview::events))
        .route("/audit.svg", get(overview::audit))
        .route("/jobs/{id}", get(job::page))
        .route("/jobs/{id}/approve", post(job::approve))
        .route("/jobs/{id}/reject", post(job::reject))
        .route("/style.css", get(|| async { web::file("text/css; charset=utf-8", page::STYLE) }))
        .route("/live.js", get(|| async { web::file("text/javascript; charset=utf-8", site::SCRIPT) }))
        .route("/favicon.ico", get(|| async { web::file("image/svg+xml", site::ICON) }))
        .fallback(|| async { said("Nothing here", &html! { p { "There is no such page." } }, web::missing) })
        .with_state(shared)
}
