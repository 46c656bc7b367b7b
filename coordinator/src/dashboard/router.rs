//! Routes of the dashboard.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use conclave_ops::web;
use conclave_pages::{page, site};

use super::shared::{Dashboard, missing};
use super::watched_job::WatchedJobs;
use super::{job, list};
use crate::live::StoredChains;
use crate::party_registry::PartyRegistry;
use crate::registry::JobRegistry;

/// Builds the router of all dashboard pages.
pub(crate) fn pages(job_registry: Arc<JobRegistry>, party_registry: Arc<PartyRegistry>) -> Router {
    let dashboard =
        Arc::new(Dashboard { job_registry, party_registry, watched: WatchedJobs::default(), stored: StoredChains::default() });
    Router::new()
        .route("/", get(list::page))
        .route("/events", get(list::events))
        .route("/jobs/{id}", get(job::page))
        .route("/jobs/{id}/events", get(job::events))
        .route("/jobs/{id}/cancel", get(job::ask_to_cancel).post(job::cancel))
        .route("/style.css", get(|| async { web::file("text/css; charset=utf-8", page::STYLE) }))
        .route("/live.js", get(|| async { web::file("text/javascript; charset=utf-8", site::SCRIPT) }))
        .route("/favicon.svg", get(|| async { web::file("image/svg+xml", site::COORDINATOR_ICON) }))
        .route("/favicon.ico", get(|| async { web::file("image/svg+xml", site::COORDINATOR_ICON) }))
        .fallback(|| async { missing("There is no such page.") })
        .with_state(dashboard)
}
