//! SIGKILL of the coordinator and of parties, twenty times within one job, at random moments.
//!
//! Nothing here is statistical: every assertion must hold after every kill. The moments have a fixed seed; the rounds that they
//! hit depend on the machine.

use std::path::Path;
use std::time::{Duration, Instant};

use conclave_common::query::Query;
use conclave_privacy::mechanism::{NoiseScale, QueryKind};
use conclave_tests::books::{LedgerCopy, Replay};
use conclave_tests::cluster::Cluster;
use conclave_tests::recorder::{JobQueries, Recorder, signed_job};
use conclave_tests::study;
use conclave_tests::wait::{SOON, until};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::EXE;

const NAMES: [&str; 3] = ["hospital-a", "hospital-b", "hospital-c"];
const KILLS: usize = 20;
/// Long enough for twenty kills during one job, which happen within some hundreds of rounds; `still_runs` fails otherwise.
const DRAWS: usize = 5_000;
const CHAINS: usize = 2;

fn consortium(aggregation: &str) -> (Cluster, String) {
    let mut cluster = Cluster::new(EXE);
    for (seed, name) in NAMES.iter().enumerate() {
        cluster.enrol_study(name, &study::records(400, seed as u64), 990.0);
    }
    cluster.pin_all();
    (0..NAMES.len()).for_each(|party| cluster.start_party(party));
    // Locate, warm-up and sampling: the first kills hit the first two phases.
    let sampler = format!("chains = {CHAINS}\ndraws = {DRAWS}\nwarmup = 300\nseed = 7\nlocate_share = 0.05");
    let job = cluster.submit_only(&(study::job(&NAMES, &sampler, "epsilon = 980\ndelta = 1e-6") + aggregation));
    (cluster, job)
}

/// Waits until the log has more than `before` rounds.
fn wait_for_progress(cluster: &Cluster, before: u64) {
    until("the next round", SOON, || cluster.rounds() > before);
}

fn still_runs(cluster: &Cluster) {
    let state: String = cluster.store().query_row("SELECT state FROM jobs", [], |row| row.get(0)).expect("a state");
    assert_eq!(state, "queued", "the job ended before the last kill: use more draws");
}

/// Returns copies of all parties' ledgers.
fn ledgers(cluster: &Cluster, job: &str) -> Vec<LedgerCopy> {
    (0..NAMES.len()).map(|party| LedgerCopy::of(&cluster.ledger(party), job)).collect()
}

/// Checks that a ledger keeps everything it ever held: charges, and answers to the bit.
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
    cluster.wait_status(job, SOON, "the end", finished);
    let result = conclave_tests::cluster::json(&cluster.must(&["summary", job, "--json"]));
    assert_eq!(result["stopped_by"], "draws");
    let replay = Replay::of(&cluster.store(), job);
    assert!(replay.complete);
    assert_eq!(result["iterations"], replay.rounds);
    replay.assert_equals_zarr(result["draws"].as_str().expect("a path").as_ref());
    let (queries, _) = replay.spent();
    for (party, ledger) in ledgers(cluster, job).iter().enumerate() {
        let beyond = replay.assert_in_ledger(ledger, party);
        assert!(beyond.is_empty(), "party {party} was charged for queries in no recorded round: {beyond:?}");
        assert_eq!((ledger.rows.len() as u64, ledger.answers() as u64), (queries, queries));
        assert_eq!(result["parties"][party]["queries"], queries);
        snapshots.iter().for_each(|early| assert_kept(&early[party], ledger, party));
    }
}

/// After every restart the coordinator continues the same chain. In the end, every draw equals bit for bit that of an undisturbed
/// sampler with the recorded answers, and no party was charged twice or needlessly.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn the_coordinator_is_killed_twenty_times() {
    let started = Instant::now();
    let (mut cluster, job) = consortium("");
    let mut moments = ChaCha8Rng::seed_from_u64(20);
    let (mut before, mut met, mut snapshots) = (0, Vec::new(), Vec::new());
    for kill in 0..KILLS {
        wait_for_progress(&cluster, before);
        std::thread::sleep(Duration::from_millis(moments.random_range(20..=400)));
        still_runs(&cluster);
        cluster.kill_coordinator();
        snapshots.push(ledgers(&cluster, &job));
        before = cluster.rounds();
        met.push(before);
        cluster.start_coordinator();
        if kill % 4 == 3 {
            // A second kill while it replays, or while parties return.
            std::thread::sleep(Duration::from_millis(moments.random_range(0..=150)));
            cluster.kill_coordinator();
            before = cluster.rounds();
            cluster.start_coordinator();
        }
    }
    println!("coordinator killed after rounds {met:?}");
    check_the_end(&cluster, &job, &snapshots);
    println!("{:.1} s", started.elapsed().as_secs_f64());
}

/// A killed party pauses the chain, which names it and resumes when it returns; no release is lost or changed.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn parties_are_killed_twenty_times() {
    let started = Instant::now();
    let (mut cluster, job) = consortium("");
    let mut moments = ChaCha8Rng::seed_from_u64(21);
    let (mut before, mut met, mut snapshots) = (0, Vec::new(), Vec::new());
    for _ in 0..KILLS {
        wait_for_progress(&cluster, before);
        std::thread::sleep(Duration::from_millis(moments.random_range(20..=400)));
        still_runs(&cluster);
        let party = moments.random_range(0..NAMES.len());
        before = kill_and_restart(&mut cluster, &job, party, &mut snapshots);
        met.push(before);
    }
    println!("parties killed after rounds {met:?}");
    check_the_end(&cluster, &job, &snapshots);
    println!("{:.1} s", started.elapsed().as_secs_f64());
}

/// Kills a party, checks that the chain waits for it alone, and restarts it; returns the number of rounds at the pause.
fn kill_and_restart(cluster: &mut Cluster, job: &str, party: usize, snapshots: &mut Vec<Vec<LedgerCopy>>) -> u64 {
    cluster.kill_party(party);
    let paused = cluster.wait_status(job, SOON, "the pause", |status| status["state"] == "paused");
    assert_eq!(paused["waiting_for"], serde_json::json!([NAMES[party]]));
    snapshots.push(ledgers(cluster, job));
    std::thread::sleep(Duration::from_millis(100));
    let later = cluster.status(job);
    assert_eq!((&later["state"], &later["iterations"]), (&paused["state"], &paused["iterations"]), "it continued alone");
    cluster.start_party(party);
    let running = cluster.wait_status(job, SOON, "the resumption", |status| status["state"] == "running");
    assert_eq!(running["waiting_for"], serde_json::json!([]));
    later["iterations"].as_u64().expect("a count")
}

/// The same for a masked job, with kills of the coordinator and of parties in turn. Every masked release stays the same, under
/// one roster that each ledger has entered once, and the chain is the same.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn a_masked_job_outlives_twenty_kills() {
    let started = Instant::now();
    let (mut cluster, job) = consortium("\n[aggregation]\nmode = \"secure\"\ncolluders = 1\n");
    let mut moments = ChaCha8Rng::seed_from_u64(23);
    let (mut before, mut met, mut snapshots) = (0, Vec::new(), Vec::new());
    for kill in 0..KILLS {
        wait_for_progress(&cluster, before);
        std::thread::sleep(Duration::from_millis(moments.random_range(20..=400)));
        still_runs(&cluster);
        if kill % 2 == 0 {
            cluster.kill_coordinator();
            snapshots.push(ledgers(&cluster, &job));
            before = cluster.rounds();
            cluster.start_coordinator();
        } else {
            before = kill_and_restart(&mut cluster, &job, moments.random_range(0..NAMES.len()), &mut snapshots);
        }
        met.push(before);
    }
    println!("killed after rounds {met:?}");
    check_the_end(&cluster, &job, &snapshots);
    let rosters = |party: usize| -> Vec<String> {
        let ledger = cluster.ledger(party);
        let mut rows = ledger.prepare("SELECT body FROM events WHERE kind = 'roster'").expect("SQL");
        rows.query_map([], |row| row.get(0)).expect("events").collect::<Result<_, _>>().expect("bodies")
    };
    for (party, name) in NAMES.into_iter().enumerate() {
        assert_eq!(rosters(party).len(), 1, "{:?}", rosters(party));
        let keys = cluster.path(name).join("identity/mask-keys");
        assert_eq!(
            std::fs::read_dir(&keys).expect("the keys' folder").count(),
            0,
            "the key outlives its job at {}",
            NAMES[party]
        );
    }
    println!("{:.1} s", started.elapsed().as_secs_f64());
}

/// A stand-in for the coordinator records every answer of a party, repeats its query after each kill, and in the end repeats all
/// queries. No query has two answers, and the ledger has a charge and the same answer for each.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn releases_of_a_killed_party_never_change() {
    let started = Instant::now();
    let mut cluster = Cluster::new(EXE);
    let party = cluster.enrol_study("a", &study::records(400, 1), 990.0);
    cluster.kill_coordinator();
    let address = cluster.url.trim_start_matches("https://").parse().expect("an address");
    let job_queries = job_queries(&cluster.path("alice"));
    let job_id = job_queries.job.job.clone();
    let recorder = Recorder::serve(address, &cluster.path("coordinator/identity"), job_queries);
    cluster.start_party(party);

    let mut moments = ChaCha8Rng::seed_from_u64(22);
    for kill in 0..KILLS {
        let known = recorder.answers().len();
        until("an answer to a new query", SOON, || recorder.answers().len() > known);
        std::thread::sleep(Duration::from_millis(moments.random_range(0..=250)));
        if kill == KILLS - 1 {
            recorder.restart_from_first_round();
        }
        cluster.kill_party(party);
        cluster.start_party(party);
    }
    // The last stream began with the first round: after this many answers it has repeated all earlier ones.
    let before = recorder.answers();
    let through = recorder.count() + before.len() as u64 + 100;
    until("every answer once more", SOON, || recorder.count() >= through);
    cluster.kill_party(party);

    assert_eq!(recorder.refusals(), []);
    let heard = recorder.answers();
    let ledger = LedgerCopy::of(&cluster.ledger(party), &job_id);
    for (id, values) in &heard {
        assert_eq!(values.len(), 1, "{id:?} has more than one answer: {values:?}");
        let row = ledger.rows.get(id).unwrap_or_else(|| panic!("{id:?} left without a charge"));
        assert_eq!(row.released.as_ref(), values.first(), "{id:?} differs from the recorded answer");
    }
    println!(
        "{} answers received, {} of them different queries, {} charged; {:.1} s",
        recorder.count(),
        heard.len(),
        ledger.rows.len(),
        started.elapsed().as_secs_f64()
    );
    assert!(recorder.count() > heard.len() as u64 + before.len() as u64 / 2, "too few queries were repeated");
}

/// Returns two chains that move in a small circle.
fn job_queries(analyst: &Path) -> JobQueries {
    let spec_toml = study::job(&["a"], "chains = 2\ndraws = 1000000", "epsilon = 980\ndelta = 1e-6\nnoise_sd = 1.0");
    let noise = NoiseScale::from_sd(1.0).expect("a noise scale");
    let at = |round: u64, chain: u32| {
        let angle = round as f64 * 0.01 + f64::from(chain);
        vec![angle.cos(), angle.sin(), 0.25]
    };
    let round = move |round| {
        let query = |chain| Query { chain, kind: QueryKind::Ratio, from: at(round, chain), to: at(round + 1, chain), noise };
        vec![query(0), query(1)]
    };
    JobQueries { job: signed_job(analyst, &spec_toml), round: Box::new(round) }
}
