//! Whatever unit an owner protects, and however the records are stored, a job opens and answers without the owner having to turn
//! off the reply delay.

use std::fs;

use conclave_tests::cluster::{Cluster, PartySetup};
use conclave_tests::study;
use serde_json::Value;

use crate::files::write_parquet;
use crate::{EXE, stderr};

const RELEASES: &str = "releases = [\"ratio\", \"score\", \"statistic\", \"table\"]";

/// A combination of protected unit and record storage.
struct Variant {
    name: String,
    data_extra: String,
    parquet: bool,
    /// True where the automatic delay can be measured, from public values.
    automatic: bool,
}

fn variants() -> Vec<Variant> {
    let mut variants = Vec::new();
    for person in [false, true] {
        for adjacency in ["replace", "add-remove"] {
            for memory in ["copies", "lean", "stream"] {
                let unit = if person { "person = \"who\"\nmax_records_per_person = 2\n" } else { "" };
                variants.push(Variant {
                    name: format!("{}-{adjacency}-{memory}", if person { "person" } else { "row" }),
                    data_extra: format!("{unit}adjacency = \"{adjacency}\"\nmemory = \"{memory}\""),
                    parquet: memory == "stream" && !person,
                    automatic: adjacency == "replace" && memory == "copies",
                });
            }
        }
    }
    variants
}

#[test]
fn every_unit_answers_at_the_default_delay_or_is_refused_before_it_starts() {
    let mut cluster = Cluster::new(EXE);
    let records = study::records(60, 5);
    let csv = cluster.path("records.csv");
    let rows = study::csv(&records);
    // Two rows per person; the last person has one row.
    let rows = rows
        .lines()
        .enumerate()
        .map(|(at, row)| format!("{row},{}\n", if at == 0 { "who".into() } else { format!("p{}", at / 2) }));
    fs::write(&csv, rows.collect::<String>()).expect("records");
    let parquet = cluster.path("records.parquet");
    write_parquet(&parquet, &records);
    for variant in variants() {
        let data = if variant.parquet { &parquet } else { &csv };
        let mut policy_extra = RELEASES.to_owned();
        if !variant.automatic {
            check_refused_without_a_delay(&cluster, &variant, data);
            policy_extra += "\nreply_delay_ms = 25";
        }
        let (name, data_extra, policy_extra) = (variant.name.as_str(), variant.data_extra.as_str(), policy_extra.as_str());
        let party = cluster.enrol(&PartySetup {
            name,
            data,
            columns: &study::COLUMNS,
            epsilon: 60.0,
            data_extra,
            budget_extra: "",
            policy_extra,
        });
        cluster.start_party(party);
        for algorithm in ["penalty", "noisy-statistics"] {
            let chains = if algorithm == "penalty" {
                "chains = 2\ndraws = 20\nwarmup = 2\nrecords_guess = 60"
            } else {
                "records_guess = 60"
            };
            let job =
                study::job(&[name], chains, "epsilon = 20.0\ndelta = 1e-6").replace("\"penalty\"", &format!("{algorithm:?}"));
            let result = cluster.submit(&job);
            assert_eq!(result["state"].as_str().unwrap_or("done"), "done", "{name}, {algorithm}: {result}");
            assert!(result["parties"][0]["queries"].as_u64().is_some_and(|n| n > 0), "{name}, {algorithm}: {result}");
        }
        // A release that the party cannot make for persons is refused with that reason, by the party or the coordinator, and
        // never as an internal fault.
        let statistic = "name = \"mean\"\nalgorithm = \"penalty-exp-family\"\nparties = [\"PARTY\"]\n[model]\nkind = \"gaussian_mean\"\noutcome = \"age\"\n\
                         sd = 9.0\n[columns]\nage = { min = 20, max = 80 }\n[sampler]\nchains = 1\ndraws = 5\nwarmup = 0\n[privacy]\nepsilon = 0.5\ndelta = 1e-6\n";
        let statistic = cluster.write_job(&statistic.replace("PARTY", name));
        let run = cluster.run(&["submit", &statistic, "--wait", "--json"]);
        // With --json the fault is an object, in which quotes are escaped.
        let said = stderr(&run).replace("\\\"", "\"");
        let row = variant.data_extra.starts_with("adjacency = \"replace\"");
        // Five draws are no adequate answer.
        let ended = run.status.code() == Some(3) && said.contains("the run has no adequate answer");
        assert_eq!(ended, row, "{name}: {said}");
        assert!(
            row || (said.contains("algorithm = \"penalty\"") && said.contains("protects a") && !said.contains("internal")),
            "{name}: {said}"
        );
        cluster.kill_party(party);
    }
}

/// Checks that an owner whose delay cannot be measured has to state a number; the key is named before anything starts.
fn check_refused_without_a_delay(cluster: &Cluster, variant: &Variant, data: &std::path::Path) {
    let text = format!(
        "name = \"x\"\ncoordinator = \"{}\"\nidentity = \"i\"\nledger = \"l\"\n[data]\npath = {data:?}\n{}\n[budget]\nepsilon = 1.0\ndelta = 1e-6\n",
        cluster.url, variant.data_extra
    );
    fs::write(cluster.path("undelayed.toml"), text).expect("a configuration");
    let check = cluster.run(&["__party", "run", "--config", "undelayed.toml"]);
    assert_eq!(check.status.code(), Some(2), "{}: {}", variant.name, stderr(&check));
    assert!(stderr(&check).contains("`policy.reply_delay_ms` must be a number"), "{}: {}", variant.name, stderr(&check));
}

/// The audit attacks the answer path for the owner's unit, whatever that is.
#[test]
fn every_unit_is_audited() {
    let mut cluster = Cluster::new(EXE);
    let csv = cluster.path("records.csv");
    fs::write(&csv, "who,readmitted,treated,age\na,0,1,30\nb,1,0,50\n").expect("records");
    for variant in variants().iter().filter(|variant| variant.data_extra.contains("memory = \"copies\"")) {
        let policy_extra = if variant.automatic { RELEASES } else { "reply_delay_ms = 25" };
        let (name, data_extra) = (variant.name.as_str(), variant.data_extra.as_str());
        cluster.enrol(&PartySetup {
            name,
            data: &csv,
            columns: &study::COLUMNS,
            epsilon: 2.0,
            data_extra,
            budget_extra: "",
            policy_extra,
        });
        let report: Value = conclave_tests::cluster::json(&cluster.must(&[
            "__party",
            "audit",
            "--config",
            &format!("{name}/party.toml"),
            "--replicates",
            "1000",
            "--json",
        ]));
        assert_eq!(report["holds"], true, "{name}: {report}");
    }
}
