//! The gRPC server: its services, their limits, and the roles that may call them.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use conclave_proto::identity::{self, Role};
use conclave_proto::v1::jobs_server::{self, JobsServer};
use conclave_proto::v1::link_server::{self, LinkServer};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::{Request, Status};
use tonic_health::pb::health_server::{Health, HealthServer};
#[cfg(feature = "reflection")]
use tonic_reflection::server::Builder;

use super::accept::accept;
use super::credentials::Credentials;
use super::jobs::JobsService;
use super::link::LinkService;
use crate::driver::DriverContext;
use crate::error::RunError;
use crate::registry::JobRegistry;

/// Maximum request: a job file. A longer message is refused by its length, before any of it is stored.
const MAX_REQUEST_BYTES: usize = 1 << 20;
/// Maximum frame of a party: one number per chain, or a paragraph.
const MAX_FRAME_BYTES: usize = 64 << 10;
const MAX_STREAMS_PER_CONNECTION: u32 = 32;
const MAX_HEADER_BYTES: u32 = 16 << 10;
const MAX_HTTP2_FRAME_BYTES: u32 = 16 << 10;
/// Unread bytes in flight to the server, on one stream and on all streams of a connection.
const STREAM_WINDOW_BYTES: u32 = 64 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 256 << 10;
/// Streams that a peer may open and reset, or fail, before its connection is ended.
const MAX_RESET_STREAMS: usize = 20;
/// Time limit for receiving and answering a request; a stream of replies may last as long as it likes.
const REQUEST_WITHIN: Duration = Duration::from_secs(120);
const KEEPALIVE: Duration = Duration::from_secs(20);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// Services whose health is reported.
pub(crate) const SERVICES: [&str; 2] = [link_server::SERVICE_NAME, jobs_server::SERVICE_NAME];

/// Serves until `shutdown` resolves and every stream has ended. `stopping` makes long streams end.
///
/// # Errors
/// TLS or reflection that can't be set up; a listener that fails.
pub(crate) async fn serve(
    listener: TcpListener,
    credentials: Arc<Credentials>,
    job_registry: Arc<JobRegistry>,
    context: DriverContext,
    stopping: watch::Receiver<bool>,
    health: HealthServer<impl Health>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let system = |e: &dyn std::fmt::Display| RunError::System(format!("the server could not be set up: {e}"));
    let (counters, party_registry) = (Arc::clone(&context.counters), Arc::clone(&context.party_registry));
    let link = LinkServer::new(LinkService::new(Arc::clone(&job_registry), context.clone(), stopping.clone()))
        .max_decoding_message_size(MAX_FRAME_BYTES);
    let jobs = JobsServer::new(JobsService::new(job_registry, context, stopping)).max_decoding_message_size(MAX_REQUEST_BYTES);
    // Roles are checked before a request's body is read, so that no large body of another role is awaited.
    let link = InterceptedService::new(link, only(Role::Party));
    let jobs = InterceptedService::new(jobs, only(Role::Analyst));
    let _watch = credentials.watch(party_registry).map_err(|e| system(&e))?;
    let services = Server::builder()
        .timeout(REQUEST_WITHIN)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(MAX_HTTP2_FRAME_BYTES)
        .http2_max_pending_accept_reset_streams(Some(MAX_RESET_STREAMS))
        .http2_max_local_error_reset_streams(Some(MAX_RESET_STREAMS))
        .max_concurrent_streams(MAX_STREAMS_PER_CONNECTION)
        .http2_max_header_list_size(MAX_HEADER_BYTES)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .add_service(link)
        .add_service(jobs)
        .add_service(health);
    #[cfg(feature = "reflection")]
    let services = {
        let (v1, v1alpha) = (reflection().build_v1(), reflection().build_v1alpha());
        services.add_service(v1.map_err(|e| system(&e))?).add_service(v1alpha.map_err(|e| system(&e))?)
    };
    services
        .serve_with_incoming_shutdown(accept(listener, credentials, counters), shutdown)
        .await
        .map_err(|e| RunError::System(format!("the server failed: {e}")))
}

/// Describes the services to gRPC clients that ask for reflection, in its stable version or in the older one that most tools speak.
#[cfg(feature = "reflection")]
fn reflection() -> Builder<'static> {
    Builder::configure()
        .register_encoded_file_descriptor_set(conclave_proto::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET)
        .include_reflection_service(false)
}

/// Lets requests of one role through.
fn only(role: Role) -> impl Fn(Request<()>) -> Result<Request<()>, Status> + Clone {
    move |request| {
        identity::of_request(&request)?.require(role)?;
        Ok(request)
    }
}
