//! The messages of a round to its parties.

use std::sync::Arc;

use conclave_common::job::{MAX_MESSAGE, MAX_QUERIES};
use conclave_common::query::Round;
use conclave_proto::convert::query_to_wire;
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1;
use conclave_proto::v1::coordinator_frame::Body;
use prost::Message as _;

use super::stop::StopReason;

/// Returns the messages of a round as the first attempt: one for all parties, or one for each.
///
/// # Errors
/// A message that no party takes.
pub(super) fn messages(job: &str, round: &Round) -> Result<Vec<Arc<Body>>, StopReason> {
    let asked = if round.apart.is_empty() { std::slice::from_ref(&round.queries) } else { &round.apart };
    let message = |queries: &Vec<_>| {
        let query = query_to_wire(job, round.iteration, queries);
        check_length(&query).map(|()| Arc::new(Body::Query(query)))
    };
    asked.iter().map(message).collect()
}

/// Checks that a party takes the message. New jobs whose messages can be too long are refused at submission; one that an earlier version
/// accepted ends here.
fn check_length(query: &v1::Query) -> Result<(), StopReason> {
    let (proposals, bytes) = (query.proposals.len(), query.encoded_len());
    // Room for the number of a later attempt, and for the frame.
    if proposals <= MAX_QUERIES && bytes + 16 <= MAX_MESSAGE {
        return Ok(());
    }
    let message = format!(
        "the next message of this job has {proposals} queries and {bytes} bytes, and a party takes at most {MAX_QUERIES} and {MAX_MESSAGE}: \
         submit the job again with fewer chains or candidates"
    );
    Err(StopReason::Failed(Fault::new(ErrorCode::InvalidInput, message)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_message_is_sent_that_a_party_does_not_take() {
        let query = |proposals: usize, numbers: usize| {
            let proposal = v1::Proposal { from: vec![1.0; numbers], ..v1::Proposal::default() };
            v1::Query { job: "6f1c1a52".into(), proposals: vec![proposal; proposals], ..v1::Query::default() }
        };
        assert_eq!(check_length(&query(MAX_QUERIES, 2)), Ok(()));
        assert_eq!(check_length(&query(1, MAX_MESSAGE / 8 - 8)), Ok(()));
        for long in [query(MAX_QUERIES + 1, 2), query(1, MAX_MESSAGE / 8), query(MAX_QUERIES, MAX_MESSAGE / 8 / MAX_QUERIES)] {
            assert!(matches!(check_length(&long), Err(StopReason::Failed(fault)) if fault.message.contains("fewer chains")));
        }
    }
}
