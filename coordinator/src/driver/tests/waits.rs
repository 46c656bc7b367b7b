//! Waits for parties over a restart of the coordinator.

use super::*;

/// A wait is as old after a restart as before it, for each party: an alert on its length does not start again.
#[tokio::test]
async fn a_wait_continues_over_a_restart() {
    for begun in [true, false] {
        let rig = Fixture::new();
        let (a, mut b) = (rig.attach("a", honestly("a")), Some(rig.attach("b", until("b", 5))));
        if !begun {
            b.take().into_iter().for_each(Party::leave);
        }
        let job = rig.job_registry.submit(spec(20), "alice", signed()).await.unwrap();
        if let Some(b) = b {
            rig.asked("b", 5).await;
            b.leave();
        }
        let before = rig.until(&job, |status| status.waiting_for == ["b"]).await.waiting_since_ms;
        tokio::time::sleep(Duration::from_millis(30)).await;
        a.leave();

        let rig = rig.restart(|_| ()).await;
        let after = rig.until(&job, |status| status.waiting_for == ["a", "b"]).await;
        assert_eq!(after.waiting_since_ms, before);
        let waits = after.waits();
        assert!(waits[0] > Some(before) && waits[1] == Some(before), "each party has its own: {waits:?}");
        let a = rig.attach("a", honestly("a"));
        assert_eq!(rig.until(&job, |status| status.waiting_for == ["b"]).await.waiting_since_ms, before);
        // Once it is over, a wait is forgotten.
        a.leave();
        let _b = rig.attach("b", honestly("b"));
        assert!(rig.until(&job, |status| status.waiting_for == ["a"]).await.waiting_since_ms > before);
        let _a = rig.attach("a", honestly("a"));
        assert_eq!(rig.ended(&job).await.state, State::Finished);
    }
}

/// A job that returns to the queue waits for no party, and a restart brings no earlier wait back.
#[tokio::test]
async fn a_queued_job_keeps_no_wait() {
    let rig = Fixture::new();
    let a = rig.attach("a", honestly("a"));
    rig.attach("b", honestly("b")).leave();
    let job = rig.job_registry.submit(spec(20), "alice", signed()).await.unwrap();
    let before = rig.until(&job, |status| status.waiting_for == ["b"]).await.waiting_since_ms;
    rig.context.party_registry.deliver("a", &job, Message::Full("64 jobs are open there already".to_owned()));
    let queued = rig.until(&job, |status| status.state == State::Queued && !status.waiting_reason.is_empty()).await;
    assert_eq!((queued.waits(), queued.waiting_since_ms), (vec![None, None], 0));
    a.leave();
    tokio::time::sleep(Duration::from_millis(30)).await;
    let rig = rig.restart(|_| ()).await;
    assert!(rig.until(&job, |status| status.waiting_for == ["a", "b"]).await.waiting_since_ms > before);
}
