//! Rows with missing values: they stop the start, or are inert where the owner allows it. Their number stays private.

use std::fs;
use std::path::Path;

use conclave_tests::cluster::{Cluster, PartySetup};
use conclave_tests::study;

use crate::{EXE, setup, stderr};

/// Number of unusable rows, which nothing else in the run could show by chance.
const INERT: usize = 7919;
const USABLE: usize = 307;

#[test]
fn inert_rows_are_the_owners_secret() {
    let mut cluster = Cluster::new(EXE);
    let mut text = study::csv(&study::records(USABLE, 9));
    let first_bad_line = text.lines().count() + 1;
    for row in 0..INERT {
        text += ["1,,33\n", "0,1,NaN\n", "1,0,inf\n", ",1,41\n"][row % 4];
    }
    let data = study::write(&cluster.path("gaps.csv"), &text);

    cluster.enrol(&setup("stops", &data, 100.0));
    let output = cluster.run(&["__party", "run", "--config", "stops/party.toml"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in ["gaps.csv", &format!("line {first_bad_line}"), "\"treated\"", "bad_rows = \"drop\""] {
        assert!(said.contains(part), "{part} in {said}");
    }

    let data_extra = "bad_rows = \"drop\"";
    let columns = &study::COLUMNS;
    let party = cluster.enrol(&PartySetup {
        name: "drops",
        data: &data,
        columns,
        epsilon: 100.0,
        data_extra,
        budget_extra: "",
        policy_extra: "",
    });
    cluster.start_party(party);
    let text = study::job(&["drops"], "chains = 2\ndraws = 60\nwarmup = 5", "epsilon = 90.0\ndelta = 1e-6");
    // A job that does not admit such rows is refused with the remedy, whether there are any or not.
    let refused = cluster.run(&["submit", &cluster.write_job(&text), "--wait", "--json"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("incomplete_rows = true"), "{}", stderr(&refused));
    let job = cluster.write_job(&text.replace("[model]", "[model]\nincomplete_rows = true"));
    let run = cluster.run(&["submit", &job, "--wait", "--json"]);
    // Thirty draws of a warm-up of five rounds may be no adequate answer.
    assert!(matches!(run.status.code(), Some(0 | 3)), "{}", stderr(&run));
    let result = conclave_tests::cluster::json(std::str::from_utf8(&run.stdout).expect("UTF-8"));
    // The number of the file's rows is public, and no missing value changes it.
    assert_eq!(result["parties"][0]["records"], USABLE + INERT);

    // Only the owner knows how many of them are usable.
    let secrets = [INERT.to_string(), USABLE.to_string()];
    let check = cluster.run(&["__party", "run", "--check", "--config", "drops/party.toml"]);
    let printed = format!("{}{}", String::from_utf8_lossy(&check.stdout), stderr(&check));
    assert!(printed.contains(&secrets[0]), "the owner's check reports it: {printed}");
    let id = result["job"].as_str().expect("an id");
    // Logs are collected, and others than the owner read them.
    let mut public = vec![("the coordinator's log", cluster.log("coordinator")), ("the party's log", cluster.log("drops"))];
    public.push(("the analyst's output", format!("{}{}", String::from_utf8_lossy(&run.stdout), stderr(&run))));
    for args in [&["summary", id][..], &["jobs"], &["jobs", "--json"]] {
        public.push(("an analyst's command", cluster.must(args)));
    }
    public.push(("the coordinator's store", dump(&cluster)));
    for (whose, text) in &public {
        // Compares whole numbers: digits inside a longer number are not the count.
        let words: Vec<&str> = text.split(|c: char| !c.is_ascii_digit() && c != '.').collect();
        assert!(secrets.iter().all(|secret| !words.contains(&secret.as_str())), "{whose}: {text}");
        assert!(!text.contains("contribute zero to every answer") && !text.contains("inert"), "{whose}: {text}");
    }
    let draws = cluster.path("coordinator/draws");
    assert!(draws.is_dir());
    each_metadata(&draws, &mut |text| assert!(!text.contains(&secrets[0]), "{text}"));
}

/// Returns every value of every table of the coordinator's store, except releases, which are noisy.
fn dump(cluster: &Cluster) -> String {
    let store = cluster.store();
    let mut out = String::new();
    for table in ["jobs", "job_parties", "parties"] {
        let mut statement = store.prepare(&format!("SELECT * FROM {table}")).expect("SQL");
        let columns = statement.column_count();
        let mut rows = statement.query([]).expect("rows");
        while let Some(row) = rows.next().expect("a row") {
            for column in 0..columns {
                out += &format!("{table} {:?}\n", row.get_ref(column).expect("a value"));
            }
        }
    }
    out
}

fn each_metadata(folder: &Path, check: &mut dyn FnMut(&str)) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            each_metadata(&path, check);
        } else if path.file_name().is_some_and(|name| name == "zarr.json") {
            check(&fs::read_to_string(&path).expect("text"));
        }
    }
}
