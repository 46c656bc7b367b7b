//! How a run is told to stop, and how it ends.

use conclave_proto::error::Fault;

/// Why a driver is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopRequest {
    /// The analyst ends the job; its draws are kept.
    Cancel,
    /// The coordinator ends; the job goes on when it is back.
    Shutdown,
}

/// How a run ends.
#[derive(Debug, PartialEq)]
pub(crate) enum StopReason {
    /// All draws are made.
    Finished,
    /// With the whole budget the draws would be of no use: the rest of it stays with the parties.
    Hopeless,
    /// A party's budget does not admit the next round.
    Budget { party: usize, message: String },
    /// The analyst's wish.
    Cancelled,
    /// A party's owner refuses it, or refuses that it goes on: what was drawn before is kept.
    Refused(Fault),
    /// The job's clip cuts too much: what was drawn is kept, and marked.
    Clipped(Fault),
    /// It can't go on: what was drawn before is kept.
    Failed(Fault),
    /// It can't go on here and now; a restarted coordinator takes it up.
    Stopped(Fault),
    /// A party has no room for it before others have ended: it goes back into the queue.
    Full(String),
    /// The coordinator ends.
    Shutdown,
}
