//! A budget that ends in the middle of a run.

use conclave_common::accounting::{Budget, PrivacyFilter};
use conclave_tests::books::{LedgerCopy, Replay};
use conclave_tests::cluster::{Cluster, json};
use conclave_tests::study;

use crate::{EXE, setup};

/// One owner's data have less left than the job asks for: the run ends there, cleanly, with its draws.
#[test]
fn a_budget_that_ends_ends_the_job_cleanly() {
    let names = ["ample-a", "scarce", "ample-b"];
    let mut cluster = Cluster::new(EXE);
    for (seed, name) in names.iter().enumerate() {
        let data = study::write(&cluster.path(&format!("{name}.csv")), &study::csv(&study::records(300, seed as u64)));
        let party = cluster.enrol(&setup(name, &data, if *name == "scarce" { 12.0 } else { 400.0 }));
        cluster.start_party(party);
    }
    let sampler = "chains = 4\ndraws = 100000\nwarmup = 2\nseed = 5\nproposal = { kind = \"guided\", radius = 0.08 }\n\
                   start = { intercept = 0.0, treated = 0.5, age = 0.5 }";
    let job = cluster.write_job(&study::job(&names, sampler, "epsilon = 300\ndelta = 1e-6"));
    let output = cluster.run(&["submit", &job, "--wait", "--json"]);
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

    // The unfinished round is no draw, and what the others spent on it is still theirs: nothing is refunded or hidden.
    let limit = |epsilon| PrivacyFilter::new(&Budget::new(epsilon, 1e-6).expect("a budget")).expect("a filter").limit_units();
    for (party, name) in names.iter().enumerate() {
        let ledger = LedgerCopy::of(&cluster.ledger(party), id);
        let beyond = replay.assert_in_ledger(&ledger, party);
        assert!(beyond.len() <= 4 && beyond.iter().all(|(iteration, _)| *iteration == replay.rounds), "{name}: {beyond:?}");
        assert_eq!(ledger.answers(), ledger.rows.len(), "{name}");
        let row = &result["parties"][party];
        assert_eq!(row["queries"].as_u64(), Some(ledger.rows.len() as u64), "{name}");
        let told = row["mu_squared_spent"].as_f64().expect("a number");
        assert!((told / ledger.mu_squared() - 1.0).abs() < 1e-14, "{name}: {told}");
        let spent: u64 = ledger.rows.values().map(|r| r.charge).sum();
        if *name == "scarce" {
            assert!(beyond.is_empty(), "all chains of a message are charged or none");
            // What was left could not hold four queries of the greatest step (0.088 in one coordinate, at sd 1.0104).
            let dearest = 4.0 * (2.0f64 * 0.088 / 1.01).powi(2) * 2f64.powi(48);
            assert!(spent <= limit(12.0) && (limit(12.0) - spent) as f64 <= dearest, "{spent} of {}", limit(12.0));
        }
    }

    // It is told to people too, with the party's name.
    let told = cluster.must(&["summary", id]);
    assert!(told.contains("scarce"), "{told}");
    let log = cluster.log("scarce");
    assert!(log.contains("budget"), "the owner's log tells of the refusal: {log}");
}

/// A job whose own cap ends it: every party would refuse at the same query.
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
    // The data's own budget is hardly touched: a second job finds it.
    let result = cluster.submit(&study::job(&names, sampler, "epsilon = 5\ndelta = 1e-6"));
    assert_eq!(result["stopped_by"], "budget");
}

/// A job that names what it wants ends there: what is left of its budget is not spent, and every party finds the same end.
#[test]
fn a_job_ends_when_it_has_enough() {
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
    assert!(cluster.must(&["summary", id]).contains("enough draws made"));
}
