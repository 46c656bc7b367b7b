//! The queue: places, fairness between analysts, and parties without room.

use super::*;

fn rig(bounds: Bounds) -> Fixture {
    // Long enough that a slow machine never shows a party as waited for.
    let limits = Limits { shown: Duration::from_secs(600), ..Limits::default() };
    Fixture::bounded(tempfile::tempdir().unwrap(), limits, bounds)
}

async fn submit(rig: &Fixture, analyst: &str) -> String {
    rig.job_registry.submit(spec(10), analyst, signed()).await.unwrap()
}

/// Places of these jobs.
fn places(rig: &Fixture, jobs: &[(&str, &String)]) -> Vec<u32> {
    let place = |(analyst, job): &(&str, &String)| {
        let status = rig.job_registry.watch(job, analyst).unwrap().borrow().clone();
        assert_eq!(status.state == State::Queued, status.place > 0, "{status:?}");
        status.place
    };
    jobs.iter().map(place).collect()
}

#[tokio::test]
async fn jobs_beyond_the_bound_wait_in_turns_and_know_their_places() {
    let rig = rig(Bounds { running: 2, ..Bounds::default() });
    let (_a, _b) = (rig.attach("a", honestly("a")), rig.attach("b", until("b", 5)));
    let mut alices = Vec::new();
    for _ in 0..4 {
        alices.push(submit(&rig, "alice").await);
    }
    let bobs = [submit(&rig, "bob").await, submit(&rig, "bob").await];
    for job in &alices[..2] {
        rig.until(job, |s| s.state == State::Running).await;
    }
    let waiting = [("alice", &alices[2]), ("alice", &alices[3]), ("bob", &bobs[0]), ("bob", &bobs[1])];
    // Two of alice's jobs run, so both of bob's come before her others.
    assert_eq!(places(&rig, &waiting), [3, 4, 1, 2]);
    rig.job_registry.cancel(&alices[0], "alice").await.unwrap();
    let mut status = rig.job_registry.watch(&bobs[0], "bob").unwrap();
    let begun = tokio::time::timeout(Duration::from_secs(10), status.wait_for(|s| s.state == State::Running)).await;
    assert_eq!(begun.unwrap().unwrap().place, 0);
    // One job of each runs, and bob was served last.
    assert_eq!(places(&rig, &waiting[..2]), [1, 3]);
    assert_eq!(places(&rig, &waiting[3..]), [2]);
    // A waiting job can be cancelled without a turn, and makes room in the queue.
    let cancelled = rig.job_registry.cancel(&alices[2], "alice").await.unwrap();
    assert_eq!((cancelled.state, cancelled.iteration), (State::Cancelled, 0));
    let moved = async {
        while places(&rig, &[("alice", &alices[3])]) != [1] {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), moved).await.unwrap();
}

/// Many more jobs than run at once: none fails, each gets its turn, and the queue survives a restart.
#[tokio::test]
async fn many_jobs_at_once_all_end() {
    let first = rig(Bounds { running: 16, ..Bounds::default() });
    let (a, b) = (first.attach("a", honestly("a")), first.attach("b", honestly("b")));
    let mut jobs = Vec::new();
    for _ in 0..80 {
        jobs.push(submit(&first, "alice").await);
    }
    a.leave();
    b.leave();
    let rig = first.restart(|_| ()).await;
    let (_a, _b) = (rig.attach("a", honestly("a")), rig.attach("b", honestly("b")));
    for job in &jobs {
        assert_eq!(rig.ended(job).await.state, State::Finished);
    }
    // Their job files are on disk, and available on request.
    while rig.job_registry.texts_in_memory() > 0 {
        // The last driver is about to finish.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(rig.job_registry.source(&jobs[0], "alice").unwrap(), spec(10));
    assert_eq!(&*rig.job_registry.view_for(&jobs[79], "alice").unwrap().source, spec(10).as_str());
}

/// A job that a party has no room for returns to the queue, holds no place elsewhere meanwhile, and is retried without a new
/// request.
#[tokio::test]
async fn a_party_without_room_sends_a_job_back_into_the_queue() {
    let rig = rig(Bounds::default());
    let _a = rig.attach("a", honestly("a"));
    let (queue, mut outgoing) = send_queue();
    rig.context.store.seen("b", "test", 0);
    let _place = rig.context.party_registry.attach("b", queue);
    let job = submit(&rig, "alice").await;
    for refused in [true, true, false] {
        while !matches!(outgoing.next().await.unwrap().unwrap().body, Some(Body::OpenJob(_))) {}
        if refused {
            rig.context.party_registry.deliver("b", &job, Message::Full("64 jobs are open there already".to_owned()));
            let status = rig.until(&job, |s| s.state == State::Queued && !s.waiting_reason.is_empty()).await;
            assert!(status.waiting_reason.contains("b: 64 jobs are open") && status.place == 1, "{status:?}");
            assert!(status.fault.is_none() && status.waiting_for.is_empty());
        } else {
            rig.context.party_registry.deliver("b", &job, Message::Opened(PartyMetadata::rows(RECORDS), None, None));
        }
    }
    rig.until(&job, |s| s.state == State::Running).await;
    let closed = rig.seen.lock().unwrap().closed.iter().filter(|(party, reason)| party == "a" && reason.contains("turn")).count();
    assert_eq!(closed, 2, "it was closed at the other party while it waited");
}

/// An analyst's jobs that wait for a party, or for an owner's decision, do not block other analysts; nor do ever more of them
/// begin.
#[tokio::test]
async fn a_job_that_stands_still_takes_no_turn() {
    let rig = rig(Bounds { running: 1, ..Bounds::default() });
    let _a = rig.attach("a", honestly("a"));
    let (queue, mut outgoing) = send_queue();
    rig.context.store.seen("b", "test", 0);
    let _place = rig.context.party_registry.attach("b", queue);
    let job = submit(&rig, "mallory").await;
    assert!(matches!(outgoing.next().await.unwrap().unwrap().body, Some(Body::OpenJob(_))));
    let another = submit(&rig, "mallory").await;
    let other = submit(&rig, "alice").await;
    assert_eq!(places(&rig, &[("alice", &other), ("mallory", &another)]), [1, 2]);
    rig.context.party_registry.deliver("b", &job, Message::Pending);
    while !matches!(outgoing.next().await.unwrap().unwrap().body, Some(Body::OpenJob(open)) if open.job == other) {}
    rig.context.party_registry.deliver("b", &other, Message::Opened(PartyMetadata::rows(RECORDS), None, None));
    rig.until(&other, |s| s.state == State::Running).await;
    assert_eq!(places(&rig, &[("mallory", &another)]), [1]);
}

/// Jobs that wait for an absent party hold back only jobs that need it; each job in the queue names the reason.
#[tokio::test]
async fn an_absent_party_holds_back_only_the_jobs_that_need_it() {
    let rig = rig(Bounds { running: 2, ..Bounds::default() });
    let _a = rig.attach("a", honestly("a"));
    rig.attach("b", honestly("b")).leave();
    // Party b is known and away. The first job waits for it, and half of the places are enough to hold the next one back.
    let first = submit(&rig, "alice").await;
    rig.until(&first, |s| s.waiting_for == ["b"]).await;
    let second = submit(&rig, "alice").await;
    let held = rig.until(&second, |s| !s.waiting_reason.is_empty()).await;
    assert!(held.state == State::Queued && held.waiting_reason.starts_with("b: 1 of alice's jobs wait for it"), "{held:?}");
    // A job that needs a alone runs.
    let alone = spec(10).replace("parties = [\"a\", \"b\"]", "parties = [\"a\"]");
    assert!(!alone.contains("\"b\""), "{alone}");
    let alone = rig.job_registry.submit(alone, "alice", signed()).await.unwrap();
    assert_eq!(rig.ended(&alone).await.state, State::Finished);
    // Once b is here, the others run too.
    let _b = rig.attach("b", honestly("b"));
    for job in [&first, &second] {
        assert_eq!(rig.ended(job).await.state, State::Finished);
    }
}

/// A retired party holds no job: those that need it end, also in the queue, with a message that names it, and no new one is accepted.
#[tokio::test]
async fn jobs_that_need_a_retired_member_end() {
    let rig = rig(Bounds { running: 2, ..Bounds::default() });
    let _a = rig.attach("a", honestly("a"));
    rig.attach("b", honestly("b")).leave();
    let paused = submit(&rig, "alice").await;
    rig.until(&paused, |s| s.waiting_for == ["b"]).await;
    let queued = submit(&rig, "alice").await;
    rig.until(&queued, |s| s.place > 0).await;
    let list = |text: &str| conclave_proto::revoked::RevokedList::parse(text).unwrap();
    rig.job_registry.retire(list("party/b"));
    for job in [&paused, &queued] {
        let status = rig.ended(job).await;
        let fault = status.fault.expect("a reason");
        assert!(status.state == State::Failed && fault.message.contains("has retired party/b"), "{fault}");
    }
    let refused = rig.job_registry.submit(spec(10), "alice", signed()).await.unwrap_err();
    assert!(refused.code == ErrorCode::Policy && refused.message.contains("party/b"), "{refused}");
    // Others are not concerned, and a member may be taken back.
    let alone = || spec(10).replace("parties = [\"a\", \"b\"]", "parties = [\"a\"]");
    let job = rig.job_registry.submit(alone(), "alice", signed()).await.unwrap();
    assert_eq!(rig.ended(&job).await.state, State::Finished);
    rig.job_registry.retire(list("analyst/alice"));
    let refused = rig.job_registry.submit(alone(), "alice", signed()).await.unwrap_err();
    assert!(refused.message.contains("analyst/alice"), "{refused}");
    rig.job_registry.retire(list(""));
    let _b = rig.attach("b", honestly("b"));
    let job = submit(&rig, "alice").await;
    assert_eq!(rig.ended(&job).await.state, State::Finished);
}

/// A job that waits because others run says so.
#[tokio::test]
async fn a_job_that_waits_for_its_turn_names_the_bound() {
    let rig = rig(Bounds { running: 1, ..Bounds::default() });
    let (_a, _b) = (rig.attach("a", honestly("a")), rig.attach("b", until("b", 5)));
    let first = submit(&rig, "alice").await;
    rig.until(&first, |s| s.state == State::Running).await;
    let second = submit(&rig, "alice").await;
    let waiting = rig.until(&second, |s| s.place > 0 && !s.waiting_reason.is_empty()).await;
    assert_eq!(waiting.waiting_reason, "1 of at most 1 jobs run: it starts when one of them ends");
}

#[tokio::test]
async fn an_analyst_has_a_limit_of_unfinished_jobs_apart_from_other_analysts() {
    let rig = rig(Bounds { unfinished: 2, ..Bounds::default() });
    let (_a, _b) = (rig.attach("a", honestly("a")), rig.attach("b", until("b", 5)));
    let (first, _) = (submit(&rig, "alice").await, submit(&rig, "alice").await);
    let fault = rig.job_registry.submit(spec(10), "alice", signed()).await.unwrap_err();
    assert!(fault.code == ErrorCode::Policy && fault.message.contains("2 unfinished jobs"), "{fault}");
    submit(&rig, "bob").await;
    rig.job_registry.cancel(&first, "alice").await.unwrap();
    submit(&rig, "alice").await;
}
