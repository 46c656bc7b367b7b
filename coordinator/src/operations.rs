//! Monitoring beside the coordinator's work: metrics page, dashboard, health and state file.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use conclave_ops::Endpoint;
use conclave_ops::state::{self, StateFile};
use conclave_ops::web::{HealthCheck, Site, Transport};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tonic_health::server::HealthReporter;

use crate::clock::now_ms;
use crate::config::Config;
use crate::dashboard;
use crate::driver::DriverContext;
use crate::error::RunError;
use crate::health::Health;
use crate::metrics_page::CoordinatorPage;
use crate::retention;
use crate::server::{self, Credentials};

/// Listeners that are bound before the coordinator serves.
pub(crate) struct Prepared {
    endpoint: Option<Endpoint>,
    site: Option<Site>,
    config: Config,
}

impl Prepared {
    /// Binds the addresses of metrics and dashboard, if configured.
    ///
    /// # Errors
    /// An address that can't be bound.
    pub(crate) async fn new(config: &Config) -> Result<Self, RunError> {
        let endpoint = match config.ops.metrics {
            Some(address) => Some(Endpoint::bind(address).await.map_err(RunError::System)?),
            None => None,
        };
        let site = match config.dashboard {
            Some(address) => {
                let transport = if config.dashboard_tls { Transport::Tls } else { Transport::Plain };
                let bound = Site::bind("dashboard", address, &config.dashboard_token, &config.dashboard_hosts, transport).await;
                Some(bound.map_err(RunError::System)?)
            }
            None => None,
        };
        Ok(Self { endpoint, site, config: config.clone() })
    }

    /// Starts the monitoring tasks.
    pub(crate) fn show(
        self,
        context: DriverContext,
        health: Health,
        reporter: HealthReporter,
        address: SocketAddr,
        credentials: Arc<Credentials>,
    ) -> Operations {
        let mut tasks = JoinSet::new();
        match StateFile::hold(&state::path_of(&self.config.store)) {
            Ok(file) => drop(tasks.spawn(announce(file, health.clone(), address))),
            Err(error) => {
                tracing::warn!(%error, "the state file can't be locked: `health` will not know that this coordinator runs")
            }
        }
        tasks.spawn(retention::watch(self.config.clone()));
        if let Some(site) = self.site {
            let (pages, health) = (dashboard::pages(health.job_registry.clone(), context.party_registry.clone()), health.clone());
            let healthy: HealthCheck = Arc::new(move || health.now().is_ok());
            match site.transport() {
                Transport::Plain => drop(tasks.spawn(site.serve(pages, healthy))),
                Transport::Tls => {
                    let (listener, page_connections) = site.into_parts(pages, healthy);
                    tasks.spawn(server::serve_pages(listener, page_connections, credentials));
                }
            }
        }
        if let Some(endpoint) = self.endpoint {
            let page = CoordinatorPage {
                job_registry: health.job_registry.clone(),
                context,
                health: health.clone(),
                certificate: self.config.identity.join("certificate.pem"),
                draws: self.config.draws,
                store: self.config.store,
                started: SystemTime::now(),
            };
            tasks.spawn(endpoint.serve(Arc::new(page)));
        }
        tasks.spawn(health.report(reporter, server::SERVICES));
        Operations(tasks)
    }
}

/// Tasks that run beside the coordinator's work.
pub(crate) struct Operations(JoinSet<()>);

impl Operations {
    /// Ends the tasks; none of them holds the store afterwards.
    pub(crate) async fn end(mut self) {
        self.0.shutdown().await;
    }
}

/// Interval at which a running coordinator updates its state file.
const ANNOUNCE: Duration = Duration::from_secs(5);
/// Age of the state file from which the coordinator counts as hung.
const SILENT_MS: i64 = 30_000;

/// Content of `<store>.state`, written by a running coordinator.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct State {
    /// Process id.
    pub(crate) pid: u32,
    /// Listening address.
    pub(crate) address: SocketAddr,
    /// Reason why it does not serve.
    pub(crate) problem: Option<String>,
    /// Time of writing, Unix time in milliseconds.
    pub(crate) said_ms: i64,
}

async fn announce(mut file: StateFile, health: Health, address: SocketAddr) {
    let mut tick = tokio::time::interval(ANNOUNCE);
    loop {
        tick.tick().await;
        let state = State { pid: std::process::id(), address, problem: health.now().err(), said_ms: now_ms() };
        if let Err(error) = file.write(&state) {
            tracing::debug!(%error, "the state file can't be written");
        }
    }
}

/// Health of the coordinator on this store; `Ok` if it serves.
///
/// # Errors
/// [`HealthProblem`], with a message.
pub(crate) fn health_of(store: &Path) -> Result<State, HealthProblem> {
    match state::read::<State>(&state::path_of(store)) {
        None => Err(HealthProblem::NotRunning(format!("no coordinator runs on {}", store.display()))),
        Some(None) => Err(HealthProblem::NotServing("a coordinator runs, but has not written its state yet".to_owned())),
        Some(Some(State { problem: Some(problem), .. })) => Err(HealthProblem::NotServing(problem)),
        Some(Some(state)) if now_ms() - state.said_ms > SILENT_MS => {
            let seconds = (now_ms() - state.said_ms) / 1000;
            Err(HealthProblem::NotServing(format!(
                "the coordinator, process {}, has not updated its state for {seconds} s",
                state.pid
            )))
        }
        Some(Some(state)) => Ok(state),
    }
}

/// Reason why a coordinator can't be used.
#[derive(Debug)]
pub(crate) enum HealthProblem {
    /// No coordinator runs.
    NotRunning(String),
    /// A coordinator runs, but does not serve.
    NotServing(String),
}
