//! The coordinator: takes in analysts' jobs, asks the parties, runs the chains, keeps the draws.
//!
//! Nothing here ever sees a record. What it holds (proposals, noised integers, decisions) is what every outsider of a
//! party is taken to see, and is worth protecting from loss, not from reading.
//!
//! - [`server`]: gRPC over mutual TLS. [`hub`]: who is attached, and whose words go to which job.
//! - [`book`]: all jobs. [`driver`]: one job's task. [`store`]: jobs and the iteration log, in SQLite.
//! - [`dashboard`]: pages for people. [`live`]: what they and `conclave watch` show of chains.
//! - [`zarr`]: draws as they come. [`result`]: the finished run's object.
#![forbid(unsafe_code)]

mod book;
mod check;
mod cli;
mod config;
mod dashboard;
mod driver;
mod error;
mod health;
mod hub;
mod live;
mod meters;
mod operations;
mod outbox;
pub mod result;
mod server;
#[cfg(feature = "test-util")]
pub mod simulated;
pub mod spending;
mod status;
mod store;
pub mod zarr;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;

pub use cli::cli_main;
pub use config::Config;
pub use error::RunError;

use book::Book;
use driver::Surroundings;
use health::Health;
use hub::Hub;
use operations::Prepared;
use server::Credentials;
use store::{Store, StoreError};

/// How long connections may take to end once the coordinator stops.
const GRACE: Duration = Duration::from_secs(5);

/// A coordinator that listens and has taken up its unfinished jobs, but does not serve yet.
pub struct Coordinator {
    listener: TcpListener,
    address: SocketAddr,
    credentials: Arc<Credentials>,
    book: Arc<Book>,
    surroundings: Surroundings,
    operations: Prepared,
}

impl Coordinator {
    /// Loads the identity, locks and reads the store, binds the address.
    ///
    /// # Errors
    /// [`RunError`], naming the file or the address.
    pub async fn open(config: &Config) -> Result<Self, RunError> {
        let credentials = Arc::new(load_credentials(config)?);
        let (store, loaded) = Store::open(&config.store).map_err(|e| match e {
            StoreError::Foreign { .. } => RunError::Input(e.to_string()),
            e => RunError::System(e.to_string()),
        })?;
        std::fs::create_dir_all(&config.draws)
            .map_err(|e| RunError::Input(format!("`draws` = {}: {e}", config.draws.display())))?;
        // Absolute, so that the path in a result means something wherever it is read.
        let draws = std::path::absolute(&config.draws).unwrap_or_else(|_| config.draws.clone());
        let unusable = |e: std::io::Error| RunError::System(format!("can't listen on {}: {e}", config.listen));
        let listener = TcpListener::bind(config.listen).await.map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        let operations = Prepared::new(config).await?;
        let hub = Arc::new(Hub::with_heads(loaded.parties, loaded.heads));
        let surroundings = Surroundings { hub, store, meters: Arc::default(), limits: driver::Limits::default() };
        let book = Arc::new(Book::open(surroundings.clone(), draws, loaded.jobs, true));
        Ok(Self { listener, address, credentials, book, surroundings, operations })
    }

    /// The address that it listens on, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` resolves; then parties and watchers are told, draws are put on disk and the store is
    /// closed. Unfinished jobs go on at the next start.
    ///
    /// # Errors
    /// A server that can't be set up or fails.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
        let (stop, stopping) = watch::channel(false);
        let Self { listener, address, credentials, book, surroundings, operations } = self;
        let store = surroundings.store.clone();
        let (reporter, health_service) = tonic_health::server::health_reporter();
        let health = Health { book: Arc::clone(&book), store: store.clone(), stopping: stopping.clone() };
        let operations = operations.show(surroundings.clone(), health, reporter, address, Arc::clone(&credentials));
        let mut stopped = stopping.clone();
        let until_stopped = async move { server::stopped(&mut stopped).await };
        let server =
            server::serve(listener, credentials, Arc::clone(&book), surroundings, stopping, health_service, until_stopped);
        tokio::pin!(server);
        let outcome = tokio::select! {
            outcome = &mut server => outcome,
            () = shutdown => {
                tracing::info!("stopping");
                book.close().await;
                stop.send_replace(true);
                // Whoever holds a connection open longer is cut off.
                tokio::time::timeout(GRACE, &mut server).await.unwrap_or(Ok(()))
            }
        };
        book.close().await;
        operations.end().await;
        let closed = tokio::task::spawn_blocking(move || store.close()).await;
        closed.map_err(|e| RunError::System(format!("the store was not closed: {e}")))?;
        outcome
    }
}

/// Opens a coordinator and serves until `shutdown` resolves. `ready` hears the address once it listens.
///
/// # Errors
/// [`RunError`].
pub async fn run(config: &Config, ready: impl FnOnce(SocketAddr), shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
    let coordinator = Coordinator::open(config).await?;
    ready(coordinator.address());
    coordinator.serve(shutdown).await
}

fn load_credentials(config: &Config) -> Result<Credentials, RunError> {
    Credentials::load(&config.identity, config.revoked.as_deref())
}
