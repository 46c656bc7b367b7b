//! Operation of both daemons: logs, signals, metrics, checks; and the printing of every program. This crate handles neither
//! jobs nor records.
//!
//! - [`files`]: permissions of files. [`private_files`]: files beside a database, made and replaced in one step, and closed to others. [`place`]: the place and the lock of a database. [`clock`]: the wall clock. [`recent_durations`]: recent durations and their parts. [`answer_times`]: those of answers.
//!
//! The feature `daemon` adds what opens sockets, prints or logs:
//! - `settings`: the keys `log`, `log_level`, `metrics` and `otlp` of both configuration files.
//! - `terminal`: printed output. `log`: the log on standard error. `signals`: requests to stop or to reload.
//! - `check`: results of `--check`. `state`: the state of a running daemon.
//! - `doctor`: findings of a doctor as a table.
//! - `page`: the page of metrics. `endpoint`: its server. `disk`: sizes for it. `holders`: processes that hold a file open. `long_log`: a database's log that they keep long.
//! - `web`: web pages behind a token or a certificate. `source`: source hosts of connections.
#![forbid(unsafe_code)]

pub mod answer_times;
#[cfg(feature = "daemon")]
pub mod check;
pub mod clock;
#[cfg(feature = "daemon")]
pub mod core_files;
mod daemon;
#[cfg(feature = "daemon")]
pub mod disk;
#[cfg(feature = "daemon")]
pub mod doctor;
#[cfg(feature = "daemon")]
pub mod endpoint;
pub mod files;
#[cfg(feature = "daemon")]
pub mod holders;
#[cfg(feature = "daemon")]
mod listen;
#[cfg(feature = "daemon")]
pub mod log;
#[cfg(feature = "daemon")]
mod log_filter;
#[cfg(feature = "daemon")]
mod log_format;
#[cfg(feature = "daemon")]
pub mod long_log;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(feature = "daemon")]
pub mod page;
pub mod place;
pub mod private_files;
pub mod recent_durations;
#[cfg(feature = "daemon")]
pub mod settings;
#[cfg(feature = "daemon")]
pub mod signals;
#[cfg(feature = "daemon")]
pub mod source;
#[cfg(feature = "daemon")]
pub mod state;
#[cfg(feature = "daemon")]
pub mod terminal;
#[cfg(feature = "daemon")]
mod usage;
#[cfg(feature = "daemon")]
pub mod web;

#[cfg(feature = "daemon")]
pub use check::Checks;
pub use clock::Clock;
pub use daemon::{Daemon, EXPORTED};
#[cfg(feature = "daemon")]
pub use endpoint::Endpoint;
#[cfg(feature = "daemon")]
pub use log::{Level, Logs};
#[cfg(feature = "daemon")]
pub use log_format::LogFormat;
#[cfg(feature = "daemon")]
pub use page::{Page, Source};
#[cfg(feature = "daemon")]
pub use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
pub use recent_durations::{RecentDurations, Summary, in_ms};
#[cfg(feature = "daemon")]
pub use settings::Settings;
#[cfg(feature = "daemon")]
pub use signals::{Reloads, Signals};
