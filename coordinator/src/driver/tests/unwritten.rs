//! Draws that can't be written.

use super::*;
use crate::health::Health;

fn health(rig: &Fixture) -> Result<(), String> {
    let (_stop, stopping) = tokio::sync::watch::channel(false);
    Health { job_registry: Arc::clone(&rig.job_registry), store: rig.context.store.clone(), stopping }.now()
}

/// The job waits for the operator, the coordinator is unhealthy meanwhile, and after the repair the job resumes from its log: no
/// round is asked otherwise, and the draws are those of an undisturbed run.
#[tokio::test]
async fn draws_that_cannot_be_written_hold_the_job_and_change_nothing() {
    let expected = undisturbed(200).await;
    for from_the_start in [true, false] {
        let rig = Fixture::new();
        let draws = rig.folder.path().join("draws");
        let _a = rig.attach("a", honestly("a"));
        let b = rig.attach("b", until("b", 110));
        // A file stands where a folder should: this fails for root, too.
        let obstruct = |folder: &Path| {
            std::fs::rename(folder, rig.folder.path().join("aside")).ok();
            std::fs::write(folder, "").unwrap();
            folder.to_owned()
        };
        let before = from_the_start.then(|| obstruct(&draws));
        let job = rig.job_registry.submit(spec(200), "alice", signed()).await.unwrap();
        let obstacle = match before {
            Some(obstacle) => obstacle,
            None => {
                rig.asked("b", 110).await;
                obstruct(&draws.join(format!("{job}.zarr")))
            }
        };
        b.leave();
        let _b = rig.attach("b", honestly("b"));
        let status = rig.until(&job, Status::waits_for_operator).await;
        assert!(status.waiting_reason.contains("can't be written") && status.fault.is_none(), "{status:?}");
        let sick = health(&rig).unwrap_err();
        assert!(sick.contains(&job) && sick.contains("waiting for the operator"), "{sick}");
        std::fs::remove_file(&obstacle).unwrap();
        let status = rig.ended(&job).await;
        assert_eq!((status.state, status.draws), (State::Finished, 200), "{:?}", status.fault);
        assert_eq!((rig.draws(&job), health(&rig)), (expected.clone(), Ok(())));
        assert!(rig.seen.lock().unwrap().asked.values().all(|asked| asked.len() == 1), "no round is asked otherwise");
    }
}
