//! Everything that a running party exposes: its owner's pages and commands, its metrics, its log and its files. None contains its
//! own number.

use conclave_common::query::message_digest;
use conclave_privacy::secagg::{PairKeys, Roster};
use conclave_proto::{roster, v1};
use conclave_tests::books::Replay;
use conclave_tests::cluster::Cluster;
use conclave_tests::study;
use conclave_tests::visit::Visit;
use conclave_tests::wait::{SOON, until};
use conclave_vault::ledger::Secret;
use conclave_vault::secure::MaskKeys;
use prost::Message;
use rusqlite::Connection;

use super::lab::secure;
use super::search::{files, found_in, large};
use crate::EXE;

const NAMES: [&str; 3] = ["a", "b", "c"];
const CONFIG: [&str; 2] = ["--config", "a/party.toml"];
const ROUNDS: u64 = 60;

/// Starts three parties with full logs. The first has all its pages and the plot of an audit; the coordinator has all of its own.
fn cluster() -> Cluster {
    let mut cluster = Cluster::new(EXE);
    cluster.rust_log = Some("trace");
    cluster.coordinator_extra = "dashboard = \"127.0.0.1:0\"\nmetrics = \"127.0.0.1:0\"\n";
    cluster.kill_coordinator();
    cluster.start_coordinator();
    for (seed, name) in (0..).zip(NAMES) {
        cluster.enrol_study(name, &study::records(100, seed), 990.0);
    }
    cluster.pin_all();
    cluster.configure_party(0, "page = \"127.0.0.1:0\"\nmetrics = \"127.0.0.1:0\"");
    let audit = ["--replicates", "1000", "--mu-b", "2", "--honest", "2", "--out", "audit.svg"];
    cluster.must(&[&["__party", "audit"], &CONFIG[..], &audit].concat());
    (0..NAMES.len()).for_each(|party| cluster.start_party(party));
    cluster
}

/// Returns all accessible outputs, each checked for an expected word.
fn all_outputs(cluster: &Cluster, job: &str) -> Vec<u8> {
    let mut all = String::new();
    let (owner, operator) = (cluster.visit_owner("a"), cluster.visit_dashboard());
    let [of_party, of_coordinator] =
        ["a", "coordinator"].map(|daemon| Visit::stranger(&cluster.logged_address(daemon, "metrics at http://")));
    let at = format!("/jobs/{job}");
    for (visit, path, word) in [
        (&owner, "/", job),
        (&owner, &at, "masked"),
        (&owner, "/audit.svg", "<svg"),
        (&operator, "/", job),
        (&operator, &at, "Answers are masked"),
        (&of_party, "/metrics", "conclave_party_releases"),
        (&of_coordinator, "/metrics", "conclave_coordinator_rounds_total"),
    ] {
        let (status, page) = visit.get(path);
        assert!(status == 200 && page.contains(word), "{path}: {page}");
        all.push_str(&page);
    }
    let commands: [&[&str]; 10] = [
        &["statement", job],
        &["status"],
        &["status", "--json"],
        &["budget"],
        &["budget", "--json"],
        &["jobs"],
        &["jobs", "--json"],
        &["ledger"],
        &["ledger", "--json"],
        &["export"],
    ];
    for command in commands {
        all.push_str(&cluster.must(&[&["__party"], command, &CONFIG[..]].concat()));
    }
    all.into_bytes()
}

/// Returns the party's mask keys for the job, as a reader of its disk finds them while the job runs.
fn keys_of_masks(cluster: &Cluster, job: &str) -> (PairKeys, Roster) {
    let file = cluster.path("a/identity/ledger-secret.key");
    let digest: Vec<u8> = cluster
        .ledger(0)
        .query_row("SELECT spec_digest FROM jobs WHERE job = ?1", [job], |row| row.get(0))
        .expect("the job in the ledger");
    let digest = digest.try_into().expect("32 bytes");
    let key = MaskKeys::beside(&file, Secret::load(&file).expect("a secret")).load(job, &digest).expect("a file").expect("a key");
    let kept: Vec<u8> = cluster.store().query_row("SELECT roster FROM rosters", [], |row| row.get(0)).expect("a roster");
    let kept = v1::Roster::decode(kept.as_slice()).expect("a roster");
    let roster = roster::read(&kept.entries, job, &digest, 1).expect("a roster");
    (PairKeys::agree(&roster, 0, &key.secret).expect("keys"), roster)
}

/// Returns the first party's own numbers without their masks, each with its masked release.
fn numbers(cluster: &Cluster, job: &str, (keys, roster): &(PairKeys, Roster)) -> Vec<(i64, i64)> {
    let replay = Replay::of(&cluster.store(), job);
    let mut numbers = Vec::new();
    for (iteration, queries) in &replay.queries {
        let masks = keys.masks(&message_digest(&roster.digest(), *iteration, queries), queries.len());
        for (query, mask) in queries.iter().zip(masks) {
            if let Some((released, _)) = replay.releases.get(&(*iteration, query.chain)) {
                numbers.push((released[0].wrapping_sub(mask.cast_signed()), released[0]));
            }
        }
    }
    // The numbers are small, as sums of records and noise: with wrong masks each would be uniform over 2^64.
    assert!(numbers.iter().all(|(own, _)| own.unsigned_abs() < 1 << 50), "{numbers:?}");
    numbers
}

#[test]
fn no_output_of_a_running_party_contains_its_own_number() {
    let mut cluster = cluster();
    let sampler = "chains = 2\nwarmup = 2\ndraws = 1000000\nseed = 5\nproposal = { kind = \"guided\", radius = 0.05 }\n\
                   start = { intercept = 0.0, treated = 0.5, age = 0.5 }";
    let job = study::job(&NAMES, sampler, "epsilon = 900\ndelta = 1e-6") + &secure(1);
    let job = cluster.submit_only(&job);
    until("rounds", SOON, || cluster.rounds() > ROUNDS);
    let keys = keys_of_masks(&cluster, &job);
    // While the job runs, and after its end.
    let mut seen = all_outputs(&cluster, &job);
    seen.extend(files(&cluster.path("a")));
    cluster.must(&["cancel", &job]);
    until("the end at the party", SOON, || !cluster.path("a/identity/mask-keys").join(&job).exists());
    seen.extend(all_outputs(&cluster, &job));
    let output = cluster.must(&["__party", "verify", &job, CONFIG[0], CONFIG[1]]);
    seen.extend(output.into_bytes());
    cluster.signal_party(0, "TERM");
    assert!(cluster.wait_party_exit(0).success());
    seen.extend(files(&cluster.path("a")));
    for daemon in ["a", "coordinator"] {
        let log = cluster.log(daemon);
        assert!(log.contains("TRACE") && log.contains(&job), "{daemon} has no trace log");
        seen.extend(log.into_bytes());
    }
    seen.extend(files(&cluster.path("coordinator")));

    let numbers = numbers(&cluster, &job, &keys);
    let left: Vec<i64> = numbers.iter().map(|(_, left)| *left).take(100).collect();
    assert_eq!(found_in(&left, &seen).len(), left.len(), "the search finds known numbers");
    let own = large(numbers.iter().map(|(own, _)| *own));
    assert!(own.len() >= 20, "{numbers:?}");
    let either: Vec<i64> = own.iter().take(200).flat_map(|own| [*own, -*own]).collect();
    assert!(found_in(&either, &seen).is_empty(), "{:?} is shown", found_in(&either, &seen));

    // A ledger with one of them in place of its masked release would be detected.
    let planted = numbers.iter().find(|(own, _)| either.contains(own)).expect("a number");
    let store = Connection::open(cluster.path("a/ledger.sqlite")).expect("a ledger");
    assert_eq!(store.execute("UPDATE answers SET released = ?1 WHERE released = ?2", [planted.0, planted.1]), Ok(1));
    drop(store);
    assert_eq!(found_in(&either, &files(&cluster.path("a"))).into_iter().collect::<Vec<_>>(), [planted.0]);
}
