//! The log: on standard error, filtered by `RUST_LOG`, as text or as JSON lines. Beside it, where asked for, traces.

use std::io::Write;

use conclave_common::text;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};
use tracing_subscriber::util::SubscriberInitExt;

use crate::daemon::Daemon;
use crate::log_format::LogFormat;
use crate::settings::Settings;
use crate::terminal::{self, Shown};

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
    written(format, std::io::stderr).with_filter(filter)
}

/// Lines in this form on `writer`: what came from outside acts on no terminal and makes no line of its own. Without colours, which are
/// escapes like those of a stranger.
fn written<S, W>(format: LogFormat, writer: fn() -> W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    W: Write + 'static,
{
    let show: fn(&str) -> String = match format {
        LogFormat::Plain => line,
        LogFormat::Json => terminal::json,
    };
    let layer =
        tracing_subscriber::fmt::layer().with_writer(move || Shown { to: writer(), show }).with_ansi(false).with_target(false);
    match format {
        LogFormat::Plain => layer.boxed(),
        LogFormat::Json => layer.json().flatten_event(true).with_target(true).boxed(),
    }
}

/// An event is written at once, and is one line.
fn line(event: &str) -> String {
    text::one_line(event.strip_suffix('\n').unwrap_or(event)) + "\n"
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Mutex;

    use tracing::Level;

    use super::*;

    static WRITTEN: Mutex<Vec<u8>> = Mutex::new(Vec::new());

    struct Kept;

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            WRITTEN.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// A stranger's words neither act on the terminal of whoever reads the log, nor make a line that looks like the program's.
    #[test]
    fn a_strangers_words_are_harmless_in_the_log() {
        let hostile = "a\u{1b}[2J\r\u{202e}b\n2026-01-01T00:00:00Z  INFO approved\u{9b}";
        for format in [LogFormat::Plain, LogFormat::Json] {
            WRITTEN.lock().unwrap().clear();
            let subscriber = Registry::default().with(written(format, || Kept));
            tracing::subscriber::with_default(subscriber, || tracing::warn!(party = %hostile, "refused: {hostile}"));
            let written = String::from_utf8(WRITTEN.lock().unwrap().clone()).unwrap();
            let line = written.strip_suffix('\n').unwrap();
            assert!(text::is_plain(line) && line.contains("approved") && line.contains("refused"), "{line:?}");
            if format == LogFormat::Json {
                let value: serde_json::Value = serde_json::from_str(line).unwrap();
                assert_eq!(value["party"].as_str().unwrap().matches("approved").count(), 1, "{value}");
            }
        }
    }

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
