//! Mistakes in the records, which no answer shows, are reported to the owner only.

use std::fs;

use conclave_tests::cluster::{Cluster, PartySetup, json};
use conclave_tests::study;

use crate::{EXE, stderr};

/// Words of the finding for each mistake in the file below.
const FOUND: [&str; 3] =
    ["of age are -99, far below all others", "of age lie outside 20 to 80", "of treated are neither 0 nor 1"];

#[test]
fn mistakes_in_the_records_are_reported_to_the_owner_only() {
    let mut cluster = Cluster::new(EXE);
    let mut records = study::records(400, 12);
    records.iter_mut().step_by(20).for_each(|record| record[2] = -99.0);
    records.iter_mut().skip(7).step_by(20).for_each(|record| record[1] = 2.0);
    let data = study::write(&cluster.path("slips.csv"), &study::csv(&records));
    let columns = &study::COLUMNS;
    let policy_extra = "reply_delay_ms = 0";
    let party = cluster.enrol(&PartySetup {
        name: "slips",
        data: &data,
        columns,
        epsilon: 100.0,
        data_extra: "",
        budget_extra: "",
        policy_extra,
    });
    let config = cluster.path("slips/party.toml");
    let text = fs::read_to_string(&config).expect("a configuration").replace("\"automatic\"", "\"manual\"");
    fs::write(&config, text).expect("a configuration");
    cluster.start_party(party);
    let text = study::job(&["slips"], "chains = 2\ndraws = 40\nwarmup = 5", "epsilon = 90.0\ndelta = 1e-6");
    let job = cluster.submit_only(&text);
    cluster.wait_status(&job, std::time::Duration::from_secs(20), "the owner's turn", |status| {
        cluster.run(&["__party", "jobs", "--config", "slips/party.toml"]).stdout.windows(19).any(|w| w == b"waiting for consent")
            && status["state"] != ""
    });

    // Each of the owner's commands reports the findings, which do not change its exit code.
    for (args, counted) in
        [(&["run", "--check"][..], FOUND.len()), (&["doctor", "--json"], FOUND.len()), (&["approve", &job, "--yes"], FOUND.len())]
    {
        let output = cluster.run(&[&["__party"], args, &["--config", "slips/party.toml"]].concat());
        let printed = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {printed}{}", stderr(&output));
        assert_eq!(FOUND.iter().filter(|found| printed.contains(**found)).count(), counted, "{args:?}: {printed}");
    }
    let done = cluster.wait_status(&job, std::time::Duration::from_secs(60), "the end", |status| status["state"] == "finished");
    assert_eq!(done["draws"], 40, "{done}");

    // Logs are collected; the analyst and the coordinator have the other outputs.
    let mut public = vec![("the coordinator's log", cluster.log("coordinator")), ("the party's log", cluster.log("slips"))];
    for args in [&["summary", &job][..], &["summary", &job, "--json"], &["jobs"], &["jobs", "--json"]] {
        public.push(("an analyst's command", cluster.must(args)));
    }
    public.push(("the party's ledger", cluster.must(&["__party", "export", "--config", "slips/party.toml"])));
    let store: Vec<u8> = ["", "-wal"]
        .iter()
        .flat_map(|end| fs::read(cluster.path(&format!("coordinator/coordinator.sqlite{end}"))).unwrap_or_default())
        .collect();
    public.push(("the coordinator's store", String::from_utf8_lossy(&store).into_owned()));
    for (whose, text) in &public {
        for finding in ["far below", "lie outside", "neither 0 nor 1", "are -99", "slips.csv: warning"] {
            assert!(!text.contains(finding), "{finding:?} in {whose}: {text}");
        }
    }

    // A rehearsal prints the findings beside its result and not in it, since the result is passed on.
    let path = cluster.write_job(&text);
    let file = data.to_str().expect("a plain path");
    let rehearsal = cluster.run(&["rehearse", &path, "--data", file, "--json", "--noise-seed", "1"]);
    assert!(rehearsal.status.success(), "{}", stderr(&rehearsal));
    assert!(FOUND.iter().all(|found| stderr(&rehearsal).contains(found)), "{}", stderr(&rehearsal));
    let object = String::from_utf8_lossy(&rehearsal.stdout).into_owned();
    assert!(json(&object)["plan"].is_object() && FOUND.iter().all(|found| !object.contains(found)), "{object}");
    // Where no row contributes, the error blames the file and not the budget.
    let path = cluster.write_job(&text.replace("treated = { binary = true }", "treated = { levels = [\"no\", \"yes\"] }"));
    let rehearsal = cluster.run(&["rehearse", &path, "--data", file]);
    let said = stderr(&rehearsal);
    assert_eq!(rehearsal.status.code(), Some(2), "{said}");
    assert!(said.contains("none of 400 rows contributes to the job") && !said.contains("epsilon"), "{said}");
}
