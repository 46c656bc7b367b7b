//! Measures the cost of attacks to an honest job of three parties: the median time of its rounds before and during each attack,
//! and the additional memory of the coordinator and of a party. Real processes on loopback; attackers share the machine's cores.
//!
//! `cargo build --release -p conclave-tests --bins && cargo run --release -p conclave-tests --example strangers`

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use conclave_tests::cluster::{Cluster, PartySetup};
use conclave_tests::strangers::{Attack, median_round, most_resident, resident, rounds};
use conclave_tests::study;
use serde_json::{Value, json};

const NAMES: [&str; 3] = ["hospital-a", "hospital-b", "hospital-c"];
const CALM: Duration = Duration::from_secs(10);
const UNDER_ATTACK: Duration = Duration::from_secs(20);

fn main() {
    let exe = std::env::current_exe().expect("this program's path");
    let exe = exe.parent().and_then(|examples| examples.parent()).expect("a target folder").join("conclave-e2e");
    assert!(exe.exists(), "{} is missing: cargo build -p conclave-tests --bins, in the same profile", exe.display());
    let mut cluster = Cluster::new(exe.to_str().expect("a plain path"));
    for (seed, name) in NAMES.iter().chain(&["mallory"]).enumerate() {
        let data = study::write(&cluster.path(&format!("{name}.csv")), &study::csv(&study::records(2000, seed as u64)));
        let (columns, policy_extra) = (&study::COLUMNS[..], "reply_delay_ms = 0");
        let party = cluster.enrol(&PartySetup {
            name,
            data: &data,
            columns,
            epsilon: 990.0,
            data_extra: "",
            budget_extra: "",
            policy_extra,
        });
        if *name != "mallory" {
            cluster.start_party(party);
        }
    }
    let sampler = "chains = 2\ndraws = 2000000\nwarmup = 1\nproposal = { kind = \"guided\", radius = 0.05 }\n\
                   start = { intercept = 0.0, treated = 0.0, age = 0.0 }";
    let job = cluster.submit_only(&study::job(&NAMES, sampler, "epsilon = 980\ndelta = 1e-6\nnoise_sd = 100.0"));
    let calm = |seconds: Duration| {
        let from = rounds(&cluster.store(), &job);
        std::thread::sleep(seconds);
        median_round(&cluster.store(), &job, from, rounds(&cluster.store(), &job))
    };
    calm(CALM / 2); // memory and caches of a running job settle
    let pids = [cluster.coordinator_pid(), cluster.party_pid(0)];
    let mut attacks = Vec::new();
    for name in ["1000 half-open connections", "100 MB from 8 strangers and a member"] {
        let before = calm(CALM);
        let held = pids.map(resident);
        let attack = Attack::on(&cluster.url);
        match attacks.is_empty() {
            true => attack.half_open(1000),
            false => {
                attack.long_strangers(8);
                attack.long_member(&cluster.path("mallory/identity"));
            }
        }
        let (from, end) = (rounds(&cluster.store(), &job), Instant::now() + UNDER_ATTACK);
        let most = most_resident(&pids, || Instant::now() < end);
        let during = median_round(&cluster.store(), &job, from, rounds(&cluster.store(), &job));
        let grown = |at: usize| (most[at] - held[at]) as f64 / f64::from(1 << 20);
        attacks.push(json!({
            "attack": name, "median_round_us_before": before, "median_round_us_during": during, "ratio": during / before,
            "coordinator_grew_mib": grown(0), "party_grew_mib": grown(1),
            "half_open_connections": attack.counts().half_open.load(Ordering::Relaxed),
            "long_messages": attack.counts().long.load(Ordering::Relaxed),
        }));
    }
    assert_eq!(cluster.status(&job)["state"], "running");
    cluster.must(&["cancel", &job]);
    println!("{:#}", Value::from(attacks));
}
