//! A party checks the coordinator: an honest log passes, and every lie is found and named.

use std::fs;
use std::time::Duration;

use conclave_tests::cluster::{Cluster, json};
use conclave_tests::study;
use conclave_tests::zarr;
use rusqlite::Connection;
use serde_json::Value;

use crate::{cluster, stderr};

const NAMES: [&str; 2] = ["a", "b"];
const CHECKS: [&str; 6] = ["signature", "consent", "answers", "proposals", "draws", "result"];
const DRAWS: u64 = 60;
/// Cheap rounds, so that a job runs for as long as a test needs.
const WALK: &str = "chains = 2\nwarmup = 0\nseed = 3\nproposal = { kind = \"guided\", radius = 0.05 }\n\
                    start = { intercept = 0.0, treated = 0.5, age = 0.5 }";

/// Returns the exit code and the report of a party's check.
pub(crate) fn verify(cluster: &Cluster, party: &str, job: &str) -> (i32, Value) {
    let output = cluster.run(&["__party", "verify", job, "--config", &format!("{party}/party.toml"), "--json"]);
    let text = String::from_utf8(output.stdout.clone()).expect("UTF-8");
    assert!(!text.is_empty(), "{}", stderr(&output));
    (output.status.code().expect("an exit code"), json(&text))
}

/// Returns the names of checks with this outcome.
pub(crate) fn named<'r>(report: &'r Value, outcome: &str) -> Vec<&'r str> {
    let checks = report["checks"].as_array().expect("checks").iter();
    checks.filter(|check| check["result"] == outcome).map(|check| check["name"].as_str().expect("a name")).collect()
}

pub(crate) fn detail<'r>(report: &'r Value, name: &str) -> &'r str {
    let checks = report["checks"].as_array().expect("checks");
    checks.iter().find(|check| check["name"] == name).and_then(|check| check["detail"].as_str()).expect("a detail")
}

pub(crate) fn all_hold(cluster: &Cluster, job: &str) -> Value {
    let mut last = Value::Null;
    for party in NAMES {
        let (code, report) = verify(cluster, party, job);
        assert_eq!((code, named(&report, "holds")), (0, CHECKS.to_vec()), "{report:#}");
        last = report;
    }
    last
}

fn id(result: &Value) -> String {
    result["job"].as_str().expect("an id").to_owned()
}

#[test]
fn an_honest_log_passes_at_every_party() {
    let mut cluster = cluster(&NAMES, 150, 500.0);
    let sampler = format!("chains = 2\ndraws = {DRAWS}\nwarmup = 5\nseed = 4");
    let first = id(&cluster.submit(&study::job(&NAMES, &sampler, "epsilon = 150\ndelta = 1e-6")));
    let report = all_hold(&cluster, &first);
    assert_eq!((&report["rounds"], &report["draws"]), (&cluster.rounds().into(), &DRAWS.into()));
    // In readable form, and by the beginning of the id.
    let shown = cluster.must(&["__party", "verify", &first[..8], "--config", "a/party.toml"]);
    assert!(shown.contains("signature  | holds") && shown.contains("bit for bit"), "{shown}");

    let second = id(&json(&cluster.must(&["extend", &first, "--draws", "20", "--epsilon", "50", "--wait", "--json"])));
    assert_eq!(all_hold(&cluster, &second)["draws"], 20);
    let share = "name = \"share\"\nalgorithm = \"penalty-exp-family\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"bernoulli\"\n\
                 outcome = \"readmitted\"\n[columns]\nreadmitted = { binary = true }\n[sampler]\nchains = 2\ndraws = 40\nwarmup = 5\n\
                 seed = 3\n[privacy]\nepsilon = 20\ndelta = 1e-6\n";
    let third = id(&cluster.submit(share));
    all_hold(&cluster, &third);
    // A job that its budget ended in the middle.
    let walk = format!("{WALK}\ndraws = 100000");
    let fourth = cluster.submit(&study::job(&NAMES, &walk, "epsilon = 3\ndelta = 1e-6"));
    assert_eq!(fourth["stopped_by"], "budget");
    all_hold(&cluster, &id(&fourth));

    // An unknown job, a job of other parties, and an unreachable coordinator.
    let command = |cluster: &Cluster, job: &str| {
        let output = cluster.run(&["__party", "verify", job, "--config", "a/party.toml", "--json"]);
        (output.status.code(), stderr(&output))
    };
    assert_eq!(command(&cluster, "00000000").0, Some(2));
    let alone = id(&cluster.submit(&study::job(&["b"], &format!("{WALK}\ndraws = 5"), "epsilon = 5\ndelta = 1e-6")));
    assert_eq!(command(&cluster, &alone).0, Some(2));
    cluster.kill_coordinator();
    let (code, said) = command(&cluster, &first);
    assert!(code == Some(4) && said.contains("cannot be reached"), "{code:?} {said}");
}

#[test]
fn a_job_is_checked_while_it_runs_and_once_it_is_cancelled() {
    let mut cluster = cluster(&NAMES, 50, 900.0);
    let job = cluster.submit_only(&study::job(&NAMES, &format!("{WALK}\ndraws = 1000000"), "epsilon = 900\ndelta = 1e-6"));
    cluster.wait_status(&job, Duration::from_secs(60), "draws", |status| status["draws"].as_u64() > Some(50));
    let mut before = 0;
    for party in NAMES.into_iter().cycle().take(6) {
        let (code, report) = verify(&cluster, party, &job);
        assert_eq!((code, named(&report, "fails").len()), (0, 0), "{report:#}");
        assert_eq!(named(&report, "skipped"), ["result"], "{report:#}");
        let rounds = report["rounds"].as_u64().expect("a number");
        assert!(rounds >= before && rounds > 50, "{report:#}");
        before = rounds;
    }
    // One party stops, and returns to a cancelled job.
    cluster.kill_party(1);
    cluster.wait_status(&job, Duration::from_secs(60), "a pause", |status| status["state"] == "paused");
    assert_eq!(verify(&cluster, "b", &job).0, 0);
    cluster.must(&["cancel", &job]);
    all_hold(&cluster, &job);
}

/// A finished job whose coordinator is stopped, with a copy of its store.
pub(crate) struct Baseline {
    pub(crate) cluster: Cluster,
    parties: &'static [&'static str],
    job: String,
    pub(crate) draws: std::path::PathBuf,
}

impl Baseline {
    fn new() -> Self {
        let mut cluster = cluster(&NAMES, 150, 500.0);
        let sampler = format!("chains = 2\ndraws = {DRAWS}\nwarmup = 5\nseed = 4");
        let result = cluster.submit(&study::job(&NAMES, &sampler, "epsilon = 150\ndelta = 1e-6"));
        cluster.kill_coordinator();
        Self::after(cluster, &NAMES, &result)
    }

    /// Creates it from a job that has finished with this result at these parties.
    pub(crate) fn after(cluster: Cluster, parties: &'static [&'static str], result: &Value) -> Self {
        let job = id(result);
        // Unpacked into a folder, as earlier versions stored draws.
        let draws = zarr::unpack(result["draws"].as_str().expect("a path").as_ref());
        let honest = Self { cluster, parties, job, draws };
        // Merges the write-ahead log into the file.
        let store = honest.store();
        store.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("a checkpoint");
        drop(store);
        fs::copy(honest.path("coordinator.sqlite"), honest.path("honest.sqlite")).expect("a copy");
        honest
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.cluster.path("coordinator").join(name)
    }

    pub(crate) fn store(&self) -> Connection {
        Connection::open(self.path("coordinator.sqlite")).expect("the store")
    }

    /// Plants a lie in the stopped coordinator's store, lets each party check it, and restores the store.
    pub(crate) fn plant(&mut self, what: &str, lie: impl FnOnce(&Self), mut found: impl FnMut(&str, &Value)) {
        lie(self);
        self.cluster.start_coordinator();
        for party in self.parties {
            let (code, report) = verify(&self.cluster, party, &self.job);
            assert_eq!(code, 3, "{what}: {report:#}");
            found(party, &report);
        }
        self.cluster.kill_coordinator();
        for log in ["coordinator.sqlite-wal", "coordinator.sqlite-shm"] {
            let _ = fs::remove_file(self.path(log));
        }
        fs::copy(self.path("honest.sqlite"), self.path("coordinator.sqlite")).expect("a copy");
    }

    pub(crate) fn execute(&self, sql: &str) {
        assert_eq!(self.store().execute(sql, []).expect("SQL"), 1, "{sql}");
    }
}

/// Adds to one party's answer to a round's first query, in a log of two chains and two parties.
fn change_release(honest: &Baseline, round: u64, party: usize, by: i64) {
    let store = honest.store();
    let mut blob: Vec<u8> =
        store.query_row("SELECT releases FROM rounds WHERE iteration = ?1", [round], |row| row.get(0)).expect("the round");
    let at = blob.len() / 2 * party;
    let old = i64::from_le_bytes(blob[at..at + 8].try_into().expect("eight bytes"));
    blob[at..at + 8].copy_from_slice(&(old + by).to_le_bytes());
    store.execute("UPDATE rounds SET releases = ?1 WHERE iteration = ?2", (blob, round)).expect("SQL");
}

/// Returns the first round that rejected the proposal of chain 0, which a much greater release would have accepted.
fn rejected_round(honest: &Baseline) -> u64 {
    let stats = honest.draws.join("sample_stats");
    let (accepted, log_alpha) = (zarr::read::<bool>(&stats.join("accepted")), zarr::read::<f64>(&stats.join("log_alpha")));
    let has_decision = |draw: &usize| !accepted[0][*draw] && log_alpha[0][*draw].is_finite();
    let draw = (0..DRAWS as usize / 2).find(has_decision).expect("half of the draws are not all accepted");
    zarr::read::<i64>(&stats.join("iteration"))[0][draw].unsigned_abs()
}

#[test]
fn every_lie_is_found_and_named() {
    let mut honest = Baseline::new();
    let last = honest.cluster.rounds() - 1;
    let rejected_round = rejected_round(&honest);

    honest.plant(
        "a release changed by one",
        |h| change_release(h, last, 0, 1),
        |party, report| {
            // The party that made the release detects it directly; others see it in the chain's decision and the fit to all
            // releases.
            let expected: &[&str] = if party == "a" { &["answers", "draws", "result"] } else { &["draws", "result"] };
            assert_eq!(named(report, "fails"), expected, "{report:#}");
            if party == "a" {
                assert!(detail(report, "answers").contains(&format!("answer to round {last}, chain 0")), "{report:#}");
            }
            assert!(detail(report, "draws").contains("sample_stats/log_alpha, chain 0"), "{report:#}");
            assert!(detail(report, "result").contains("surrogate, "), "{report:#}");
        },
    );
    honest.plant(
        "a release changed by far",
        |h| change_release(h, rejected_round, 1, 1 << 42),
        |party, report| {
            let fails = named(report, "fails");
            assert_eq!(fails.contains(&"answers"), party == "b", "{report:#}");
            assert!(fails.contains(&"draws") && fails.contains(&"result") && fails.contains(&"proposals"), "{report:#}");
            assert!(detail(report, "proposals").contains("another query than the log implies"), "{report:#}");
        },
    );
    honest.plant(
        "a round dropped",
        |h| h.execute(&format!("DELETE FROM rounds WHERE iteration = {}", last / 2)),
        |_, report| {
            assert_eq!(named(report, "fails"), ["answers", "proposals"], "{report:#}");
            assert_eq!(named(report, "skipped"), ["draws", "result"]);
            assert!(detail(report, "answers").contains(&format!("round {}, which this party answered", last / 2)));
            assert!(detail(report, "proposals").contains(&format!("the job expects round {}", last / 2)), "{report:#}");
        },
    );
    honest.plant(
        "the last round dropped",
        |h| h.execute(&format!("DELETE FROM rounds WHERE iteration = {last}")),
        |_, report| {
            assert_eq!(named(report, "fails"), ["answers", "proposals"], "{report:#}");
            assert!(detail(report, "proposals").contains(&format!("ends before round {last}")), "{report:#}");
        },
    );
    honest.plant(
        "the same with the job marked as cancelled",
        |h| {
            h.execute(&format!("DELETE FROM rounds WHERE iteration = {last}"));
            h.execute("UPDATE jobs SET state = 'cancelled', result = replace(result, '\"stopped_by\":\"draws\"', '\"stopped_by\":\"cancelled\"')");
        },
        |_, report| assert_eq!(named(report, "fails"), ["draws", "result"], "{report:#}"),
    );
    honest.plant(
        "a round damaged",
        |h| h.execute("UPDATE rounds SET releases = x'00' WHERE iteration = 7"),
        |_, report| {
            assert_eq!(named(report, "fails")[0], "log", "{report:#}");
            assert!(detail(report, "log").contains("round 7"), "{report:#}");
        },
    );
    honest.plant(
        "another seed",
        |h| h.execute("UPDATE jobs SET spec = replace(spec, 'seed = 4', 'seed = 5')"),
        |_, report| {
            assert_eq!(named(report, "fails"), ["signature", "consent"], "{report:#}");
            assert!(detail(report, "consent").contains("was changed afterwards"), "{report:#}");
        },
    );
    honest.plant(
        "another analyst",
        |h| h.execute("UPDATE jobs SET analyst = 'mallory'"),
        |_, report| {
            assert_eq!(named(report, "fails"), ["signature", "consent"], "{report:#}");
        },
    );
    honest.plant(
        "other records",
        |h| h.execute("UPDATE job_parties SET records = 149 WHERE party = 'a'"),
        |party, report| {
            let fails = named(report, "fails");
            assert_eq!(fails.contains(&"consent"), party == "a", "{report:#}");
            assert!(fails.contains(&"proposals"), "{report:#}");
        },
    );
    honest.plant(
        "no result",
        |h| h.execute("UPDATE jobs SET result = NULL"),
        |_, report| {
            assert_eq!(named(report, "fails"), ["result"], "{report:#}");
        },
    );
    let denied = "UPDATE jobs SET id = '00000000-0000-8000-a000-000000000000'";
    honest.plant(
        "a job denied",
        |h| h.execute(denied),
        |_, report| {
            assert_eq!(named(report, "fails"), ["log"], "{report:#}");
            assert!(detail(report, "log").contains("has no job"), "{report:#}");
        },
    );
    plant_in_result(&mut honest);
    plant_in_draws(&mut honest);
    // The restored store is still honest.
    honest.cluster.start_coordinator();
    all_hold(&honest.cluster, &honest.job);
}

/// Changes figures of every kind in the result by the last bit.
fn plant_in_result(honest: &mut Baseline) {
    for (pointer, word) in [
        ("/posterior/2/mean", "posterior, mean of age"),
        ("/posterior_original/1/q95", "posterior_original, q95 of treated"),
        ("/acceptance_rate", "acceptance_rate"),
        ("/surrogate/chi2", "surrogate, chi2"),
        ("/continuation/states/1/0", "continuation"),
    ] {
        let change = |honest: &Baseline| {
            let store = honest.store();
            let text: String = store.query_row("SELECT result FROM jobs", [], |row| row.get(0)).expect("a result");
            let mut result = json(&text);
            // The figures of an answer that is not adequate stand apart.
            let place = if result.pointer(pointer).is_some() { pointer.to_owned() } else { format!("/inadequate{pointer}") };
            let figure = result.pointer_mut(&place).expect("a figure");
            let value = figure.as_f64().expect("a number");
            *figure = f64::from_bits(value.to_bits() + 1).into();
            store.execute("UPDATE jobs SET result = ?1", [result.to_string()]).expect("SQL");
        };
        honest.plant(pointer, change, |_, report| {
            assert_eq!(named(report, "fails"), ["result"], "{report:#}");
            assert!(detail(report, "result").contains(word), "{report:#}");
        });
    }
}

/// Changes draws on disk where readers of draws would read them.
fn plant_in_draws(honest: &mut Baseline) {
    let changed = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let path = honest.draws.join(name);
        let kept = fs::read(&path).expect("a file");
        let mut bytes = kept.clone();
        change(&mut bytes);
        assert_ne!(bytes, kept, "{name}");
        (path, kept, bytes)
    };
    let text = |from: &'static str, to: &'static str| {
        move |bytes: &mut Vec<u8>| *bytes = String::from_utf8(bytes.clone()).expect("text").replacen(from, to, 1).into_bytes()
    };
    let bit = |at: usize| move |bytes: &mut Vec<u8>| bytes[at] ^= 1;
    let lies = [
        (changed("posterior/age/c/1/0", &bit(8 * 17)), "posterior/age, chain 1, draw 17"),
        (changed("warmup_posterior/treated/c/0/0", &bit(3)), "warmup_posterior/treated, chain 0, draw 0"),
        (changed("sample_stats/accepted/c/0/0", &bit(59)), "sample_stats/accepted, chain 0, draw 59"),
        (changed("posterior/draw/c/0", &bit(80)), "posterior/draw, chain 0, draw 10"),
        (
            changed("posterior/intercept/zarr.json", &text("    2,\n    60", "    2,\n    59")),
            "posterior/intercept is published with 59",
        ),
        (changed("posterior/intercept/zarr.json", &text("little", "big")), "does not describe an array"),
    ];
    for ((path, kept, bytes), word) in lies {
        honest.plant(
            word,
            |_| fs::write(&path, &bytes).expect("a lie"),
            |_, report| {
                assert_eq!(named(report, "fails"), ["draws"], "{report:#}");
                assert!(detail(report, "draws").contains(word), "{report:#}");
            },
        );
        fs::write(&path, kept).expect("the truth");
    }
    let (part, aside) = (honest.draws.join("posterior/age/c/0/0"), honest.draws.join("../aside"));
    honest.plant(
        "a file gone",
        |_| fs::rename(&part, &aside).expect("moved"),
        |_, report| {
            assert_eq!(named(report, "fails"), ["draws"], "{report:#}");
            assert!(detail(report, "draws").contains("part 0 of row 0 is not published"), "{report:#}");
        },
    );
    fs::rename(&aside, &part).expect("moved back");
}
