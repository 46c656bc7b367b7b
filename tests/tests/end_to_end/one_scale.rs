//! One scale of a budget on every surface: the same figures on the owner's page, its commands and the analyst's side.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use conclave_tests::cluster::{Cluster, json};
use conclave_tests::study;
use conclave_tests::visit::Visit;
use conclave_tests::wait::until;
use serde_json::Value;

use crate::EXE;

const PATIENCE: Duration = Duration::from_secs(60);
const START: &str = "warmup = 2\nseed = 5\nstart = { intercept = 0.0, treated = 0.5, age = 0.5 }";

/// Starts an owner that decides by hand and has a page, and another that approves by policy.
fn cluster() -> Cluster {
    let mut cluster = Cluster::new(EXE);
    for (seed, name) in [(1, "a"), (2, "b")] {
        let party = cluster.enrol_study(name, &study::records(300, seed), 400.0);
        if name == "a" {
            cluster.configure_party(party, "page = \"127.0.0.1:0\"");
            let config = cluster.path("a/party.toml");
            let text = fs::read_to_string(&config).expect("a configuration").replace("\"automatic\"", "\"manual\"");
            fs::write(config, text).expect("a configuration");
        }
        cluster.start_party(party);
    }
    cluster
}

/// Runs a command of the owner `a`.
fn owner(cluster: &Cluster, args: &[&str]) -> String {
    cluster.must(&[&["__party"], args, &["--config", "a/party.toml"]].concat())
}

/// Submits a job that waits for `a`, and returns its id.
fn submit(cluster: &Cluster, parties: &[&str], sampler: &str, epsilon: f64) -> String {
    let job = study::job(parties, &format!("chains = 2\n{sampler}\n{START}"), &format!("epsilon = {epsilon}\ndelta = 1e-6"));
    let job = cluster.submit_only(&job);
    let awaits = |status: &Value| status["awaiting_consent"].as_array().is_some_and(|all| all.contains(&"a".into()));
    cluster.wait_status(&job, PATIENCE, "the owner", awaits);
    job
}

/// Returns the words of a page or a text, without tags and line ends.
fn words(text: &str) -> String {
    let mut plain = String::new();
    for (at, part) in text.split('<').enumerate() {
        let words = if at == 0 { part } else { part.split_once('>').map_or("", |(_, words)| words) };
        plain += words;
        plain.push(' ');
    }
    let plain = plain.replace("&lt;", "<").replace("**", "");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the first share of each part in a text: `spent`, `held`, `left`, and `planned` for the job under consideration.
fn shares(text: &str) -> BTreeMap<&'static str, f64> {
    let mut shares = BTreeMap::new();
    let words = words(text);
    let words: Vec<&str> = words.split(' ').collect();
    for pair in words.windows(2) {
        let Some(percent) = pair[1].trim_end_matches([',', '.', ';']).strip_suffix('%') else { continue };
        let part = match pair[0] {
            "spent" => "spent",
            "job" | "jobs" => "held",
            "most" => "planned",
            "left" => "left",
            _ => continue,
        };
        let percent = percent.trim_start_matches('<').parse().unwrap_or_else(|e| panic!("{e}: {pair:?}"));
        shares.entry(part).or_insert(percent);
    }
    shares
}

fn near(one: f64, other: f64, tolerance: f64) -> bool {
    (one - other).abs() <= tolerance
}

#[test]
fn three_jobs_have_one_scale_on_every_surface() {
    let mut cluster = cluster();
    let radius = |radius: f64| format!("proposal = {{ kind = \"guided\", radius = {radius} }}");
    // One job has ended, one is open and paused, so that no figure moves, and one waits for the owner.
    let ended = submit(&cluster, &["a"], &format!("draws = 40\n{}", radius(0.08)), 60.0);
    owner(&cluster, &["approve", &ended[..8], "--yes"]);
    cluster.wait_status(&ended, PATIENCE, "the end", |status| status["state"] == "finished");
    let open = submit(&cluster, &["a", "b"], &format!("draws = 100000\n{}", radius(0.02)), 100.0);
    owner(&cluster, &["approve", &open[..8], "--yes"]);
    cluster.wait_status(&open, PATIENCE, "draws", |status| status["draws"].as_u64() > Some(5));
    cluster.kill_party(1);
    cluster.wait_status(&open, PATIENCE, "the pause", |status| status["waiting_for"].to_string().contains("\"b\""));
    let pending = submit(&cluster, &["a"], &format!("draws = 40\n{}", radius(0.08)), 50.0);

    let budget = json(&owner(&cluster, &["budget", "--json"]));
    let status = json(&owner(&cluster, &["status", "--json"]));
    let scale = &budget["scale"];
    assert_eq!(scale, &status["scale"]);
    for key in ["mu_squared_spent", "mu_squared_remaining", "epsilon_spent", "epsilon_new_job"] {
        assert_eq!(budget[key], status["budget"][key], "{key}");
    }
    let figure = |object: &Value, key: &str| object[key].as_f64().unwrap_or_else(|| panic!("{key} in {object:#}"));
    let [spent, held, left] = ["spent", "held_by_open_jobs", "left"].map(|key| figure(scale, key));
    assert!(spent > 0.0 && held > 0.0 && left > 0.0 && near(spent + held + left, 1.0, 1e-12), "{scale}");
    assert!(near(spent, figure(&budget, "mu_squared_spent") / figure(&budget, "mu_squared_budget"), 1e-12), "{budget:#}");

    // Each job's own figures add up to those of the owner.
    let jobs = json(&owner(&cluster, &["jobs", "--json"]))["jobs"].as_array().expect("jobs").clone();
    assert_eq!(jobs.len(), 3);
    let of_job = |id: &str| jobs.iter().find(|job| job["job"] == id).expect("a job");
    let sum: f64 = jobs.iter().map(|job| figure(job, "mu_squared_spent")).sum();
    assert!(near(sum, figure(&budget, "mu_squared_spent"), 1e-9), "{sum} of {budget:#}");
    assert_eq!(figure(of_job(&pending), "mu_squared_spent"), 0.0);

    // Commands, page and statement show the same shares and the same room.
    let text = owner(&cluster, &["budget"]);
    let expected = shares(&text);
    for (part, share) in [("spent", spent), ("held", held), ("left", left)] {
        assert!(near(expected[part], 100.0 * share, 0.1001), "{part}: {expected:?} and {scale}");
    }
    let room = words(&text);
    let room = room.split_once("Room for one more job of ε ").expect("the room").1.split(' ').next().unwrap_or_default();
    let stated: f64 = room.trim_end_matches(['.', ',']).parse().expect("a number");
    assert!(near(stated, figure(scale, "room_epsilon"), 1e-3 * stated), "{stated} and {scale}");
    let site = cluster.log("a");
    let address = site.rsplit("page at http://").next().and_then(|rest| rest.split('/').next()).expect("an address").to_owned();
    let visit = Visit::login(&address, &fs::read_to_string(cluster.path("a/identity/page-token")).expect("a token"));
    until("the waiting job on the page", PATIENCE, || visit.get("/").1.contains(&format!("title=\"{pending}\"")));
    let page = visit.get("/").1;
    let after_heading = |page: &str, heading: &str| page.split_once(heading).expect("the heading").1.to_owned();
    let surfaces = [
        ("status", owner(&cluster, &["status"])),
        ("statement", owner(&cluster, &["statement", &ended[..8]])),
        ("dossier", owner(&cluster, &["dossier"])),
        ("page", after_heading(&page, "The data's budget")),
        ("page of the statement", visit.get(&format!("/jobs/{ended}/statement")).1),
    ];
    for (surface, text) in &surfaces {
        assert_eq!(shares(text), expected, "{surface}: {text}");
        assert!(words(text).contains(&format!("Room for one more job of ε {room}")), "{surface}: {room} in {text}");
    }
    assert!(page.contains("<title>(1) a – data owner: a decision waits</title>"), "{page}");

    // Beside the waiting job, spent and held are the same, and the rest is divided.
    let preview = cluster.run(&["__party", "approve", &pending[..8], "--config", "a/party.toml"]);
    assert_eq!(preview.status.code(), Some(2), "no terminal");
    let preview = String::from_utf8(preview.stdout).expect("UTF-8");
    let of_pending = shares(&preview);
    assert_eq!(shares(&after_heading(&visit.get(&format!("/jobs/{pending}")).1, "What it costs")), of_pending, "{preview}");
    assert_eq!((of_pending["spent"], of_pending["held"]), (expected["spent"], expected["held"]), "{preview}");
    assert!(near(of_pending["planned"] + of_pending["left"], expected["left"], 0.1001), "{preview}");

    // The analyst sees the same spending of each job, and the room that the owner's scale states.
    let answer = json(&cluster.must(&["budget", "a", "--json"]))["parties"][0].clone();
    assert!(near(figure(&answer, "epsilon_spent"), figure(&budget, "epsilon_spent"), 1e-9), "{answer} and {budget:#}");
    assert!(near(figure(&answer, "epsilon_left"), figure(scale, "room_epsilon"), 2e-3), "{answer} and {scale}");
    let result = json(&cluster.must(&["summary", &ended, "--json"]));
    let of_result = figure(&result["parties"][0], "epsilon_spent");
    assert!(near(of_result, figure(of_job(&ended), "epsilon_spent"), 1e-9), "{of_result} and {}", of_job(&ended));
    cluster.must(&["report", &ended, "-o", "report.html"]);
    let report = fs::read_to_string(cluster.path("report.html")).expect("a report");
    let exact = result["parties"][0]["epsilon_spent"].to_string();
    assert!(report.contains(&format!("<data value=\"{exact}\">")), "{exact}");

    // A name with several matches is an error that lists them; whole ids and times stay in JSON.
    let all = cluster.run(&["__party", "statement", "", "--config", "a/party.toml"]);
    assert_eq!(all.status.code(), Some(2), "{}", crate::stderr(&all));
    let listed = owner(&cluster, &["jobs"]);
    assert!(listed.contains(&pending[..8]) && !listed.contains(&pending) && listed.contains(" UTC; "), "{listed}");
}
