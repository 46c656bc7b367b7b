//! The pages as people use them: real processes, real sockets, no browser.

use std::fs;
use std::time::{Duration, Instant};

use conclave_tests::cluster::Cluster;
use conclave_tests::study;
use conclave_tests::visit::Visit;
use serde_json::Value;

const EXE: &str = env!("CARGO_BIN_EXE_conclave-e2e");
const PATIENCE: Duration = Duration::from_secs(60);
const SAMPLER: &str = "chains = 2\nwarmup = 2\nseed = 5\nproposal = { kind = \"guided\", radius = 0.08 }\n\
                       start = { intercept = 0.0, treated = 0.5, age = 0.5 }\n";
const PRIVACY: &str = "epsilon = 300\ndelta = 1e-6";

/// A party whose owner decides by hand at its page, and a coordinator with a dashboard.
fn cluster() -> Cluster {
    let mut cluster = Cluster::new(EXE);
    cluster.coordinator_extra = "dashboard = \"127.0.0.1:0\"\n";
    cluster.kill_coordinator();
    cluster.start_coordinator();
    let party = cluster.enrol_study("a", &study::records(300, 1), 400.0);
    cluster.configure_party(party, "page = \"127.0.0.1:0\"");
    let config = cluster.path("a/party.toml");
    let text = fs::read_to_string(&config).expect("a configuration").replace("\"automatic\"", "\"manual\"");
    fs::write(config, text).expect("a configuration");
    cluster.start_party(party);
    cluster
}

/// Where a daemon said that its pages are, and their token.
fn site(cluster: &Cluster, daemon: &str, key: &str, token: &str) -> (String, String) {
    let log = cluster.log(daemon);
    let rest = log.rsplit(&format!("{key} at http://")).next().unwrap_or_default();
    let address = rest.split('/').next().unwrap_or_default().to_owned();
    (address, fs::read_to_string(cluster.path(token)).expect("a token"))
}

fn until(what: &str, mut test: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !test() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn awaits(status: &Value) -> bool {
    status["awaiting_consent"].as_array().is_some_and(|all| !all.is_empty())
}

#[test]
fn a_job_approved_at_the_partys_page_starts_and_is_cancelled_at_the_dashboard() {
    let cluster = cluster();
    let job = cluster.submit_only(&study::job(&["a"], &format!("draws = 1000000\n{SAMPLER}"), PRIVACY));
    cluster.wait_status(&job, PATIENCE, "the owner", awaits);
    let (party, token) = site(&cluster, "a", "page", "a/identity/page-token");
    let owner = Visit::login(&party, &token);
    until("the waiting job on the page", || owner.get("/").1.contains(&format!("/jobs/{job}")));
    let at = format!("/jobs/{job}");
    let (status, page) = owner.get(&at);
    assert!(status == 200 && page.contains("worst case") && page.contains("epsilon 300"), "{page}");

    // What a page elsewhere could have a browser send approves nothing.
    let (word, approve) = (owner.word(&at), format!("{at}/approve"));
    let form = format!("csrf={word}");
    assert_eq!(Visit::stranger(&party).post(&approve, &form).0, 401);
    assert_eq!(owner.post(&approve, "").0, 403);
    assert_eq!(owner.post(&approve, "csrf=wrong").0, 403);
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1"] {
        assert_eq!(owner.post_from(origin, &approve, &form).0, 403, "{origin}");
    }
    assert!(awaits(&cluster.status(&job)));
    assert_eq!(owner.post(&approve, &form).0, 303);
    cluster.wait_status(&job, PATIENCE, "draws", |s| s["draws"].as_u64().unwrap_or(0) > 20);
    // The ledger keeps the decision as it keeps the command's.
    let acts: String = cluster.must(&["__party", "jobs", "--config", "a/party.toml", "--json"]);
    assert!(acts.contains("\"by\":\"owner\"") || acts.contains("\"by\": \"owner\""), "{acts}");
    until("releases on the owner's page", || owner.get("/").1.contains("number that left"));

    let (dashboard, token) = site(&cluster, "coordinator", "dashboard", "coordinator/dashboard-token");
    let operator = Visit::login(&dashboard, &token);
    until("plots", || operator.get(&at).1.contains("<svg class=\"chart\""));
    let (_, page) = operator.get(&at);
    for there in ["Privacy budget of a", "Trace of treated", "R-hat", "data-events=", "answer, median ms", "95% of them at most"]
    {
        assert!(page.contains(there), "{there} in {page}");
    }
    assert!(operator.get("/").1.contains(&format!("/jobs/{job}")));
    let cancel = format!("{at}/cancel");
    assert_eq!(operator.post(&cancel, "").0, 403);
    assert_eq!(owner.get(&cancel).0, 404, "the party's page cancels nothing");
    assert_eq!(operator.post(&cancel, &format!("csrf={}", operator.word(&cancel))).0, 303);
    let status = cluster.status(&job);
    assert_eq!(status["state"], "cancelled", "{status}");
    let (_, page) = operator.get(&at);
    assert!(page.contains("<b>cancelled") && page.contains("<h2>Result</h2>") && !page.contains("data-events="), "{page}");
}

#[test]
fn strangers_learn_nothing_and_plots_outlive_a_restart() {
    let mut cluster = cluster();
    let job = cluster.submit_only(&study::job(&["a"], &format!("draws = 1000000\n{SAMPLER}"), PRIVACY));
    cluster.wait_status(&job, PATIENCE, "the owner", awaits);
    cluster.must(&["__party", "approve", &job, "--yes", "--config", "a/party.toml"]);
    cluster.wait_status(&job, PATIENCE, "draws", |s| s["draws"].as_u64().unwrap_or(0) > 200);
    for (daemon, key, token) in
        [("coordinator", "dashboard", "coordinator/dashboard-token"), ("a", "page", "a/identity/page-token")]
    {
        let (address, _) = site(&cluster, daemon, key, token);
        let stranger = Visit::stranger(&address);
        assert_eq!(stranger.get("/healthz").0, 200);
        let (status, first) = stranger.get("/");
        assert_eq!(status, 401);
        let body = |text: &str| text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
        for path in [
            "/events",
            "/style.css",
            "/live.js",
            "/favicon.ico",
            "/audit.svg",
            "/nothing",
            &format!("/jobs/{job}"),
            &format!("/jobs/{job}/events"),
        ] {
            let (status, text) = stranger.get(path);
            assert_eq!((status, body(&text)), (401, body(&first)), "{path}");
        }
        for secret in [&*job, "hospital", "readmission", "party a", "jobs"] {
            assert!(!first.to_lowercase().contains(secret), "{secret}: {first}");
        }
    }
    cluster.kill_coordinator();
    cluster.start_coordinator();
    // Before anybody is back: the log alone makes the plots again.
    let (dashboard, token) = site(&cluster, "coordinator", "dashboard", "coordinator/dashboard-token");
    let operator = Visit::login(&dashboard, &token);
    until("plots", || operator.get(&format!("/jobs/{job}")).1.contains("Trace of treated"));
}
