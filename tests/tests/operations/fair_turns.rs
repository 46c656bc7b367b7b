//! Jobs that share parties take turns: one with large messages does not starve one with small messages.

use std::time::Duration;

use conclave_tests::cluster::Cluster;
use conclave_tests::strangers::rounds;
use conclave_tests::study;

use crate::EXE;

const NAMES: [&str; 2] = ["hospital-a", "hospital-b"];
const SMALL_DRAWS: u64 = 40;

fn job(chains: u32, draws: u64) -> String {
    let sampler = format!(
        "chains = {chains}\ndraws = {draws}\nwarmup = 1\nproposal = {{ kind = \"guided\", radius = 0.05 }}\n\
         start = {{ intercept = 0.0, treated = 0.0, age = 0.0 }}"
    );
    study::job(&NAMES, &sampler, "epsilon = 400\ndelta = 1e-6\nnoise_sd = 100.0")
}

/// Returns the job served in each round at a party, from its ledger: entries are made in the order of service.
fn turns(cluster: &Cluster, party: usize) -> Vec<String> {
    let ledger = cluster.ledger(party);
    let sql = "SELECT j.job FROM charges c JOIN jobs j ON j.seq = c.job GROUP BY c.job, c.iteration ORDER BY min(c.seq)";
    let mut statement = ledger.prepare(sql).expect("a ledger");
    let rows = statement.query_map([], |row| row.get(0)).expect("charges");
    rows.collect::<Result<_, _>>().expect("names")
}

#[test]
fn the_small_one_of_two_jobs_gets_its_turns_and_the_large_one_continues() {
    let mut cluster = Cluster::new(EXE);
    for (seed, name) in NAMES.iter().enumerate() {
        let party = cluster.enrol_study(name, &study::records(300, seed as u64), 990.0);
        cluster.start_party(party);
    }
    let large = cluster.submit_only(&job(256, 100_000));
    cluster.wait_status(&large, Duration::from_secs(60), "the large job's rounds", |_| rounds(&cluster.store(), &large) > 3);
    let small = cluster.submit(&job(1, SMALL_DRAWS));
    assert_eq!((&small["stopped_by"], &small["draws_per_chain"]), (&"draws".into(), &SMALL_DRAWS.into()));
    assert_eq!(cluster.status(&large)["state"], "running");
    let small = small["job"].as_str().expect("a job id");
    for (party, name) in NAMES.iter().enumerate() {
        let turns = turns(&cluster, party);
        let first = turns.iter().position(|job| job == small).expect("a first turn");
        let last = turns.iter().rposition(|job| job == small).expect("a last turn");
        let between = &turns[first..=last];
        let large_turns = between.iter().filter(|job| **job == large).count();
        let small_turns = between.len() - large_turns;
        println!("{name}: {small_turns} turns of the small job, {large_turns} of the large one");
        // Each job has one unanswered query at a time, and queries are answered in order of arrival.
        assert!(large_turns <= small_turns + 1, "the small job waited longer than its turn: {between:?}");
        assert!(large_turns >= 3, "the large job stood still: {between:?}");
    }
    // A job may be cancelled at any time; its draws remain.
    cluster.must(&["cancel", &large]);
    assert_eq!(cluster.status(&large)["state"], "cancelled");
}
