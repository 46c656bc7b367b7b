//! Operation of both daemons: logs, signals, metrics, checks; and the printing of every program. This crate handles neither
//! jobs nor records.
//!
//! - [`settings`]: the keys `log`, `log_level`, `metrics` and `otlp` of both configuration files.
//! - [`terminal`]: printed output. [`log`]: the log on standard error. [`signals`]: requests to stop or to reload.
//! - [`files`]: permissions of files. [`check`]: results of `--check`. [`state`]: the state of a running daemon.
//! - [`doctor`]: findings of a doctor as a table.
//! - [`page`]: the page of metrics. [`endpoint`]: its server. [`disk`]: sizes for it.
//! - [`clock`]: the wall clock.
//! - [`recent_durations`]: recent durations and their parts.
//! - [`web`]: web pages behind a token or a certificate. [`source`]: source hosts of connections.
#![forbid(unsafe_code)]

pub mod check;
pub mod clock;
pub mod core_files;
mod daemon;
pub mod disk;
pub mod doctor;
pub mod endpoint;
pub mod files;
mod listen;
pub mod log;
mod log_filter;
mod log_format;
#[cfg(feature = "otlp")]
mod otlp;
pub mod page;
pub mod recent_durations;
pub mod settings;
pub mod signals;
pub mod source;
pub mod state;
pub mod terminal;
mod usage;
pub mod web;

pub use check::Checks;
pub use clock::Clock;
pub use daemon::{Daemon, EXPORTED};
pub use endpoint::Endpoint;
pub use log::{Level, Logs};
pub use log_format::LogFormat;
pub use page::{Page, Source};
pub use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
pub use recent_durations::{RecentDurations, Summary, in_ms};
pub use settings::Settings;
pub use signals::{Reloads, Signals};
