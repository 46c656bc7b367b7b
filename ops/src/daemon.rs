//! The identity of a daemon in its logs, and the target of its exported spans.

/// The daemon that writes a log.
#[derive(Debug, Clone, Copy)]
pub struct Daemon<'a> {
    /// The kind of daemon, such as `conclave-party`.
    pub service: &'static str,
    /// The daemon's name.
    pub name: &'a str,
}

/// The target of exactly the spans that are exported to a collector. A party exports only events of its link: attached, job
/// opened, job closed. No span's duration depends on a computation.
pub const EXPORTED: &str = "conclave::exported";
