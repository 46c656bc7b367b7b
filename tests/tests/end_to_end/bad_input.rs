//! Bad input: a message that names the fault, exit code 2, and nothing spent.

use std::path::Path;

use conclave_tests::books::charges;
use conclave_tests::cluster::{Cluster, PartySetup};
use conclave_tests::study;

use crate::{EXE, cluster, setup, stderr};

const SAMPLER: &str = "chains = 2\ndraws = 50\nwarmup = 5";
const PRIVACY: &str = "epsilon = 100.0\ndelta = 1e-6";

/// Name of the case, the replaced text of a good job, its replacement, and the words required in the message.
const JOBS: [(&str, &str, &str, &[&str]); 12] = [
    ("unknown key", "draws = 50", "drawz = 50", &["job.toml", "sampler.drawz", "`draws`"]),
    ("unknown key at the top", "name =", "nmae = 1\nname =", &["job.toml", "nmae"]),
    (
        "unknown column",
        "\"treated\", \"age\"]\n\n[columns]",
        "\"treated\", \"weight\"]\n\n[columns]\nweight = { min = 0, max = 9 }",
        &["weight", "a"],
    ),
    ("predictor without bounds", "age = { min = 20, max = 80 }\n", "", &["job.toml", "age"]),
    ("predictor with half a bound", "age = { min = 20, max = 80 }", "age = { min = 20 }", &["job.toml", "age"]),
    ("epsilon zero", "epsilon = 100.0", "epsilon = 0.0", &["job.toml", "privacy.epsilon"]),
    ("epsilon below zero", "epsilon = 100.0", "epsilon = -1.0", &["job.toml", "privacy.epsilon"]),
    ("delta one", "delta = 1e-6", "delta = 1.0", &["job.toml", "privacy.delta"]),
    ("delta above one", "delta = 1e-6", "delta = 7", &["job.toml", "privacy.delta"]),
    ("zero chains", "chains = 2", "chains = 0", &["job.toml", "sampler.chains"]),
    ("a party that is not enrolled", "parties = [\"a\", \"b\"]", "parties = [\"a\", \"z\"]", &["`z`", "parties"]),
    ("no job file at all", "name = \"small study\"", "name = ", &["job.toml"]),
];

#[test]
fn a_bad_job_is_refused_and_costs_nothing() {
    let cluster = cluster(&["a", "b"], 60, 200.0);
    let good = study::job(&["a", "b"], SAMPLER, PRIVACY);
    for (case, from, to, named) in JOBS {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{case}");
        let path = cluster.write_job(&bad);
        let output = cluster.run(&["submit", &path, "--wait", "--json"]);
        let said = stderr(&output);
        // Nobody may learn whether a party has a column that its policy does not name: the policy refuses it.
        let code = if case == "unknown column" { 3 } else { 2 };
        assert_eq!(output.status.code(), Some(code), "{case}: {said}");
        assert!(output.stdout.is_empty(), "{case}");
        assert!(named.iter().all(|name| said.contains(name)), "{case}: {said}");
    }
    check_nothing_spent(&cluster);
    // The good job is valid: each job above was refused for its own fault.
    let result = cluster.submit(&good);
    assert_eq!(result["stopped_by"], "draws");
}

fn check_nothing_spent(cluster: &Cluster) {
    for party in 0..cluster.names().len() {
        assert_eq!(charges(&cluster.ledger(party)), 0, "party {party}");
    }
    let states: Vec<String> = {
        let store = cluster.store();
        let mut statement = store.prepare("SELECT state FROM jobs").expect("SQL");
        let rows = statement.query_map([], |row| row.get(0)).expect("jobs");
        rows.collect::<Result<_, _>>().expect("states")
    };
    assert!(states.iter().all(|state| state == "failed"), "{states:?}");
}

/// A faulty data file stops its owner's daemon before it attaches, with exit code 2 and a message that names file and line.
#[test]
fn a_bad_data_file_stops_the_partys_start() {
    let mut cluster = Cluster::new(EXE);
    let good = study::csv(&study::records(20, 1));
    let text_in_a_number = {
        let mut lines: Vec<&str> = good.lines().collect();
        lines[7] = "1,0,unknown";
        lines.join("\n")
    };
    let cases: [(&str, String, &[&str]); 5] = [
        ("empty", String::new(), &["empty.csv", "empty"]),
        ("header-only", "readmitted,treated,age\n".to_owned(), &["header-only.csv", "no rows"]),
        ("text", text_in_a_number, &["text.csv", "line 8", "\"age\"", "not a number"]),
        ("no-column", good.replacen("age", "years", 1), &["no-column.csv", "\"age\""]),
        ("missing-value", good.clone() + "1,,40\n", &["missing-value.csv", "line 22", "\"treated\"", "missing"]),
    ];
    for (party, (name, text, named)) in cases.iter().enumerate() {
        let data = study::write(&cluster.path(&format!("{name}.csv")), text);
        cluster.enrol(&setup(name, &data, 10.0));
        let output = cluster.run(&["__party", "run", "--config", &format!("{name}/party.toml")]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{name}: {said}");
        assert!(named.iter().all(|part| said.contains(part)), "{name}: {said}");
        assert_eq!(charges(&cluster.ledger(party)), 0, "{name}");
    }
    let refused = cluster.run(&["submit", &cluster.write_job(&study::job(&["text"], SAMPLER, PRIVACY)), "--wait"]);
    assert_eq!(refused.status.code(), Some(2), "it never attached: {}", stderr(&refused));
    check_nothing_spent(&cluster);
}

/// A fault in an owner's configuration is reported with file and key.
#[test]
fn a_bad_party_configuration_is_named_by_its_key() {
    let cluster = Cluster::new(EXE);
    let path = cluster.path("party.toml");
    let good = format!(
        "name = \"a\"\ncoordinator = \"{}\"\nidentity = \"identity/\"\nledger = \"l.sqlite\"\n[data]\npath = \"a.csv\"\n\
         [budget]\nepsilon = 1.0\ndelta = 1e-6\n[policy]\napprove = \"automatic\"\n",
        cluster.url
    );
    for (from, to, named) in [
        ("epsilon = 1.0", "epsilon = 0.0", "epsilon"),
        ("delta = 1e-6", "delta = 1.0", "delta"),
        ("path =", "paht =", "data.paht"),
        ("https://", "http://", "coordinator"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good);
        study::write(&path, &bad);
        let output = cluster.run(&["__party", "init", "--yes", "--config", "party.toml"]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("party.toml") && said.contains(named), "{said}");
        assert!(!cluster.path("l.sqlite").exists());
    }
}

/// A refusal by an owner's policy is not the analyst's mistake: exit code 3, a message that names the party and the limit, and
/// nothing spent.
#[test]
fn a_policy_refuses_by_name() {
    let mut cluster = Cluster::new(EXE);
    let data = study::write(&cluster.path("a.csv"), &study::csv(&study::records(50, 2)));
    let party = |name: &'static str, policy: &'static str, data: &Path| (name, policy, data.to_owned());
    let parties = [
        party("limited", "max_epsilon_per_job = 1.0", &data),
        party("for-bob", "analysts = [\"bob\"]", &data),
        party("quiet", "min_noise_sd = 5.0", &data),
        party("means-only", "models = [\"gaussian_mean\"]", &data),
    ];
    for (name, policy, data) in &parties {
        let columns = &study::COLUMNS;
        let index = cluster.enrol(&PartySetup {
            name,
            data,
            columns,
            epsilon: 200.0,
            data_extra: "",
            budget_extra: "",
            policy_extra: policy,
        });
        cluster.start_party(index);
    }
    for (name, key) in
        [("limited", "max_epsilon_per_job"), ("for-bob", "alice"), ("quiet", "min_noise_sd"), ("means-only", "logistic")]
    {
        let job = cluster.write_job(&study::job(&[name], SAMPLER, PRIVACY));
        let output = cluster.run(&["submit", &job, "--wait"]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{name}: {said}");
        assert!(said.contains(name) && said.contains(key), "{name}: {said}");
    }
    check_nothing_spent(&cluster);
}
