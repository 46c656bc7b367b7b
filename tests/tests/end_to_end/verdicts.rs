//! One verdict on every surface: the same grade for the same job on terminal, JSON, dashboard and report.

use std::fs;

use conclave_tests::cluster::{Cluster, json};
use conclave_tests::study;
use conclave_tests::visit::Visit;
use serde_json::Value;

use crate::{EXE, stderr};

const START: &str = "start = { intercept = 0.0, treated = 0.5, age = 0.5 }\nforce = true";
const GRADES: [(&str, &str); 4] =
    [("fit to publish", "✓"), ("preliminary", "◐"), ("not usable", "!"), ("no adequate answer", "!")];

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

/// The grade in the words of the wire, from the result's object.
fn grade(result: &Value) -> &'static str {
    match (result["adequacy"]["adequate"].as_bool(), result["verdict"]["grade"].as_str()) {
        (Some(false), _) => "no adequate answer",
        (_, Some("fit_to_publish")) => "fit to publish",
        (_, Some("preliminary")) => "preliminary",
        (_, Some("not_usable")) => "not usable",
        other => panic!("{other:?} in {result:#}"),
    }
}

fn capital(words: &str) -> String {
    words[..1].to_uppercase() + &words[1..]
}

#[test]
fn twelve_jobs_have_one_verdict_on_every_surface() {
    let mut cluster = Cluster::new(EXE);
    cluster.coordinator_extra = "dashboard = \"127.0.0.1:0\"\n";
    cluster.kill_coordinator();
    cluster.start_coordinator();
    let log = cluster.log("coordinator");
    let address =
        log.rsplit("dashboard at http://").next().and_then(|rest| rest.split('/').next()).expect("an address").to_owned();
    let operator = Visit::login(&address, &fs::read_to_string(cluster.path("coordinator/dashboard-token")).expect("a token"));
    let mut seen = std::collections::BTreeMap::new();
    for (at, (algorithm, sampler, epsilon)) in jobs().into_iter().enumerate() {
        // Each job has owners of its own: together they would exceed the largest budget that a ledger keeps.
        let names = [format!("a{at}"), format!("b{at}")];
        let parties = names.each_ref().map(|name| {
            let data = study::write(&cluster.path(&format!("{name}.csv")), &study::csv(&study::records(600, name.len() as u64)));
            let party = cluster.enrol(&crate::setup(name, &data, 1000.0));
            cluster.start_party(party);
            party
        });
        // A draw by choice is of one owner's records.
        let asked = if algorithm == "ops" { &names[..1] } else { &names };
        let job = study::job(
            &asked.iter().map(String::as_str).collect::<Vec<_>>(),
            &sampler,
            &format!("epsilon = {epsilon:?}\ndelta = 1e-6"),
        );
        let path = cluster.write_job(&job.replace("\"penalty\"", &format!("{algorithm:?}")));
        let run = cluster.run(&["submit", &path, "--wait", "--json"]);
        let code = run.status.code();
        if run.stdout.is_empty() {
            // A budget that ends before the first draw has no result to judge.
            panic!("{algorithm} {epsilon}: {}", stderr(&run));
        }
        let result = json(std::str::from_utf8(&run.stdout).expect("UTF-8"));
        let words = grade(&result);
        let none = words == "no adequate answer";
        assert_eq!(code, Some(if none { 3 } else { 0 }), "{algorithm}: {}", stderr(&run));
        check_figures(&result, none);
        check_surfaces(&cluster, &operator, &result, words, at);
        parties.into_iter().for_each(|party| cluster.kill_party(party));
        *seen.entry(words).or_insert(0) += 1;
    }
    println!("{seen:?}");
    assert!(GRADES.iter().all(|(words, _)| seen.contains_key(words)), "each grade is among the jobs: {seen:?}");
}

/// Figures of an answer that is none stand apart, and nowhere else.
fn check_figures(result: &Value, none: bool) {
    for key in ["posterior", "posterior_original"] {
        assert_eq!(result[key].as_array().map(Vec::is_empty), Some(none), "{key} of {result:#}");
        assert_eq!(result["inadequate"][key].as_array().is_some_and(|rows| !rows.is_empty()), none, "{key} of {result:#}");
    }
    assert_eq!(result["ratios"].is_array(), !none, "{result:#}");
    let mut apart = result.clone();
    apart["inadequate"] = Value::Null;
    assert!(!none || !apart.to_string().contains("\"q5\""), "{apart:#}");
}

fn check_surfaces(cluster: &Cluster, operator: &Visit, result: &Value, words: &str, at: usize) {
    let job = result["job"].as_str().expect("an id");
    let sign = GRADES.iter().find(|(of, _)| *of == words).map(|(_, sign)| *sign).expect("a grade");
    let first = format!("{sign} {}", capital(words));
    assert_eq!(cluster.status(job)["verdict"], words);
    let list = cluster.must(&["jobs"]);
    let row = list.lines().find(|line| line.starts_with(&job[..8])).unwrap_or_else(|| panic!("{job} in {list}"));
    assert!(row.contains(&format!("{sign} {words}")), "{row}");
    // A short id names the job.
    for command in ["summary", "watch"] {
        let text = cluster.must(&[command, &job[..8]]);
        assert!(text.starts_with(&first), "{command}: {text}");
        assert!(words != "no adequate answer" || !(text.contains("95%") || text.contains("median")), "{text}");
    }
    let allowed = cluster.run(&["summary", job, "--allow-inadequate", "--json"]);
    assert_eq!(allowed.status.code(), Some(0), "{}", stderr(&allowed));
    let (_, page) = operator.get("/");
    let row = page.split("<tr>").find(|row| row.contains(job)).unwrap_or_else(|| panic!("{job} in {page}"));
    assert!(row.contains(&format!("{sign} {words}")), "{row}");
    let heading = format!("<span class=\"mark\" aria-hidden=\"true\">{sign}</span> {}</p>", capital(words));
    let (_, page) = operator.get(&format!("/jobs/{job}"));
    assert!(page.contains(&heading), "{heading} in {page}");
    let report = format!("report-{at}.html");
    cluster.must(&["report", job, "-o", &report]);
    let report = fs::read_to_string(cluster.path(&report)).expect("a report");
    assert!(report.contains(&heading), "{heading} in {}", &report[..report.len().min(20_000)]);
}
