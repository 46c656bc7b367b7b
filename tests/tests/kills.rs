//! kill -9 of the coordinator and of parties, twenty times each within one job, at random moments.
//!
//! Nothing here is statistical: what is asserted must hold after every kill. The moments have a fixed seed; the rounds that
//! they meet depend on the machine.

use std::time::{Duration, Instant};

use conclave_tests::books::{LedgerCopy, Replay};
use conclave_tests::cluster::{Cluster, PartySetup};
use conclave_tests::study;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

const EXE: &str = env!("CARGO_BIN_EXE_conclave-e2e");
const NAMES: [&str; 3] = ["hospital-a", "hospital-b", "hospital-c"];
const KILLS: usize = 20;
/// Long enough that twenty kills meet a running job.
const DRAWS: usize = 15_000;
const CHAINS: usize = 2;
/// For what takes a moment; on a busy machine, a long one.
const SOON: Duration = Duration::from_secs(30);

fn consortium() -> (Cluster, String) {
    let mut cluster = Cluster::new(EXE);
    for (seed, name) in NAMES.iter().enumerate() {
        let text = study::csv(&study::records(400, seed as u64));
        let data = study::write(&cluster.path(&format!("{name}.csv")), &text);
        let setup = PartySetup { name, data: &data, columns: &study::COLUMNS, epsilon: 990.0, data_extra: "", policy_extra: "" };
        let party = cluster.enrol(&setup);
        cluster.start_party(party);
    }
    // Locate, warm-up and sampling: the first kills meet the first two.
    let sampler = format!("chains = {CHAINS}\ndraws = {DRAWS}\nwarmup = 300\nseed = 7\nlocate_share = 0.05");
    let job = cluster.submit_only(&study::job(&NAMES, &sampler, "epsilon = 980\ndelta = 1e-6"));
    (cluster, job)
}

/// Rounds in the coordinator's durable log.
fn rounds(cluster: &Cluster) -> u64 {
    cluster.store().query_row("SELECT count(*) FROM rounds", [], |row| row.get(0)).expect("a count")
}

/// Waits until the log holds more rounds than `before`.
fn wait_for_progress(cluster: &Cluster, before: u64) {
    let end = Instant::now() + SOON;
    while rounds(cluster) <= before {
        assert!(Instant::now() < end, "the chain stands still after {before} rounds");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn still_runs(cluster: &Cluster) {
    let state: String = cluster.store().query_row("SELECT state FROM jobs", [], |row| row.get(0)).expect("a state");
    assert_eq!(state, "queued", "the job ended before the last kill: ask for more draws");
}

/// The ledgers of all parties at this moment.
fn ledgers(cluster: &Cluster, job: &str) -> Vec<LedgerCopy> {
    (0..NAMES.len()).map(|party| LedgerCopy::of(&cluster.ledger(party), job)).collect()
}

/// What a ledger held at some moment it holds for ever: charges, and answers to the bit.
fn assert_kept(early: &LedgerCopy, late: &LedgerCopy, party: usize) {
    for (id, row) in &early.rows {
        let now = late.rows.get(id).unwrap_or_else(|| panic!("the charge of {id:?} vanished at party {party}"));
        assert_eq!(row.charge, now.charge, "{id:?} at party {party}");
        assert!(row.released.is_none() || row.released == now.released, "two answers to {id:?} at party {party}");
    }
}

/// Waits for the end, and compares draws, log and ledgers.
fn check_the_end(cluster: &Cluster, job: &str, snapshots: &[Vec<LedgerCopy>]) {
    let finished = |status: &Value| status["state"] == "finished";
    cluster.wait_status(job, Duration::from_secs(300), "the end", finished);
    let result = conclave_tests::cluster::json(&cluster.must(&["summary", job, "--json"]));
    assert_eq!(result["stopped_by"], "draws");
    let replay = Replay::of(&cluster.store(), job);
    assert!(replay.complete);
    assert_eq!(result["iterations"], replay.rounds);
    replay.assert_equals_zarr(result["draws"].as_str().expect("a path").as_ref());
    let (queries, _) = replay.spent();
    for (party, ledger) in ledgers(cluster, job).iter().enumerate() {
        let beyond = replay.assert_in_ledger(ledger, party);
        assert!(beyond.is_empty(), "party {party} was charged for what no round holds: {beyond:?}");
        assert_eq!((ledger.rows.len() as u64, ledger.answers() as u64), (queries, queries));
        assert_eq!(result["parties"][party]["queries"], queries);
        snapshots.iter().for_each(|early| assert_kept(&early[party], ledger, party));
    }
}

/// After every restart the coordinator continues the same chain: at the end every draw equals, bit for bit, what a sampler
/// that nobody disturbed makes of the recorded answers, and no party was charged twice or for nothing.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn the_coordinator_is_killed_twenty_times() {
    let started = Instant::now();
    let (mut cluster, job) = consortium();
    let mut moments = ChaCha8Rng::seed_from_u64(20);
    let (mut before, mut met, mut snapshots) = (0, Vec::new(), Vec::new());
    for kill in 0..KILLS {
        wait_for_progress(&cluster, before);
        std::thread::sleep(Duration::from_millis(moments.random_range(20..=400)));
        still_runs(&cluster);
        cluster.kill_coordinator();
        snapshots.push(ledgers(&cluster, &job));
        before = rounds(&cluster);
        met.push(before);
        cluster.start_coordinator();
        if kill % 4 == 3 {
            // Once more at once: while it replays, or while parties come back.
            std::thread::sleep(Duration::from_millis(moments.random_range(0..=150)));
            cluster.kill_coordinator();
            before = rounds(&cluster);
            cluster.start_coordinator();
        }
    }
    println!("coordinator killed after rounds {met:?}");
    check_the_end(&cluster, &job, &snapshots);
    println!("{:.1} s", started.elapsed().as_secs_f64());
}

/// A killed party pauses the chain, which names it and goes on when it is back; nothing that left is lost or told anew.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn parties_are_killed_twenty_times() {
    let started = Instant::now();
    let (mut cluster, job) = consortium();
    let mut moments = ChaCha8Rng::seed_from_u64(21);
    let (mut before, mut met, mut snapshots) = (0, Vec::new(), Vec::new());
    for _ in 0..KILLS {
        wait_for_progress(&cluster, before);
        std::thread::sleep(Duration::from_millis(moments.random_range(20..=400)));
        still_runs(&cluster);
        let party = moments.random_range(0..NAMES.len());
        cluster.kill_party(party);
        let paused = cluster.wait_status(&job, SOON, "the pause", |status| status["state"] == "paused");
        assert_eq!(paused["waiting_for"], serde_json::json!([NAMES[party]]));
        snapshots.push(ledgers(&cluster, &job));
        std::thread::sleep(Duration::from_millis(100));
        let later = cluster.status(&job);
        assert_eq!((&later["state"], &later["iterations"]), (&paused["state"], &paused["iterations"]), "it went on alone");
        before = later["iterations"].as_u64().expect("a count");
        met.push(before);
        cluster.start_party(party);
        let running = cluster.wait_status(&job, SOON, "the resumption", |status| status["state"] == "running");
        assert_eq!(running["waiting_for"], serde_json::json!([]));
    }
    println!("parties killed after rounds {met:?}");
    check_the_end(&cluster, &job, &snapshots);
    println!("{:.1} s", started.elapsed().as_secs_f64());
}
