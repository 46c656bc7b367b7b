//! Which daemon logs, and which of its spans leave.

/// Who logs.
#[derive(Debug, Clone, Copy)]
pub struct Daemon<'a> {
    /// Its kind, such as `conclave-party`.
    pub service: &'static str,
    /// Its own name.
    pub name: &'a str,
}

/// The target of spans that go to a collector, and of nothing else. At a party they are of the link alone: attached, job opened,
/// job closed; none lasts as long as something is computed.
pub const EXPORTED: &str = "conclave::exported";
