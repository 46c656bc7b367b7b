//! The owner's consent as an owner and an analyst see it: real processes, and the owner's commands beside the running daemon.

use std::fs;
use std::time::Duration;

use conclave_tests::cluster::{Cluster, PartySetup, json};
use conclave_tests::study;
use conclave_tests::wait::until;
use serde_json::Value;

use crate::EXE;

const PATIENCE: Duration = Duration::from_secs(60);
const NO_SEARCH: &str = "warmup = 2\nseed = 5\nproposal = { kind = \"guided\", radius = 0.08 }\n\
                         start = { intercept = 0.0, treated = 0.5, age = 0.5 }";
const PRIVACY: &str = "epsilon = 300\ndelta = 1e-6";

/// Starts parties of these names with 300 records each, those in `manual` deciding by hand; `data` are lines added to `[data]`.
fn cluster(names: &[&str], manual: &[&str], data: &str) -> Cluster {
    let mut cluster = Cluster::new(EXE);
    for (seed, name) in names.iter().enumerate() {
        let mut text = String::from("who,");
        text += &study::csv(&study::records(300, seed as u64));
        // Persons of three rows each.
        let text: Vec<String> =
            text.lines().enumerate().map(|(i, l)| if i == 0 { l.into() } else { format!("p{},{l}", i / 3) }).collect();
        let path = study::write(&cluster.path(&format!("{name}.csv")), &(text.join("\n") + "\n"));
        let setup = PartySetup {
            name,
            data: &path,
            columns: &study::COLUMNS,
            epsilon: 400.0,
            data_extra: data,
            budget_extra: "",
            policy_extra: "reply_delay_ms = 0",
        };
        let party = cluster.enrol(&setup);
        if manual.contains(name) {
            let config = cluster.path(name).join("party.toml");
            let text = fs::read_to_string(&config).expect("a configuration").replace("\"automatic\"", "\"manual\"");
            fs::write(&config, text).expect("a configuration");
        }
        cluster.start_party(party);
    }
    cluster
}

/// Runs one of the owner's commands.
fn owner(cluster: &Cluster, name: &str, args: &[&str]) -> String {
    cluster.must(&command(name, args))
}

fn command<'a>(name: &'a str, args: &[&'a str]) -> Vec<&'a str> {
    let config = match name {
        "a" => "a/party.toml",
        "b" => "b/party.toml",
        other => panic!("no party {other}"),
    };
    let mut all = vec!["__party"];
    all.extend(args);
    all.extend(["--config", config]);
    all
}

fn state_at(cluster: &Cluster, name: &str, job: &str) -> String {
    let list = json(&owner(cluster, name, &["jobs", "--json"]));
    let jobs = list["jobs"].as_array().expect("jobs");
    let job = jobs.iter().find(|j| j["job"] == job).unwrap_or_else(|| panic!("no job {job} in {list}"));
    job["state"].as_str().expect("a state").to_owned()
}

fn awaits(status: &Value, names: &[&str]) -> bool {
    status["awaiting_consent"].as_array().is_some_and(|all| all.iter().filter_map(Value::as_str).eq(names.iter().copied()))
}

#[test]
fn a_job_starts_when_its_last_owner_approves() {
    let cluster = cluster(&["a", "b"], &["a", "b"], "");
    let sampler = format!("chains = 2\ndraws = 40\n{NO_SEARCH}");
    let job = cluster.submit_only(&study::job(&["a", "b"], &sampler, PRIVACY));
    let status = cluster.wait_status(&job, PATIENCE, "both owners", |s| awaits(s, &["a", "b"]));
    assert_eq!((status["state"].as_str(), status["draws"].as_u64()), (Some("opening"), Some(0)));
    assert_eq!(state_at(&cluster, "a", &job), "awaiting");

    // The command shows the job before it asks for approval; without a terminal, nothing is approved.
    let refused = cluster.run(&command("a", &["approve", &job]));
    let shown = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert_eq!(refused.status.code(), Some(2));
    for part in
        ["logistic regression of readmitted", "age, clamped to 20 to 80", "worst case", "epsilon 300", "SHA-256", "one row"]
    {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    assert_eq!(state_at(&cluster, "a", &job), "awaiting");
    owner(&cluster, "a", &["approve", &job[..8], "--yes"]);
    let status = cluster.wait_status(&job, PATIENCE, "owner b alone", |s| awaits(s, &["b"]));
    assert_eq!(status["waiting_for"], serde_json::json!(["b"]));
    owner(&cluster, "b", &["approve", &job, "--yes"]);
    cluster.wait_status(&job, PATIENCE, "the end", |s| s["state"] == "finished");
    // An owner hears of the end a moment after the coordinator has stored it.
    until("both closed", PATIENCE, || ["a", "b"].map(|owner| state_at(&cluster, owner, &job)) == ["closed", "closed"]);
    let again = cluster.run(&command("b", &["reject", &job, "--reason", "too late"]));
    assert_eq!(again.status.code(), Some(2));
}

#[test]
fn a_rejection_ends_the_job_with_the_owners_reason() {
    let cluster = cluster(&["a", "b"], &["b"], "");
    let job = cluster.submit_only(&study::job(&["a", "b"], &format!("chains = 2\ndraws = 40\n{NO_SEARCH}"), PRIVACY));
    cluster.wait_status(&job, PATIENCE, "owner b", |s| awaits(s, &["b"]));
    owner(&cluster, "b", &["reject", &job, "--reason", "age is not ours to give"]);
    let status = cluster.wait_status(&job, PATIENCE, "the end", |s| s["state"] == "failed");
    let error = status["error"].as_str().expect("a reason");
    assert_eq!(status["error_code"], "policy", "{status}");
    assert!(error.contains('b') && error.contains("age is not ours to give"), "{error}");
    assert_eq!(state_at(&cluster, "b", &job), "rejected");
    cluster.must(&["report", &job, "-o", "rejected.html"]);
    let page = std::fs::read_to_string(cluster.path("rejected.html")).expect("a report");
    for part in ["Failed before its first draw", "age is not ours to give", "nothing was spent", "What to do"] {
        assert!(page.contains(part), "{part} in {page}");
    }
}

#[test]
fn a_coordinator_that_changes_an_approved_job_is_refused() {
    let mut cluster = cluster(&["a"], &["a"], "");
    let job = cluster.submit_only(&study::job(&["a"], &format!("chains = 2\ndraws = 40\n{NO_SEARCH}"), PRIVACY));
    cluster.wait_status(&job, PATIENCE, "the owner", |s| awaits(s, &["a"]));
    owner(&cluster, "a", &["approve", &job, "--yes"]);
    cluster.wait_status(&job, PATIENCE, "the end", |s| s["state"] == "finished");
    let before = numbers(&cluster);

    // Other bounds under the approved id.
    cluster.kill_coordinator();
    let store = rusqlite::Connection::open(cluster.path("coordinator/coordinator.sqlite")).expect("a store");
    let changed = store
        .execute("UPDATE jobs SET spec = replace(spec, 'max = 80', 'max = 81'), state = 'queued' WHERE id = ?1", [&job])
        .expect("a change");
    store.execute("DELETE FROM rounds", []).expect("a change");
    drop(store);
    assert_eq!(changed, 1);
    cluster.start_coordinator();
    let status = cluster.wait_status(&job, PATIENCE, "a refusal", |s| s["state"] == "failed");
    assert_eq!(status["error_code"], "unauthenticated", "{status}");
    assert!(status["error"].as_str().is_some_and(|e| e.contains("signature")), "{status}");
    assert_eq!(numbers(&cluster), before, "no release under the changed text");
}

/// Returns the number of releases charged at party 0.
fn numbers(cluster: &Cluster) -> u64 {
    cluster.ledger(0).query_row("SELECT count(*) FROM charges", [], |row| row.get(0)).expect("a count")
}

#[test]
fn a_consent_withdrawn_in_the_middle_keeps_the_draws_made_before() {
    let cluster = cluster(&["a", "b"], &["a"], "");
    let spec = study::job(&["a", "b"], &format!("chains = 2\ndraws = 100000\n{NO_SEARCH}"), PRIVACY);
    let path = cluster.write_job(&spec.replace("radius = 0.08", "radius = 0.001"));
    let child = cluster.start(&["submit", &path, "--wait", "--json"]);
    let job = loop {
        let list = json(&cluster.must(&["jobs", "--json"]));
        if let Some(job) = list["jobs"][0]["job"].as_str() {
            break job.to_owned();
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    cluster.wait_status(&job, PATIENCE, "the owner", |s| awaits(s, &["a"]));
    owner(&cluster, "a", &["approve", &job, "--yes"]);
    cluster.wait_status(&job, PATIENCE, "some draws", |s| s["draws"].as_u64() > Some(30));
    let status = json(&owner(&cluster, "a", &["status", "--json"]));
    assert_eq!((&status["running"], &status["daemon"]["attached"]), (&Value::Bool(true), &Value::Bool(true)), "{status}");
    assert!(owner(&cluster, "a", &["status", "--attached"]).contains("attached to https://"));
    assert_eq!(state_at(&cluster, "a", &job), "running");

    owner(&cluster, "a", &["revoke", &job, "--reason", "a patient objects"]);
    let output = child.wait_with_output().expect("the analyst's command");
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(printed.contains("the consent to this job was revoked by the owner of a: a patient objects"), "{printed}");
    assert_eq!(cluster.status(&job)["error_code"], "revoked");
    let result = json(std::str::from_utf8(&output.stdout).expect("UTF-8"));
    assert_eq!(result["stopped_by"], "policy");
    assert!(result["draws_per_chain"].as_u64() > Some(30), "{result}");
    assert!(conclave_tests::cluster::figures(&result)["posterior"].as_array().is_some_and(|rows| rows.len() == 3));
    assert_eq!(state_at(&cluster, "a", &job), "revoked");

    // Nothing is charged afterwards, and the released numbers are reported.
    let after = numbers(&cluster);
    assert_eq!(result["parties"][0]["queries"].as_u64(), Some(after), "{result}");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(numbers(&cluster), after);
    let statement = owner(&cluster, "a", &["statement", &job]);
    for part in ["a patient objects", &after.to_string(), "revoked by the data owner", "not one person"] {
        assert!(statement.contains(part), "{part} is not in {statement}");
    }
    assert!(owner(&cluster, "a", &["statement", &job, "--html"]).starts_with("<!doctype html>"));
}

#[test]
fn persons_are_priced_alike_on_both_sides_and_their_rows_stay_uncounted() {
    let cluster = cluster(&["a"], &[], "person = \"who\"\nmax_records_per_person = 2");
    let result = cluster.submit(&study::job(&["a"], &format!("chains = 2\ndraws = 40\n{NO_SEARCH}"), PRIVACY));
    let party = &result["parties"][0];
    assert_eq!((&party["records"], &party["persons"]), (&Value::Null, &Value::from(101)));
    assert_eq!(party["protects"], "person of at most 2 records, replace");
    let charged: u64 = cluster.ledger(0).query_row("SELECT sum(charge) FROM charges", [], |row| row.get(0)).expect("a sum");
    let reported = party["mu_squared_spent"].as_f64().expect("a number");
    assert!((reported * 2_f64.powi(48) / charged as f64 - 1.0).abs() < 1e-12, "{reported} against {charged}");
    let status = owner(&cluster, "a", &["status"]);
    assert!(status.contains("protects one person") && status.contains("at most 2"), "{status}");
}

#[test]
fn an_unpublished_count_is_guessed_or_the_job_is_refused() {
    let cluster = cluster(&["a"], &[], "adjacency = \"add-remove\"");
    let search = "chains = 2\ndraws = 20\nwarmup = 2\nseed = 5";
    let job = cluster.write_job(&study::job(&["a"], search, PRIVACY));
    let output = cluster.run(&["submit", &job, "--wait", "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(printed.contains("a does not publish its record count") && printed.contains("records_guess"), "{printed}");
    let result = cluster.submit(&study::job(&["a"], &format!("{search}\nrecords_guess = 500"), PRIVACY));
    let party = &result["parties"][0];
    assert_eq!((&party["records"], &party["protects"]), (&Value::Null, &Value::from("row, add-remove")));
    // The coordinator does not store its number of rows.
    let counts: u64 = cluster
        .store()
        .query_row("SELECT count(*) FROM job_parties WHERE records IS NOT NULL OR persons IS NOT NULL", [], |row| row.get(0))
        .expect("a count");
    assert_eq!(counts, 0);
}

/// The terms of an approval and the signer's key are shown and stored; after the last day the job ends, and a restart changes nothing. The day
/// is changed in the file of decisions alone: the earlier one counts, and the difference is named.
#[test]
fn a_job_ends_with_its_owners_permit() {
    let mut cluster = cluster(&["a", "b"], &["a"], "");
    let spec = study::job(&["a", "b"], &format!("chains = 2\ndraws = 100000\n{NO_SEARCH}"), PRIVACY);
    let job = cluster.submit_only(&spec.replace("radius = 0.08", "radius = 0.001"));
    cluster.wait_status(&job, PATIENCE, "the owner", |s| awaits(s, &["a"]));
    let past = cluster.run(&command("a", &["approve", &job, "--yes", "--until", "2020-01-01"]));
    assert_eq!(past.status.code(), Some(2));
    let terms =
        ["approve", &job[..8], "--yes", "--json", "--reference", "EC 17/2026", "--purpose", "care", "--until", "2999-12-31"];
    let approved = json(&owner(&cluster, "a", &terms));
    assert_eq!(approved["permit"]["until"], "2999-12-31");
    assert!(approved["scale"]["left"].is_number() && approved["right_guesses_of_100"]["this_job"].is_number(), "{approved}");
    let key = approved["analyst_key"].as_str().expect("the signer's key").to_owned();
    assert!(key.starts_with("sha256:") && owner(&cluster, "a", &["statement", &job]).contains(&key), "{key}");
    cluster.wait_status(&job, PATIENCE, "some draws", |s| s["draws"].as_u64() > Some(10));
    for shown in [owner(&cluster, "a", &["status"]), owner(&cluster, "a", &["statement", &job]), owner(&cluster, "a", &["jobs"])]
    {
        assert!(shown.contains("reference: EC 17/2026; valid through 2999-12-31 (UTC)"), "{shown}");
    }
    let act: String = cluster
        .ledger(0)
        .query_row("SELECT body FROM events WHERE kind = 'approve'", [], |row| row.get(0))
        .expect("the approval");
    assert_eq!(json(&act)["permit"]["reference"], "EC 17/2026");
    assert_eq!(json(&act)["signer"], key["sha256:".len()..]);

    // The last day is over.
    let decisions = cluster.path("a").join("ledger.sqlite.consent");
    let store = rusqlite::Connection::open(decisions).expect("the decisions");
    store.execute("UPDATE decisions SET permit = replace(permit, '2999-12-31', '2026-01-01')", []).expect("an earlier day");
    drop(store);
    let status = cluster.wait_status(&job, PATIENCE, "the end", |s| s["error_code"] == "revoked");
    let error = status["error"].as_str().expect("a reason");
    assert!(error.contains("permit_expired: the owner's permit for this job ended on 2026-01-01"), "{error}");
    until("expired", PATIENCE, || state_at(&cluster, "a", &job) == "expired");
    let warned = owner(&cluster, "a", &["status"]);
    assert!(warned.contains("permit_differs: ") && warned.contains("2999-12-31") && warned.contains("2026-01-01"), "{warned}");
    let after = numbers(&cluster);
    cluster.kill_party(0);
    cluster.start_party(0);
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!((numbers(&cluster), state_at(&cluster, "a", &job).as_str()), (after, "expired"));
    let again = cluster.run(&command("a", &["approve", &job, "--yes"]));
    assert_eq!(again.status.code(), Some(2));
    // One scale on every surface.
    let [budget, status] = ["budget", "status"].map(|command| json(&owner(&cluster, "a", &[command, "--json"])));
    assert_eq!((&budget["scale"], &budget["scale"]["held_by_open_jobs"]), (&status["scale"], &Value::from(0.0)), "{status}");
    let bar = owner(&cluster, "a", &["budget"]).lines().nth(1).expect("the bar").to_owned();
    assert!(owner(&cluster, "a", &["status"]).contains(&bar), "{bar}");
    let dossier = owner(&cluster, "a", &["dossier"]);
    assert!(dossier.contains("## Composition") && dossier.contains("EC 17/2026"), "{dossier}");
}
