//! Monitoring beside the coordinator's work: metrics page, dashboard, health and state file.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use conclave_ops::Endpoint;
use conclave_ops::files::parent_folder;
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
use crate::health::{Health, read_only};
use crate::metrics_page::CoordinatorPage;
use crate::retention;
use crate::retired;
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
        tasks.spawn(retired::watch(self.config.store.clone(), Arc::clone(&health.job_registry)));
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
const ANNOUNCE: Duration = Duration::from_secs(2);
/// Age of the state file from which the coordinator counts as hung.
const SILENT_MS: i64 = 30_000;
/// Age of the state file from which a read-only file system is its cause.
const UNWRITTEN_MS: i64 = 3_000;

/// Content of `<store>.state`, written by a running coordinator.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct State {
    /// Process id.
    pub(crate) pid: u32,
    /// Listening address.
    pub(crate) address: SocketAddr,
    /// Reason why it does not serve.
    pub(crate) problem: Option<String>,
    /// It must not be stopped: only its process still holds what it has written.
    #[serde(default)]
    pub(crate) must_not_stop: bool,
    /// Time of writing, Unix time in milliseconds.
    pub(crate) said_ms: i64,
}

async fn announce(mut file: StateFile, health: Health, address: SocketAddr) {
    let mut tick = tokio::time::interval(ANNOUNCE);
    loop {
        tick.tick().await;
        let (problem, must_not_stop) = (health.now().err(), health.must_not_stop());
        let state = State { pid: std::process::id(), address, problem, must_not_stop, said_ms: now_ms() };
        if let Err(error) = file.write(&state) {
            tracing::debug!(%error, "the state file can't be written");
        }
    }
}

/// The state of the coordinator on a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It serves.
    Serving,
    /// It runs and does not serve: it starts or stops, or its operator has to remove an obstacle. A stop is harmless.
    NotServing,
    /// It has halted and must not be stopped: only its process still holds what it has written.
    Halted,
    /// It has not updated its state for a while.
    Hung,
    /// None runs.
    NotRunning,
}

impl Standing {
    /// Returns the name in the output of `health`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::NotServing => "not serving",
            Self::Halted => "halted, do not stop",
            Self::Hung => "hung",
            Self::NotRunning => "not running",
        }
    }

    /// Returns true if a restart would help nothing, or would harm: liveness.
    pub(crate) fn is_alive(self) -> bool {
        matches!(self, Self::Serving | Self::NotServing | Self::Halted)
    }
}

/// Returns the process id of the coordinator that runs on this store.
pub(crate) fn running_pid(store: &Path) -> Option<u32> {
    state::read::<State>(&state::path_of(store)).flatten().map(|state| state.pid)
}

/// Returns the state of the coordinator on this store, with a message.
pub(crate) fn health_of(store: &Path) -> (Standing, String) {
    let state = state::read::<State>(&state::path_of(store));
    health_at(store, state, now_ms(), state::is_on_read_only_disk(store))
}

fn health_at(store: &Path, state: Option<Option<State>>, now_ms: i64, is_read_only: bool) -> (Standing, String) {
    let Some(state) = state else { return (Standing::NotRunning, format!("no coordinator runs on {}", store.display())) };
    let Some(state) = state else {
        return (Standing::NotServing, "a coordinator runs, but has not written its state yet".to_owned());
    };
    let silent = now_ms.saturating_sub(state.said_ms);
    // A hung process that has halted before still holds what it has written.
    match state.problem {
        Some(problem) if state.must_not_stop => (Standing::Halted, problem),
        // Its state file lies beside the store, so that it cannot report this itself.
        _ if is_read_only && silent > UNWRITTEN_MS => (Standing::NotServing, read_only(parent_folder(store))),
        _ if silent > SILENT_MS => {
            let words = format!("the coordinator, process {}, has not updated its state for {} s", state.pid, silent / 1000);
            (Standing::Hung, words)
        }
        Some(problem) => (Standing::NotServing, problem),
        None => (Standing::Serving, format!("serving on {}, process {}", state.address, state.pid)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A liveness check that fails restarts the process. So it fails for a hung coordinator alone, and never for a halted one.
    #[test]
    fn a_halted_coordinator_is_alive_and_a_hung_one_is_not() {
        let on = |is_read_only: bool, problem: Option<&str>, must_not_stop, silent_ms: i64| {
            let problem = problem.map(str::to_owned);
            let state = State { pid: 1, address: "127.0.0.1:1".parse().unwrap(), problem, must_not_stop, said_ms: -silent_ms };
            health_at(Path::new("c.sqlite"), Some(Some(state)), 0, is_read_only).0
        };
        let state = |problem, must_not_stop, silent_ms| on(false, problem, must_not_stop, silent_ms);
        let full = Some("the disk is full");
        let cases = [
            (state(None, false, SILENT_MS), Standing::Serving, true),
            (state(full, false, 0), Standing::NotServing, true),
            (state(full, true, 0), Standing::Halted, true),
            (state(full, true, 10 * SILENT_MS), Standing::Halted, true),
            (state(None, false, SILENT_MS + 1), Standing::Hung, false),
            (state(full, false, SILENT_MS + 1), Standing::Hung, false),
            // A coordinator that still writes its state is on another file system than the one seen here.
            (on(true, None, false, UNWRITTEN_MS), Standing::Serving, true),
            (on(true, None, false, UNWRITTEN_MS + 1), Standing::NotServing, true),
            (on(true, None, false, SILENT_MS + 1), Standing::NotServing, true),
            (on(true, full, true, SILENT_MS + 1), Standing::Halted, true),
        ];
        for (found, expected, is_alive) in cases {
            assert_eq!((found, found.is_alive()), (expected, is_alive));
        }
        assert!(health_at(Path::new("c.sqlite"), Some(None), 0, false).0.is_alive());
        assert!(!health_at(Path::new("c.sqlite"), None, 0, false).0.is_alive());
        // A state that an earlier version has written names no halt.
        let earlier = r#"{"pid":1,"address":"127.0.0.1:1","problem":"x","said_ms":0}"#;
        assert!(!serde_json::from_str::<State>(earlier).unwrap().must_not_stop);
    }
}
