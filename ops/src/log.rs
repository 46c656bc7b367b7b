//! The log: on standard error, filtered by `RUST_LOG`, as text or as JSON lines. Beside it, where asked for, traces.

use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};
use tracing_subscriber::util::SubscriberInitExt;

use crate::daemon::Daemon;
use crate::log_format::LogFormat;
use crate::settings::Settings;

/// Written where `RUST_LOG` says nothing, or nothing that is a filter.
const DEFAULT_LEVEL: LevelFilter = LevelFilter::INFO;

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

/// The filter of log lines: levels by target, such as `info` or `warn,conclave_party=debug`, separated by commas.
fn filter(written: Option<&str>) -> Targets {
    let directives = |text: &str| text.split(',').filter(|part| !part.is_empty()).collect::<Vec<_>>().join(",");
    let read = written.and_then(|text| directives(text).parse().ok());
    read.unwrap_or_else(|| Targets::new().with_default(DEFAULT_LEVEL))
}

/// The layer that writes lines.
fn lines<S>(format: LogFormat) -> impl Layer<S>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
{
    let filter = filter(std::env::var("RUST_LOG").ok().as_deref());
    let stderr = std::io::stderr;
    let layer = tracing_subscriber::fmt::layer().with_writer(stderr).with_ansi(stderr().is_terminal()).with_target(false);
    let layer: Box<dyn Layer<S> + Send + Sync> = match format {
        LogFormat::Plain => layer.boxed(),
        LogFormat::Json => layer.json().flatten_event(true).with_target(true).boxed(),
    };
    layer.with_filter(filter)
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_filter_sets_levels_by_target() {
        let of = |written| filter(Some(written));
        assert_eq!(filter(None), Targets::new().with_default(LevelFilter::INFO));
        assert_eq!([of("no=such=filter"), of("party=loud"), of("info,")], [filter(None), filter(None), filter(None)]);
        assert_eq!(of(""), Targets::new().with_default(LevelFilter::ERROR));
        let by_target = of("info,conclave_party=debug,h2=off");
        assert!(by_target.would_enable("conclave_party::link", &Level::DEBUG));
        assert!(!by_target.would_enable("conclave_coordinator", &Level::DEBUG));
        assert!(by_target.would_enable("conclave_coordinator", &Level::INFO));
        assert!(!by_target.would_enable("h2::proto", &Level::ERROR));
    }
}
