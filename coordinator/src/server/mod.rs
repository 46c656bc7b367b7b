//! The gRPC server: the link to parties and the analysts' calls, over mutual TLS alone.

mod files;
mod jobs;
mod link;
mod log;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use conclave_proto::FILE_DESCRIPTOR_SET;
use conclave_proto::v1::jobs_server::{self, JobsServer};
use conclave_proto::v1::link_server::{self, LinkServer};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_stream::StreamExt;
use tonic::transport::{Server, ServerTlsConfig, server::TcpIncoming};
use tonic_health::pb::health_server::{Health, HealthServer};

use crate::book::Book;
use crate::driver::Surroundings;
use crate::error::RunError;

/// A party's frame holds one number per chain; an analyst's request holds a job file.
const MAX_REQUEST_BYTES: usize = 1 << 20;
const MAX_STREAMS_PER_CONNECTION: u32 = 64;
const MAX_HEADER_BYTES: u32 = 16 << 10;
const KEEPALIVE: Duration = Duration::from_secs(20);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// The services whose health is told.
pub(crate) const SERVICES: [&str; 2] = [link_server::SERVICE_NAME, jobs_server::SERVICE_NAME];

/// Serves until `shutdown` resolves and every stream has ended. `stopping` tells long streams to end.
///
/// # Errors
/// TLS or reflection that can't be set up, a listener that fails.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: ServerTlsConfig,
    book: Arc<Book>,
    surroundings: Surroundings,
    stopping: watch::Receiver<bool>,
    health: HealthServer<impl Health>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let system = |e: &dyn std::fmt::Display| RunError::System(format!("the server could not be set up: {e}"));
    let meters = Arc::clone(&surroundings.meters);
    let link = LinkServer::new(link::LinkService::new(Arc::clone(&book), surroundings.clone(), stopping.clone()))
        .max_decoding_message_size(MAX_REQUEST_BYTES);
    let jobs = JobsServer::new(jobs::JobsService::new(book, surroundings, stopping)).max_decoding_message_size(MAX_REQUEST_BYTES);
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .build_v1()
        .map_err(|e| system(&e))?;
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true)).map(move |connection| {
        meters.connection();
        connection
    });
    Server::builder()
        .tls_config(tls)
        .map_err(|e| system(&e))?
        .max_concurrent_streams(MAX_STREAMS_PER_CONNECTION)
        .http2_max_header_list_size(MAX_HEADER_BYTES)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .add_service(link)
        .add_service(jobs)
        .add_service(health)
        .add_service(reflection)
        .serve_with_incoming_shutdown(incoming, shutdown)
        .await
        .map_err(|e| RunError::System(format!("the server failed: {e}")))
}

/// Resolves when the coordinator stops.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, and with it whoever could stop anything.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}
