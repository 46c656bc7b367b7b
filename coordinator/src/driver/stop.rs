//! Requests to stop a run, and the reasons for its end.

use conclave_proto::error::Fault;

/// Request to stop a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopRequest {
    /// The analyst cancels the job; its draws are kept.
    Cancel,
    /// The operator has retired its analyst, or a party that it needs; its draws are kept.
    Retire,
    /// The coordinator stops; the job resumes at the next start.
    Shutdown,
}

/// Reason for the end of a run.
#[derive(Debug, PartialEq)]
pub(crate) enum StopReason {
    /// All draws are made.
    Finished,
    /// Even the whole budget would yield no usable draws; the rest of it stays with the parties.
    Futility,
    /// A party's budget does not admit the next round.
    Budget { party: usize, message: String },
    /// The analyst cancelled the job.
    Cancelled,
    /// A party's owner refuses the job or its continuation; earlier draws are kept.
    Refused(Fault),
    /// The job's clip cuts too much; the draws are kept and marked.
    Clipped(Fault),
    /// The job can't continue; earlier draws are kept.
    Failed(Fault),
    /// The job can't continue on this machine now; a restarted coordinator resumes it.
    Stopped(Fault),
    /// The draws can't be written. The job returns to the queue, and resumes from its log once they can.
    Unwritten(Fault),
    /// A party has no room for the job until others have ended; it returns to the queue.
    Full(String),
    /// The coordinator stops.
    Shutdown,
}
