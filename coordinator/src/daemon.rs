//! The coordinator's life cycle: open, serve, stop.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use conclave_ops::files::create_private_folder;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::config::Config;
use crate::driver::{DriverContext, Limits};
use crate::error::RunError;
use crate::health::Health;
use crate::operations::Prepared;
use crate::party_registry::PartyRegistry;
use crate::registry::JobRegistry;
use crate::server::{Credentials, serve, stopped};
use crate::store::{Store, StoreError};

/// Time that connections have to end once the coordinator stops.
const GRACE: Duration = Duration::from_secs(5);

/// A coordinator that listens and has resumed its unfinished jobs, but does not serve yet.
pub struct Coordinator {
    listener: TcpListener,
    address: SocketAddr,
    credentials: Arc<Credentials>,
    job_registry: Arc<JobRegistry>,
    context: DriverContext,
    operations: Prepared,
}

impl Coordinator {
    /// Loads the identity, locks and reads the store, and binds the address.
    ///
    /// # Errors
    /// [`RunError`], naming the file or the address.
    pub async fn open(config: &Config) -> Result<Self, RunError> {
        let credentials = Arc::new(Credentials::of(config)?);
        let (store, loaded) = Store::open(&config.store).map_err(|e| match e {
            StoreError::Foreign { .. } => RunError::Input(e.to_string()),
            e => RunError::System(e.to_string()),
        })?;
        create_private_folder(&config.draws)
            .map_err(|e| RunError::Input(format!("`draws` = {}: {e}", config.draws.display())))?;
        // Absolute, so that the path in a result is valid in any working directory.
        let draws = std::path::absolute(&config.draws).unwrap_or_else(|_| config.draws.clone());
        let unusable = |e: std::io::Error| RunError::System(format!("can't listen on {}: {e}", config.listen));
        let listener = TcpListener::bind(config.listen).await.map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        let operations = Prepared::new(config).await?;
        let party_registry = PartyRegistry::with_checkpoints(loaded.parties, loaded.checkpoints)
            .with_certificates(loaded.certificates)
            .with_software(loaded.software);
        let party_registry = Arc::new(party_registry);
        let context = DriverContext { party_registry, store, counters: Arc::default(), limits: Limits::default() };
        let job_registry = JobRegistry::open(context.clone(), draws, loaded.jobs, true, config.bounds);
        Ok(Self { listener, address, credentials, job_registry, context, operations })
    }

    /// The listening address, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` resolves; then notifies parties and watchers, writes the draws to disk and closes the store.
    /// Unfinished jobs resume at the next start.
    ///
    /// # Errors
    /// A server that can't be set up, or that fails.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
        let (stop, stopping) = watch::channel(false);
        let Self { listener, address, credentials, job_registry, context, operations } = self;
        let store = context.store.clone();
        let (reporter, health_service) = tonic_health::server::health_reporter();
        let health = Health { job_registry: Arc::clone(&job_registry), store: store.clone(), stopping: stopping.clone() };
        let operations = operations.show(context.clone(), health, reporter, address, Arc::clone(&credentials));
        let mut stop_signal = stopping.clone();
        let until_stopped = async move { stopped(&mut stop_signal).await };
        let server = serve(listener, credentials, Arc::clone(&job_registry), context, stopping, health_service, until_stopped);
        tokio::pin!(server);
        let outcome = tokio::select! {
            outcome = &mut server => outcome,
            () = shutdown => {
                tracing::info!("stopping");
                job_registry.close().await;
                stop.send_replace(true);
                // Connections that are still open after this time are cut.
                tokio::time::timeout(GRACE, &mut server).await.unwrap_or(Ok(()))
            }
        };
        job_registry.close().await;
        operations.end().await;
        let closed = tokio::task::spawn_blocking(move || store.close()).await;
        closed.map_err(|e| RunError::System(format!("the store was not closed: {e}")))?;
        outcome
    }
}

/// Opens a coordinator and serves until `shutdown` resolves. Calls `ready` with the address once it listens.
///
/// # Errors
/// [`RunError`].
pub async fn run(config: &Config, ready: impl FnOnce(SocketAddr), shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
    let coordinator = Coordinator::open(config).await?;
    ready(coordinator.address());
    coordinator.serve(shutdown).await
}
