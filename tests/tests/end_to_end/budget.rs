//! Budgets that end in the middle of a run.

use std::time::Duration;

use conclave_common::epsilon;
use conclave_privacy::accounting::{Budget, PrivacyFilter};
use conclave_tests::books::{LedgerCopy, Replay};
use conclave_tests::cluster::{Cluster, json};
use conclave_tests::study;

use crate::verify::all_hold;
use crate::{EXE, setup};

/// One owner's remaining budget is smaller than the job's, which is started nevertheless. The run ends cleanly when that budget
/// is exhausted, and keeps its draws.
#[test]
fn a_budget_that_ends_ends_the_job_cleanly() {
    let names = ["ample-a", "scarce", "ample-b"];
    let mut cluster = Cluster::new(EXE);
    for (seed, name) in names.iter().enumerate() {
        let data = study::write(&cluster.path(&format!("{name}.csv")), &study::csv(&study::records(300, seed as u64)));
        let party = cluster.enrol(&setup(name, &data, if *name == "scarce" { 12.0 } else { 400.0 }));
        cluster.start_party(party);
    }
    let sampler = "chains = 4\ndraws = 100000\nwarmup = 2\nseed = 5\nforce = true\nproposal = { kind = \"guided\", radius = 0.08 }\n\
                   start = { intercept = 0.0, treated = 0.5, age = 0.5 }";
    let job = cluster.write_job(&study::job(&names, sampler, "epsilon = 300\ndelta = 1e-6"));
    let output = cluster.run(&["submit", &job, "--wait", "--json", "--allow-inadequate"]);
    assert_eq!(output.status.code(), Some(0), "{}", crate::stderr(&output));
    let result = json(std::str::from_utf8(&output.stdout).expect("UTF-8"));
    let id = result["job"].as_str().expect("an id");

    assert_eq!((result["stopped_by"].as_str(), result["budget_party"].as_str()), (Some("budget"), Some("scarce")));
    let kept = result["draws_per_chain"].as_u64().expect("a count");
    assert!((20..100_000).contains(&kept), "{kept} draws");
    assert!(result["posterior"].as_array().expect("rows").iter().all(|row| row["sd"].as_f64() > Some(0.0)), "{result}");
    let replay = Replay::of(&cluster.store(), id);
    assert!(!replay.complete);
    assert_eq!(replay.samples(false)[0][0].len() as u64, kept);
    assert_eq!(result["iterations"], replay.rounds);
    replay.assert_equals_zarr(result["draws"].as_str().expect("a path").as_ref());

    // The unfinished round gives no draw. Charges of the other parties for it remain: nothing is refunded or hidden.
    let limit = |epsilon| PrivacyFilter::new(&Budget::new(epsilon, 1e-6).expect("a budget")).expect("a filter").limit_units();
    for (party, name) in names.iter().enumerate() {
        let ledger = LedgerCopy::of(&cluster.ledger(party), id);
        let beyond = replay.assert_in_ledger(&ledger, party);
        assert!(beyond.len() <= 4 && beyond.iter().all(|(iteration, _)| *iteration == replay.rounds), "{name}: {beyond:?}");
        assert_eq!(ledger.answers(), ledger.rows.len(), "{name}");
        let row = &result["parties"][party];
        assert_eq!(row["queries"].as_u64(), Some(ledger.rows.len() as u64), "{name}");
        let reported = row["mu_squared_spent"].as_f64().expect("a number");
        assert!((reported / ledger.mu_squared() - 1.0).abs() < 1e-14, "{name}: {reported}");
        let spent: u64 = ledger.rows.values().map(|r| r.charge).sum();
        if *name == "scarce" {
            assert!(beyond.is_empty(), "all chains of a message are charged or none");
            // The remaining budget did not cover four queries of the longest step (0.088 in one coordinate, at sd 1.0104).
            let highest = 4.0 * (2.0f64 * 0.088 / 1.01).powi(2) * 2f64.powi(48);
            assert!(spent <= limit(12.0) && (limit(12.0) - spent) as f64 <= highest, "{spent} of {}", limit(12.0));
        }
    }

    // The printed summary names the party too.
    let printed = cluster.must(&["summary", id]);
    assert!(printed.contains("scarce"), "{printed}");
    let log = cluster.log("scarce");
    assert!(log.contains("budget"), "the owner's log reports the refusal: {log}");
}

/// A masked message that one party refuses opens no sum, and every party that answered it would have been charged for nothing.
/// The party whose budget ends first is therefore asked first, and no other party is charged for the refused message. Persons of
/// up to two records pay four times the price of rows.
#[test]
fn no_party_is_charged_for_a_masked_message_that_the_budget_refuses() {
    let names = ["rows-a", "persons", "rows-b"];
    let mut cluster = Cluster::new(EXE);
    for (seed, name) in names.iter().enumerate() {
        let rows = study::csv(&study::records(200, seed as u64));
        let person = |(at, row): (usize, &str)| match at {
            0 => format!("{row},who\n"),
            _ => format!("{row},p{}\n", (at - 1) / 2),
        };
        let rows: String = rows.lines().enumerate().map(person).collect();
        let data = study::write(&cluster.path(&format!("{name}.csv")), &rows);
        let mut setup = setup(name, &data, 400.0);
        if *name == "persons" {
            setup.data_extra = "person = \"who\"\nmax_records_per_person = 2";
        }
        cluster.enrol(&setup);
    }
    cluster.pin_all();
    (0..names.len()).for_each(|party| cluster.start_party(party));
    let sampler = "chains = 3\ndraws = 100000\nwarmup = 2\nseed = 5\nforce = true\nproposal = { kind = \"guided\", radius = 0.08 }\n\
                   start = { intercept = 0.0, treated = 0.5, age = 0.5 }";
    let job = study::job(&names, sampler, "epsilon = 15\ndelta = 1e-6") + "[aggregation]\nmode = \"secure\"\ncolluders = 1\n";
    let result = cluster.submit(&job);
    assert_eq!((&result["stopped_by"], &result["budget_party"]), (&"budget".into(), &"persons".into()), "{result:#}");
    let rounds = result["iterations"].as_u64().expect("a count");
    assert!(rounds > 20, "{rounds} rounds");
    for (party, name) in names.iter().enumerate() {
        let row = &result["parties"][party];
        assert_eq!(row["queries"], 3 * rounds, "{name} is charged for the opened sums only");
        let charges: u64 = cluster.ledger(party).query_row("SELECT count(*) FROM releases", [], |row| row.get(0)).expect("SQL");
        assert_eq!(charges, 3 * rounds, "{name}");
    }
}

/// A job that asks for more than a party's remaining budget is refused before any query. The party states that remaining budget
/// if its owner permits it, and a job with the stated budget is admitted.
#[test]
fn a_job_beyond_the_remaining_budget_does_not_start() {
    let names = ["ample", "scarce", "discreet"];
    let mut cluster = Cluster::new(EXE);
    for (seed, name) in names.iter().enumerate() {
        let data = study::write(&cluster.path(&format!("{name}.csv")), &study::csv(&study::records(200, seed as u64)));
        let mut setup = setup(name, &data, if *name == "ample" { 400.0 } else { 50.0 });
        let policy = format!(
            "{}\nmax_epsilon_per_analyst = 20\n{}",
            setup.policy_extra,
            if *name == "discreet" { "tell_budget = false" } else { "" }
        );
        if *name != "ample" {
            setup.policy_extra = &policy;
        }
        let party = cluster.enrol(&setup);
        cluster.start_party(party);
    }
    let sampler = "chains = 2\ndraws = 20\nwarmup = 1\nproposal = { kind = \"guided\", radius = 0.02 }\nstart = { intercept = 0.0, treated = 0.5, age = 0.5 }";
    let job = |party: &str, epsilon: f64| study::job(&["ample", party], sampler, &format!("epsilon = {epsilon}\ndelta = 1e-6"));
    let refused = |party: &str, epsilon: f64| {
        let output = cluster.run(&["submit", &cluster.write_job(&job(party, epsilon)), "--wait"]);
        assert_eq!(output.status.code(), Some(3), "{}", crate::stderr(&output));
        crate::stderr(&output)
    };
    let printed = refused("scarce", 40.0);
    for part in ["scarce", "epsilon 40", "epsilon 20.00 is left there for", "lower privacy.epsilon to 20.00", "force = true"] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    let discreet = refused("discreet", 40.0);
    assert!(discreet.contains("less is left there") && !discreet.contains("20.00"), "{discreet}");
    // No query was sent, and a job with the stated budget is admitted.
    let charged = |party: usize| -> u64 {
        cluster.ledger(party).query_row("SELECT count(*) FROM charges", [], |row| row.get(0)).expect("a count")
    };
    assert_eq!([0, 1, 2].map(charged), [0, 0, 0]);
    let left = |arguments: &[&str]| {
        let answer = json(&cluster.must(&[&["budget", "--json"], arguments].concat()));
        answer["parties"].as_array().expect("parties").clone()
    };
    let rows = left(&[]);
    let of = |name: &str| rows.iter().find(|row| row["party"] == name).expect("a row").clone();
    assert_eq!((&of("ample")["epsilon_left"], &of("ample")["epsilon_spent"]), (&400.0.into(), &0.0.into()), "{rows:?}");
    assert_eq!((&of("scarce")["epsilon_limit"], &of("scarce")["epsilon_left"]), (&20.0.into(), &20.0.into()), "{rows:?}");
    assert_eq!(of("discreet"), serde_json::json!({ "party": "discreet", "standing": "untold" }));
    let result = cluster.submit(&job("scarce", 20.0));
    assert_eq!(result["stopped_by"], "draws", "{result:#}");
    // The remaining budget reported now can be requested, but not a thousandth more.
    let left = left(&["scarce"])[0]["epsilon_left"].as_f64().expect("a number");
    assert!(0.0 < left && left < 20.0, "{left}");
    assert!(refused("scarce", left + 0.002).contains(&format!("epsilon {} is left there", epsilon::room(left))));
    assert_eq!(cluster.submit(&job("scarce", left))["stopped_by"], "draws");
    let stranger = cluster.run(&["budget", "nobody"]);
    assert_eq!(stranger.status.code(), Some(2), "{}", crate::stderr(&stranger));
}

/// Chains that their budget will leave unusable end early and leave the rest of it unspent. Every party computes the same
/// forecast from the same releases.
#[test]
fn a_futile_chain_keeps_its_budget() {
    let names = ["a", "b"];
    let cluster = crate::cluster(&names, 2_500, 100.0);
    // The chains start far apart and cannot meet within this small budget: the forecast R-hat is 2 or more, above the limit of
    // 1.28.
    let start = |at: f64| format!("{{ intercept = {at}, treated = 0.5, age = 0.5 }}");
    let sampler = format!(
        "chains = 4\ndraws = 100000\nwarmup = 2\nstarts = [{}]\nproposal = {{ kind = \"guided\", radius = 0.005 }}",
        [-1.0, -0.4, 0.2, 0.8].map(start).join(", ")
    );
    let result = cluster.submit(&study::job(&names, &sampler, "epsilon = 4\ndelta = 1e-6"));
    assert_eq!(result["stopped_by"], "futility", "{result:#}");
    assert!(result["warnings"].to_string().contains("the rest of the budget was not spent"), "{}", result["warnings"]);
    let spent = |result: &serde_json::Value| result["parties"][0]["epsilon_spent"].as_f64().expect("a number");
    assert!(spent(&result) < 3.9, "{}", spent(&result));
    all_hold(&cluster, result["job"].as_str().expect("an id"));
}

/// A job ends at its own cap: every party would refuse at the same query.
#[test]
fn a_jobs_own_cap_ends_it_too() {
    let names = ["a", "b"];
    let cluster = crate::cluster(&names, 200, 500.0);
    let sampler = "chains = 2\ndraws = 100000\nwarmup = 2\nproposal = { kind = \"guided\", radius = 0.1 }\n\
                   start = { intercept = 0.0, treated = 0.5, age = 0.5 }";
    let result = cluster.submit(&study::job(&names, sampler, "epsilon = 5\ndelta = 1e-6"));
    assert_eq!(result["stopped_by"], "budget");
    for party in result["parties"].as_array().expect("parties") {
        assert!(party["epsilon_spent"].as_f64() <= Some(5.0) && party["epsilon_spent"].as_f64() > Some(4.0), "{party}");
    }
    // The data set's own budget is hardly touched, so a second job can use it.
    let result = cluster.submit(&study::job(&names, sampler, "epsilon = 5\ndelta = 1e-6"));
    assert_eq!(result["stopped_by"], "budget");
}

/// A job with a target ends when it reaches it: the rest of its budget is not spent, and every party computes the same end.
#[test]
fn a_job_ends_when_it_reaches_its_target() {
    let names = ["a", "b"];
    let cluster = crate::cluster(&names, 200, 500.0);
    let sampler = "chains = 2\ndraws = 100000\nwarmup = 2\nuntil = { ess = 40, rhat = 1.2 }\nproposal = { kind = \"guided\", radius = 0.1 }\n\
                   start = { intercept = 0.0, treated = 0.5, age = 0.5 }";
    let result = cluster.submit(&study::job(&names, sampler, "epsilon = 400\ndelta = 1e-6"));
    assert_eq!(result["stopped_by"], "until", "{result:#}");
    let kept = result["draws_per_chain"].as_u64().expect("a count");
    assert!((100..100_000).contains(&kept), "{kept}");
    for row in result["posterior"].as_array().expect("rows") {
        assert!(row["ess_bulk"].as_f64() >= Some(40.0) && row["ess_tail"].as_f64() >= Some(40.0), "{row:#}");
        assert!(row["rhat"].as_f64() <= Some(1.2), "{row:#}");
    }
    assert!(result["parties"][0]["epsilon_spent"].as_f64() < Some(390.0), "{}", result["parties"]);
    let id = result["job"].as_str().expect("an id");
    crate::verify::all_hold(&cluster, id);
    assert!(cluster.must(&["summary", id]).contains("stopped as asked"));
}

/// Six jobs of epsilon 3 at a budget of 5: two fit beside each other, and the others wait with the room that there is. A job that ends
/// early makes room for the next; without the owner's `over_commit`, no job is cut short by another.
#[test]
fn jobs_are_not_admitted_beyond_the_budget_of_the_open_ones() {
    let cluster = crate::cluster(&["a"], 150, 5.0);
    let sampler = "chains = 2\ndraws = 100000\nwarmup = 2\nproposal = { kind = \"guided\", radius = 0.0002 }\n\
                   start = { intercept = 0.0, treated = 0.5, age = 0.5 }";
    let job = |seed: usize| study::job(&["a"], &format!("{sampler}\nseed = {seed}"), "epsilon = 3\ndelta = 1e-6");
    let jobs: Vec<String> = (0..6).map(|seed| cluster.submit_only(&job(seed))).collect();
    let patience = Duration::from_secs(60);
    let is_running = |status: &serde_json::Value| status["state"] == "running";
    let is_waiting = |status: &serde_json::Value| {
        let reason = status["waiting_reason"].as_str().unwrap_or_default();
        status["state"] == "queued" && reason.contains("a: the jobs that are open there may still spend the budget")
    };
    jobs[..2].iter().for_each(|id| drop(cluster.wait_status(id, patience, "a running job", is_running)));
    let waiting = cluster.wait_status(&jobs[2], patience, "a job that waits for room", is_waiting);
    // mu² of epsilon 5 less twice that of 3.
    let reason = waiting["waiting_reason"].as_str().expect("a reason");
    assert!(reason.contains("there is room for one more job of epsilon 2.0"), "{reason}");
    let left = json(&cluster.must(&["budget", "a", "--json"]))["parties"][0]["epsilon_left"].as_f64().expect("a number");
    assert!((2.0..2.1).contains(&left), "{left}");
    let shown = cluster.must(&["__party", "budget", "--config", "a/party.toml"]);
    assert!(shown.contains("is the room for one more job beside them"), "{shown}");
    // What is reported can be asked for, and opens beside the others.
    let smaller = study::job(&["a"], &format!("{sampler}\nseed = 9"), &format!("epsilon = {left:.3}\ndelta = 1e-6"));
    let smaller = cluster.submit_only(&smaller);
    cluster.wait_status(&smaller, patience, "a job within the room", is_running);
    // An early end gives its rest back, and the next job opens.
    cluster.must(&["cancel", &smaller]);
    cluster.must(&["cancel", &jobs[0]]);
    let opened = || jobs[2..].iter().filter(|id| is_running(&cluster.status(id))).count();
    let end = std::time::Instant::now() + patience;
    while opened() == 0 {
        assert!(std::time::Instant::now() < end, "no job has opened");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(opened(), 1);
    // With the owner's explicit word, all are admitted.
    let path = cluster.path("a/party.toml");
    let text = std::fs::read_to_string(&path).expect("a configuration");
    std::fs::write(&path, text.replacen("[policy]", "[policy]\nover_commit = true", 1)).expect("a configuration");
    cluster.signal_party(0, "HUP");
    jobs[1..].iter().for_each(|id| drop(cluster.wait_status(id, patience, "a running job", is_running)));
}
