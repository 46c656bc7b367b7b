//! The bounds of frames from a coordinator.

use conclave_common::job::MAX_MESSAGE;
use conclave_proto::convert::MAX_PROPOSALS;
use conclave_proto::identity::valid_name;
use conclave_proto::roster;
use conclave_proto::v1::{self, coordinator_frame};
use conclave_vault::answer::MAX_JOB_ID;
use prost::Message;

/// Returns true if a frame exceeds the limits of a genuine coordinator.
pub(super) fn out_of_bounds(body: &coordinator_frame::Body) -> bool {
    use coordinator_frame::Body;
    match body {
        Body::Query(query) => query.job.len() > MAX_JOB_ID,
        Body::OpenJob(open) => open.job.len() > MAX_JOB_ID,
        Body::Roster(piece) => piece.job.len() > MAX_JOB_ID || !roster::is_in_bounds(piece),
        Body::CloseJob(close) => close.job.len() > MAX_JOB_ID,
        Body::AskBudget(ask) => !valid_name(&ask.analyst),
        Body::Welcome(_) | Body::Heartbeat(_) => false,
    }
}

/// Returns the query unchanged, or without its proposals if it is too long.
///
/// A query without proposals is refused as malformed ([`conclave_proto::convert::query_from_wire`]), in a short reply.
pub(super) fn strip_if_too_long(query: v1::Query) -> v1::Query {
    let (proposals, bytes) = (query.proposals.len(), query.encoded_len());
    if proposals <= MAX_PROPOSALS && bytes <= MAX_MESSAGE {
        return query;
    }
    tracing::warn!(
        job = query.job,
        "a query of {proposals} proposals and {bytes} bytes is refused: at most {MAX_PROPOSALS} and {MAX_MESSAGE} are taken"
    );
    v1::Query { proposals: Vec::new(), ..query }
}
