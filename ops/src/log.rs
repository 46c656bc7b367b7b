//! The log: on standard error, filtered by `RUST_LOG` or the configuration, as text or as JSON lines. Beside it, where asked for, traces.

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

/// The running log; [`Logs::end`] sends what a collector has not got yet.
#[derive(Debug)]
pub struct Logs {
    level: Level,
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

    /// Which lines are written, to be set anew.
    pub fn level(&self) -> Level {
        self.level.clone()
    }

    /// Ends traces. It waits for the collector, so not on a thread that the runtime needs; the runtime must still be there.
    pub fn end(self) {
        #[cfg(feature = "otlp")]
        if let Some(traces) = self.traces {
            traces.end();
        }
    }
}

/// Which lines a running log writes; clones share it.
#[derive(Debug, Clone)]
pub struct Level(reload::Handle<Targets, Registry>);

impl Level {
    /// Writes other lines from now on, where the configuration says so anew and `RUST_LOG`, which the process was started with, does not
    /// decide; and logs which. `daemon` is the process's name for people.
    pub fn read_again(&self, daemon: &str, old: &mut Option<String>, new: Option<String>) {
        if *old == new {
            return;
        }
        if std::env::var_os("RUST_LOG").is_none() && self.0.reload(filter(new.as_deref())).is_ok() {
            tracing::info!("log_level has been read again");
        } else {
            tracing::warn!("log_level stays as it is: RUST_LOG, which the {daemon} was started with, decides");
        }
        *old = new;
    }
}

/// The layer that writes lines, and the hold on which.
fn lines(settings: &Settings) -> (impl Layer<Registry> + use<>, Level) {
    let from_outside = std::env::var("RUST_LOG").ok();
    let (filter, handle) = reload::Layer::new(filter(from_outside.as_deref().or(settings.level.as_deref())));
    (written(settings.log, std::io::stderr).with_filter(filter), Level(handle))
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
}
