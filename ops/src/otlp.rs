//! Export of traces to a collector, by OTLP over gRPC. Only spans of the target [`EXPORTED`] are sent; log lines never are.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::LookupSpan;

use crate::daemon::{Daemon, EXPORTED};

/// Timeout of a batch, which is dropped after it.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The exporter of traces, which sends the remaining traces when it ends.
#[derive(Debug)]
pub(crate) struct Sender(SdkTracerProvider);

impl Sender {
    pub(crate) fn end(self) {
        if let Err(error) = self.0.shutdown_with_timeout(TIMEOUT) {
            tracing::debug!(%error, "the last traces were not sent");
        }
    }
}

/// Builds the layer that exports spans. It needs a Tokio runtime for the connection to the collector.
///
/// # Errors
/// A message that names the key.
pub(crate) fn layer<S>(endpoint: &str, daemon: &Daemon<'_>) -> Result<(impl Layer<S> + use<S>, Sender), String>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
{
    let exporter = SpanExporter::builder().with_tonic().with_endpoint(endpoint).with_timeout(TIMEOUT).build();
    let exporter = exporter.map_err(|e| format!("`otlp` = {endpoint:?} is unusable: {e}"))?;
    let instance = KeyValue::new("service.instance.id", daemon.name.to_owned());
    let resource = Resource::builder_empty().with_service_name(daemon.service).with_attribute(instance).build();
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
    // Spans carry neither source lines nor threads nor their busy time, which would reveal the duration of computations.
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer(daemon.service))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_target(false)
        .with_filter(Targets::new().with_target(EXPORTED, Level::INFO));
    Ok((layer, Sender(provider)))
}
