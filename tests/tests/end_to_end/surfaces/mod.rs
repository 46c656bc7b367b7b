//! One verdict and one budget scale on every surface: the same grade and the same figures for the same job on terminal, JSON, pages,
//! statement and report.

mod budget;
mod open_jobs;
mod verdict;

use std::collections::BTreeMap;

use conclave_tests::cluster::{Cluster, PAGE, json};
use conclave_tests::study;
use serde_json::Value;

use crate::{EXE, stderr};

const START: &str = "start = { intercept = 0.0, treated = 0.5, age = 0.5 }\nforce = true";

/// The jobs: algorithm, `[sampler]` and epsilon.
fn jobs() -> Vec<(&'static str, String, f64)> {
    let chains =
        |settings: &str| format!("{settings}\nwarmup = 20\nseed = 5\nproposal = {{ kind = \"guided\", radius = 0.3 }}\n{START}");
    vec![
        ("penalty", chains("chains = 4\ndraws = 6000"), 900.0),
        ("penalty", chains("chains = 4\ndraws = 900"), 900.0),
        ("penalty", chains("chains = 4\ndraws = 60"), 900.0),
        ("penalty", chains("chains = 2\ndraws = 2"), 900.0),
        // One chain is preliminary, and 80 draws are not usable, however they come out.
        ("noisy-statistics", "chains = 1\ndraws = 1000\nforce = true".to_owned(), 200.0),
        ("noisy-statistics", "chains = 4\ndraws = 20\nforce = true".to_owned(), 200.0),
        ("penalty", chains("chains = 2\ndraws = 100000\nuntil = { ess = 60, rhat = 1.1 }"), 900.0),
        ("hmc", "draws = 400\nforce = true".to_owned(), 200.0),
        ("ops", "draws = 8\ncandidates = 40\nforce = true".to_owned(), 200.0),
        ("noisy-statistics", "chains = 4\ndraws = 1000\nforce = true".to_owned(), 200.0),
        ("noisy-statistics", "draws = 400\nforce = true".to_owned(), 0.2),
        ("barker", chains("chains = 4\ndraws = 200"), 900.0),
    ]
}

/// A job that has ended, as the surfaces are asked about it.
struct Ended<'a> {
    cluster: &'a Cluster,
    /// Its place among the jobs.
    at: usize,
    /// Its id.
    job: &'a str,
    /// Its result object.
    result: &'a Value,
    /// The owner whose surfaces are compared.
    owner: &'a str,
    /// The report, as its file has it.
    report: &'a str,
    /// The job's page on the dashboard.
    page: &'a str,
}

#[test]
fn twelve_jobs_have_one_verdict_and_one_budget_on_every_surface() {
    let mut cluster = Cluster::with_dashboard(EXE);
    let operator = cluster.visit_dashboard();
    let mut seen = BTreeMap::new();
    for (at, (algorithm, sampler, epsilon)) in jobs().into_iter().enumerate() {
        // Each job has owners of its own: together they would exceed the largest budget that a ledger keeps.
        let names = [format!("a{at}"), format!("b{at}")];
        let parties = names.each_ref().map(|name| {
            let data = study::write(&cluster.path(&format!("{name}.csv")), &study::csv(&study::records(600, name.len() as u64)));
            let party = cluster.enrol(&crate::setup(name, &data, 1000.0));
            cluster.configure_party(party, PAGE);
            cluster.start_party(party);
            party
        });
        // A draw by choice is of one owner's records.
        let asked = if algorithm == "ops" { &names[..1] } else { &names };
        let privacy = format!("epsilon = {epsilon:?}\ndelta = 1e-6");
        let job = study::job(&asked.iter().map(String::as_str).collect::<Vec<_>>(), &sampler, &privacy);
        let path = cluster.write_job(&job.replace("\"penalty\"", &format!("{algorithm:?}")));
        let run = cluster.run(&["submit", &path, "--wait", "--json"]);
        let code = run.status.code();
        // A budget that ends before the first draw has no result to judge.
        assert!(!run.stdout.is_empty(), "{algorithm} {epsilon}: {}", stderr(&run));
        let result = json(std::str::from_utf8(&run.stdout).expect("UTF-8"));
        let job = result["job"].as_str().expect("an id");
        let file = format!("report-{at}.html");
        cluster.must(&["report", job, "-o", &file]);
        let report = std::fs::read_to_string(cluster.path(&file)).expect("a report");
        let page = operator.get(&format!("/jobs/{job}")).1;
        let ended = Ended { cluster: &cluster, at, job, result: &result, owner: &names[0], report: &report, page: &page };
        let words = verdict::check(&ended, &operator);
        assert_eq!(code, Some(if words == verdict::NONE { 3 } else { 0 }), "{algorithm}: {}", stderr(&run));
        budget::check(&ended);
        parties.into_iter().for_each(|party| cluster.kill_party(party));
        *seen.entry(words).or_insert(0) += 1;
    }
    println!("{seen:?}");
    assert!(verdict::GRADES.iter().all(|(words, _)| seen.contains_key(words)), "each grade is among the jobs: {seen:?}");
}
