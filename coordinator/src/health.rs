//! Health of the coordinator, reported to peers by gRPC and to its operator by HTTP and a file.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use conclave_ops::disk;
use conclave_ops::files::parent_folder;
use conclave_ops::state::is_on_read_only_disk;
use conclave_proto::{OLDEST_PROTOCOL, PROTOCOL, protocol_service};
use tokio::sync::watch;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use crate::registry::JobRegistry;
use crate::store::{Store, StoreError};

/// Interval between checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Returns the reason why a coordinator on a read-only file system does not serve.
pub(crate) fn read_only(folder: &Path) -> String {
    format!("the file system of {} is mounted read-only: repair its disk, and mount it for writing", folder.display())
}

/// Inputs of the health check: whether the store and the draws can be written, and whether the coordinator is stopping.
#[derive(Debug, Clone)]
pub(crate) struct Health {
    pub(crate) job_registry: Arc<JobRegistry>,
    pub(crate) store: Store,
    pub(crate) stopping: watch::Receiver<bool>,
}

impl Health {
    /// Checks that jobs are accepted and run at this moment.
    ///
    /// # Errors
    /// A short reason why not.
    pub(crate) fn now(&self) -> Result<(), String> {
        if *self.stopping.borrow() || self.job_registry.is_closed() {
            return Err("the coordinator is stopping".to_owned());
        }
        self.store.check().map_err(|failure| failure.to_string())?;
        let draws = self.job_registry.draws_folder();
        match (is_on_read_only_disk(self.store.path()), disk::is_read_only(draws)) {
            (true, _) => return Err(read_only(parent_folder(self.store.path()))),
            (false, true) => return Err(read_only(draws)),
            (false, false) => {}
        }
        self.job_registry.waits_for_operator().map_or(Ok(()), Err)
    }

    /// Returns true if the coordinator is halted and must not be stopped: its store's file is gone from its place, and only this process
    /// still holds what it has written.
    pub(crate) fn must_not_stop(&self) -> bool {
        matches!(self.store.check(), Err(StoreError::Moved { .. }))
    }

    /// Keeps gRPC's health service up to date for each of `services` and for the server as a whole, whose name is empty. Ends
    /// once the coordinator stops, because it does not serve again.
    pub(crate) async fn report(mut self, reporter: HealthReporter, services: [&'static str; 2]) {
        // By this status a member learns, before it attaches, whether both ends speak a common protocol.
        for protocol in OLDEST_PROTOCOL..=PROTOCOL {
            reporter.set_service_status(protocol_service(protocol), ServingStatus::Serving).await;
        }
        let mut shown = None;
        loop {
            let serving = self.now().is_ok();
            if shown != Some(serving) {
                let status = if serving { ServingStatus::Serving } else { ServingStatus::NotServing };
                for service in [""].into_iter().chain(services) {
                    reporter.set_service_status(service, status).await;
                }
                shown = Some(serving);
            }
            if *self.stopping.borrow() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
                stopped = self.stopping.changed() => if stopped.is_err() { return },
            }
        }
    }
}
