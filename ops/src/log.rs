//! The log on standard error, filtered by `RUST_LOG` or the configuration, as text or as JSON lines; and optional traces.

use std::io::Write;

use conclave_common::text;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

use crate::daemon::Daemon;
use crate::log_filter::filter;
use crate::log_format::LogFormat;
use crate::settings::Settings;
use crate::terminal::{self, Shown};

/// The running log; [`Logs::end`] sends the remaining traces to the collector.
#[derive(Debug)]
pub struct Logs {
    level: Level,
    #[cfg(feature = "otlp")]
    traces: Option<crate::otlp::Sender>,
}

impl Logs {
    /// Starts the process's log, and traces if `settings` name a collector, which needs a Tokio runtime. A log that the caller
    /// has already set up stays in use.
    ///
    /// # Errors
    /// A message that names the key of an unusable collector address.
    pub fn start(settings: &Settings, daemon: &Daemon<'_>) -> Result<Self, String> {
        // A second start in one process is allowed: the first log stays in use.
        #[cfg(feature = "otlp")]
        if let Some(endpoint) = &settings.otlp {
            let (layer, traces) = crate::otlp::layer(endpoint, daemon)?;
            let (lines, level) = lines(settings);
            let _ = Registry::default().with(lines).with(layer).try_init();
            tracing::info!("traces go to {endpoint}");
            return Ok(Self { level, traces: Some(traces) });
        }
        let _ = daemon;
        let (lines, level) = lines(settings);
        let _ = Registry::default().with(lines).try_init();
        Ok(Self {
            level,
            #[cfg(feature = "otlp")]
            traces: None,
        })
    }

    /// Returns a handle that changes the level of the log.
    pub fn level(&self) -> Level {
        self.level.clone()
    }

    /// Ends traces. It blocks on the collector, so the runtime must still exist and must not need this thread.
    pub fn end(self) {
        #[cfg(feature = "otlp")]
        if let Some(traces) = self.traces {
            traces.end();
        }
    }
}

/// The filter of a running log; clones share it.
#[derive(Debug, Clone)]
pub struct Level(reload::Handle<Targets, Registry>);

impl Level {
    /// Applies a changed `log_level` from the configuration, unless `RUST_LOG` was set when the process started; logs the
    /// outcome. `daemon` is the process's name for people.
    pub fn reload(&self, daemon: &str, old: &mut Option<String>, new: Option<String>) {
        if *old == new {
            return;
        }
        if std::env::var_os("RUST_LOG").is_none() && self.0.reload(filter(new.as_deref())).is_ok() {
            tracing::info!("log_level was reloaded");
        } else {
            tracing::warn!("log_level is unchanged: the {daemon} was started with RUST_LOG, which takes precedence");
        }
        *old = new;
    }
}

/// Builds the layer that writes lines, and the handle of its filter.
fn lines(settings: &Settings) -> (impl Layer<Registry> + use<>, Level) {
    let environment = std::env::var("RUST_LOG").ok();
    let (filter, handle) = reload::Layer::new(filter(environment.as_deref().or(settings.level.as_deref())));
    (line_layer(settings.log, std::io::stderr).with_filter(filter), Level(handle))
}

/// Builds a layer that writes lines in this format. Text from outside can neither control the terminal nor start a line. The
/// lines have no colours, since those are escape sequences too.
fn line_layer<S, W>(format: LogFormat, writer: fn() -> W) -> Box<dyn Layer<S> + Send + Sync>
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

/// Formats an event as one line. Each event arrives in a single write.
fn line(event: &str) -> String {
    text::one_line(event.strip_suffix('\n').unwrap_or(event)) + "\n"
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Mutex;

    use super::*;

    static WRITTEN: Mutex<Vec<u8>> = Mutex::new(Vec::new());

    struct Capture;

    impl Write for Capture {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            WRITTEN.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Text from outside neither controls the terminal of a log's reader, nor forms a line that looks like the program's.
    #[test]
    fn text_from_outside_is_harmless_in_the_log() {
        let hostile = "a\u{1b}[2J\r\u{202e}b\n2026-01-01T00:00:00Z  INFO approved\u{9b}";
        for format in [LogFormat::Plain, LogFormat::Json] {
            WRITTEN.lock().unwrap().clear();
            let subscriber = Registry::default().with(line_layer(format, || Capture));
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
}
