//! The interface of a screen, or of a program that is given each state, to a followed job.

use conclave_proto::v1::{JobStatus, TracesReply};

/// Receives the states of a followed job.
pub(crate) trait Observer: Send {
    /// Begins; `source` is the job's file, if the coordinator sends it.
    fn begin(&mut self, source: Option<&str>);

    /// Takes a status.
    fn status(&mut self, status: &JobStatus);

    /// Takes the chains' recent draws.
    fn traces(&mut self, traces: TracesReply);

    /// Takes a sentence on the connection.
    fn notice(&mut self, text: &str);

    /// Ends: no status follows.
    fn finish(&mut self);
}
