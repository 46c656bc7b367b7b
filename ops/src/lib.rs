//! What both daemons need to be run by somebody: logs, signals, metrics, checks; and how every program prints. Nothing here knows of jobs or records.
//!
//! - [`settings`]: the keys `log`, `metrics` and `otlp` of both configuration files.
//! - [`terminal`]: what is printed. [`log`]: the log on standard error. [`signals`]: the word to stop.
//! - [`files`]: whose a file is. [`check`]: what `--check` finds. [`state`]: whether a daemon runs.
//! - [`doctor`]: what a doctor finds, as a table.
//! - [`page`]: a page of metrics. [`endpoint`]: where it is served. [`disk`]: sizes for it.
//! - [`clock`]: the wall clock.
//! - [`latest`]: what lengths of time were made up of lately.
//! - [`web`]: pages for people, behind a token or a certificate. [`source`]: hosts that connections come from.
#![forbid(unsafe_code)]

pub mod check;
pub mod clock;
pub mod core_files;
mod daemon;
pub mod disk;
pub mod doctor;
pub mod endpoint;
pub mod files;
pub mod latest;
mod listen;
pub mod log;
mod log_filter;
mod log_format;
#[cfg(feature = "otlp")]
mod otlp;
pub mod page;
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
pub use latest::{Latest, Summary, in_ms};
pub use log::{Level, Logs};
pub use log_format::LogFormat;
pub use page::{Page, Source};
pub use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
pub use settings::Settings;
pub use signals::{Reloads, Signals};
