//! One analyst cannot block the others: unread streams, more jobs than run at a time, and a coordinator stopped in between.

use std::time::{Duration, Instant};

use conclave_tests::cluster::Cluster;
use conclave_tests::study;

use crate::EXE;

/// Number of concurrent jobs.
const JOBS: usize = 200;

/// None of two hundred jobs fails because of their number: they wait in a queue. SIGTERM is obeyed meanwhile.
#[test]
fn two_hundred_jobs_wait_their_turn_and_sigterm_is_obeyed() {
    let mut cluster = Cluster::new(EXE);
    let party = cluster.enrol_study("a", &study::records(60, 1), 990.0);
    cluster.start_party(party);
    // Its queries cost next to nothing.
    let sampler = "chains = 1\ndraws = 20\nwarmup = 1\nproposal = { kind = \"guided\", radius = 0.05 }\n\
                   start = { intercept = 0.0, treated = 0.0, age = 0.0 }";
    let job = cluster.write_job(&study::job(&["a"], sampler, "epsilon = 1\ndelta = 1e-6\nnoise_sd = 100.0"));
    let submitted: Vec<_> = (0..JOBS).map(|_| cluster.must(&["submit", &job, "--json"])).collect();
    assert_eq!(submitted.len(), JOBS);
    let began = Instant::now();
    cluster.signal_coordinator("TERM");
    assert!(cluster.wait_coordinator_exit().success());
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    cluster.start_coordinator();
    let end = Instant::now() + Duration::from_secs(300);
    loop {
        let list = conclave_tests::cluster::json(&cluster.must(&["jobs", "--json"]));
        let jobs = list["jobs"].as_array().expect("a list");
        assert!(jobs.len() == JOBS && jobs.iter().all(|job| job["state"] != "failed"), "{list}");
        if jobs.iter().all(|job| job["state"] == "finished") {
            return;
        }
        assert!(Instant::now() < end, "not all have ended: {list}");
        std::thread::sleep(Duration::from_millis(500));
    }
}
