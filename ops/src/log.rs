//! The log: on standard error, filtered by `RUST_LOG`, as text or as JSON lines. Beside it, where asked for, traces.

use std::io::IsTerminal;

use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};
use tracing_subscriber::util::SubscriberInitExt;

use crate::daemon::Daemon;
use crate::log_format::LogFormat;
use crate::settings::Settings;

/// Written where `RUST_LOG` says nothing.
const DEFAULT_FILTER: &str = "info";

/// The running log; [`Logs::end`] sends what a collector has not got yet.
#[derive(Debug, Default)]
pub struct Logs {
    #[cfg(feature = "otlp")]
    traces: Option<crate::otlp::Sender>,
}

impl Logs {
    /// Starts the process's log, and traces where `settings` name a collector; needs a Tokio runtime then. A caller that has set
    /// up its own log keeps it.
    ///
    /// # Errors
    /// A sentence that names the key: a collector's address that can't be used.
    pub fn start(settings: &Settings, daemon: &Daemon<'_>) -> Result<Self, String> {
        // A second start in one process is no fault: the first one's log goes on.
        #[cfg(feature = "otlp")]
        if let Some(endpoint) = &settings.otlp {
            let (layer, traces) = crate::otlp::layer(endpoint, daemon)?;
            let _ = Registry::default().with(lines(settings.log)).with(layer).try_init();
            tracing::info!("traces go to {endpoint}");
            return Ok(Self { traces: Some(traces) });
        }
        let _ = daemon;
        let _ = Registry::default().with(lines(settings.log)).try_init();
        Ok(Self::default())
    }

    /// Ends traces. It waits for the collector, so not on a thread that the runtime needs; the runtime must still be there.
    pub fn end(self) {
        #[cfg(feature = "otlp")]
        if let Some(traces) = self.traces {
            traces.end();
        }
    }
}

/// The layer that writes lines.
fn lines<S>(format: LogFormat) -> impl Layer<S>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
{
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(DEFAULT_FILTER));
    let stderr = std::io::stderr;
    let layer = tracing_subscriber::fmt::layer().with_writer(stderr).with_ansi(stderr().is_terminal()).with_target(false);
    let layer: Box<dyn Layer<S> + Send + Sync> = match format {
        LogFormat::Plain => layer.boxed(),
        LogFormat::Json => layer.json().flatten_event(true).with_target(true).boxed(),
    };
    layer.with_filter(filter)
}
