//! A coordinator that has lost its store occupies no slot for its former jobs.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::answer::tests::answers::opened;
use crate::testing::{JOB, MEAN_TOML, open_request};

#[test]
fn a_job_that_is_not_requested_again_is_closed() {
    let (_house, mut answerer) = opened();
    let (began, after) =
        (Instant::now(), |answerer: &Answerer| (answerer.jobs.len(), answerer.ledger().state().job(JOB).unwrap().open));
    answerer.close_forgotten(began + 2 * GRACE);
    assert_eq!(after(&answerer), (1, true), "no new stream has begun");
    answerer.begin_stream(began);
    answerer.close_forgotten(began + GRACE / 2);
    assert_eq!(after(&answerer), (1, true), "it may still be asked for");
    answerer.requested.note(JOB);
    answerer.close_forgotten(began + GRACE);
    assert_eq!(after(&answerer), (1, true), "it was asked for");
    answerer.begin_stream(began);
    answerer.close_forgotten(began + GRACE);
    assert_eq!(after(&answerer), (0, false));
    // The job is reopened if the coordinator requests it later.
    answerer.open(&open_request(MEAN_TOML)).unwrap();
    assert_eq!(after(&answerer), (1, true));
}

/// The time that it takes to close jobs is not taken from the delay of the message that occasions it: the reply of a message that waited
/// would leave at the next multiple or not, depending on the time of its own answer.
#[test]
fn a_service_begins_once_forgotten_jobs_are_closed() {
    let (_house, mut answerer) = opened();
    let arrived = Instant::now();
    answerer.begin_stream(arrived);
    answerer.close_idle(arrived + GRACE / 2);
    assert_eq!(answerer.pacer.begin(arrived), arrived, "nothing was to be done");
    answerer.close_idle(arrived + GRACE);
    assert!(answerer.jobs.is_empty() && answerer.pacer.begin(arrived) > arrived);
}
