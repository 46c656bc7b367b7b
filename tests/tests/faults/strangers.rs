//! Strangers and a malicious member neither stop an honest job nor exhaust anybody's memory.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use conclave_tests::cluster::Cluster;
use conclave_tests::strangers::{Attack, most_resident, resident};
use conclave_tests::study;

use crate::EXE;

const NAMES: [&str; 3] = ["hospital-a", "hospital-b", "hospital-c"];
/// Maximal growth of a daemon's memory under attack, in bytes.
const MOST_GROWTH: u64 = 64 << 20;
/// Patience for an operation of some seconds, or minutes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

#[test]
#[ignore = "heavy: run by .ci/run"]
fn an_honest_job_finishes_under_attack_and_memory_stays_bounded() {
    let mut cluster = Cluster::new(EXE);
    for (seed, name) in NAMES.iter().chain(&["mallory"]).enumerate() {
        let party = cluster.enrol_study(name, &study::records(500, seed as u64), 990.0);
        if *name != "mallory" {
            cluster.start_party(party);
        }
    }
    let job = |draws: u32| {
        let sampler = format!(
            "chains = 2\ndraws = {draws}\nwarmup = 1\nproposal = {{ kind = \"guided\", radius = 0.05 }}\n\
             start = {{ intercept = 0.0, treated = 0.0, age = 0.0 }}"
        );
        study::job(&NAMES, &sampler, "epsilon = 400\ndelta = 1e-6\nnoise_sd = 100.0")
    };
    // Memory that a job needs by itself is not due to the attackers.
    cluster.submit(&job(200));
    let pids = [cluster.coordinator_pid(), cluster.party_pid(0)];
    let before = pids.map(resident);
    let attack = Attack::on(&cluster.url);
    attack.half_open(900);
    attack.long_strangers(4);
    attack.long_member(&cluster.path("mallory/identity"));
    let done = |what: &std::sync::atomic::AtomicU64, least: u64| what.load(Ordering::Relaxed) >= least;
    let job = cluster.submit_only(&job(2000));
    let end = Instant::now() + PATIENCE;
    let most = most_resident(&pids, || {
        assert!(Instant::now() < end, "the job or the attack does not end: {}", cluster.status(&job));
        let attacked = done(&attack.counts().half_open, 1500) && done(&attack.counts().long, 20);
        !(attacked && cluster.status(&job)["state"] == "finished")
    });
    for (who, (most, before)) in ["the coordinator", "a party"].iter().zip(most.iter().zip(before)) {
        println!("{who}: {} KiB before, {} KiB at most", before >> 10, most >> 10);
        assert!(most.saturating_sub(before) < MOST_GROWTH, "{who} grew from {before} to {most} bytes");
    }
}
