//! The pages as people use them: real processes and sockets, without a browser.

use std::fs;
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::Duration;

use conclave_tests::cluster::{Cluster, json};
use conclave_tests::study;
use conclave_tests::visit::Visit;
use conclave_tests::wait::until;
use serde_json::Value;

use crate::EXE;

const PATIENCE: Duration = Duration::from_secs(60);
const SAMPLER: &str = "chains = 2\nwarmup = 2\nseed = 5\nproposal = { kind = \"guided\", radius = 0.08 }\n\
                       start = { intercept = 0.0, treated = 0.5, age = 0.5 }\n";
const PRIVACY: &str = "epsilon = 300\ndelta = 1e-6";

/// Starts a party whose owner decides by hand at its page, and a coordinator with a dashboard.
fn cluster() -> Cluster {
    let mut cluster = Cluster::with_dashboard(EXE);
    let party = cluster.enrol_study("a", &study::records(300, 1), 400.0);
    cluster.decide_by_hand(party);
    cluster.start_party(party);
    cluster
}

/// Returns the address of a daemon's pages.
fn address(cluster: &Cluster, daemon: &str) -> String {
    let key = if daemon == "coordinator" { "dashboard" } else { "page" };
    cluster.logged_address(daemon, &format!("{key} at http://"))
}

fn awaits(status: &Value) -> bool {
    status["awaiting_consent"].as_array().is_some_and(|all| !all.is_empty())
}

#[test]
fn a_job_approved_at_the_partys_page_starts_and_is_cancelled_at_the_dashboard() {
    let cluster = cluster();
    let job = cluster.submit_only(&study::job(&["a"], &format!("draws = 1000000\n{SAMPLER}"), PRIVACY));
    cluster.wait_status(&job, PATIENCE, "the owner", awaits);
    let (party, owner) = (address(&cluster, "a"), cluster.visit_owner("a"));
    until("the waiting job on the page", PATIENCE, || owner.get("/").1.contains(&format!("/jobs/{job}")));
    let at = format!("/jobs/{job}");
    let (status, page) = owner.get(&at);
    assert!(status == 200 && page.contains("worst case") && page.contains("epsilon 300"), "{page}");

    // A request that a foreign page makes a browser send approves nothing.
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
    // The ledger records the decision as it records one by command.
    let acts: String = cluster.must(&["__party", "jobs", "--config", "a/party.toml", "--json"]);
    assert!(acts.contains("\"by\":\"owner\"") || acts.contains("\"by\": \"owner\""), "{acts}");
    until("releases on the owner's page", PATIENCE, || owner.get("/").1.contains("released numbers"));

    let operator = cluster.visit_dashboard();
    until("plots", PATIENCE, || operator.get(&at).1.contains("<svg class=\"chart\""));
    let (_, page) = operator.get(&at);
    for there in ["Privacy budget of a", "Trace of treated", "R-hat", "data-events=", "answer, median ms", "95% of them at most"]
    {
        assert!(page.contains(there), "{there} in {page}");
    }
    assert!(operator.get("/").1.contains(&format!("/jobs/{job}")));
    let cancel = format!("{at}/cancel");
    assert_eq!(operator.post(&cancel, "").0, 403);
    assert_eq!(owner.get(&cancel).0, 404, "the party's page cannot cancel");
    assert_eq!(operator.post(&cancel, &format!("csrf={}", operator.word(&cancel))).0, 303);
    let status = cluster.status(&job);
    assert_eq!(status["state"], "cancelled", "{status}");
    let (_, page) = operator.get(&at);
    // How many draws there are by then decides whether they are an adequate answer.
    let shown = ["<h2>Result</h2>", "Why there is no answer"].iter().any(|heading| page.contains(heading));
    assert!(page.contains("<b>Cancelled") && shown && !page.contains("data-events="), "{page}");
}

#[test]
fn strangers_learn_nothing_and_plots_outlive_a_restart() {
    let mut cluster = cluster();
    let job = cluster.submit_only(&study::job(&["a"], &format!("draws = 1000000\n{SAMPLER}"), PRIVACY));
    cluster.wait_status(&job, PATIENCE, "the owner", awaits);
    cluster.must(&["__party", "approve", &job, "--yes", "--config", "a/party.toml"]);
    cluster.wait_status(&job, PATIENCE, "draws", |s| s["draws"].as_u64().unwrap_or(0) > 200);
    for daemon in ["coordinator", "a"] {
        let stranger = Visit::stranger(&address(&cluster, daemon));
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
    // No party is back yet: the plots are rebuilt from the log alone.
    let operator = cluster.visit_dashboard();
    until("plots", PATIENCE, || operator.get(&format!("/jobs/{job}")).1.contains("Trace of treated"));
}

/// Starts a coordinator whose dashboard is reachable from other machines, a party, the analysts alice and bob, and a running job
/// of each: alice's first.
fn open_to_others() -> (Cluster, String, [String; 2]) {
    let mut cluster = Cluster::new(EXE);
    cluster.coordinator_extra = "dashboard = \"0.0.0.0:0\"\nrevoked = \"revoked.txt\"\n";
    fs::write(cluster.path("coordinator/revoked.txt"), "").expect("a list");
    cluster.kill_coordinator();
    cluster.start_coordinator();
    let party = cluster.enrol_study("a", &study::records(300, 1), 400.0);
    cluster.start_party(party);
    cluster.must(&["ca", "request", "analyst", "bob", "--out", "bob"]);
    cluster.must(&["ca", "sign", "bob/request.pem", "--ca", "ca"]);
    let path = cluster.write_job(&study::job(&["a"], &format!("draws = 1000000\n{SAMPLER}"), "epsilon = 150\ndelta = 1e-6"));
    let jobs = ["alice", "bob"].map(|analyst| {
        let submitted = json(&cluster.must(&["submit", &path, "--json", "--identity", analyst]));
        submitted["job"].as_str().expect("a job").to_owned()
    });
    cluster.wait_status(&jobs[0], PATIENCE, "draws", |s| s["draws"].as_u64().unwrap_or(0) > 20);
    let everywhere = cluster.logged_address("coordinator", "dashboard at https://");
    let port = everywhere.strip_prefix("0.0.0.0:").expect("every address of this machine");
    let address = format!("127.0.0.1:{port}");
    (cluster, address, jobs)
}

/// Returns paths of the dashboard, some of them of a job.
fn paths(job: &str) -> Vec<String> {
    let of_job = ["", "/events", "/cancel"].map(|page| format!("/jobs/{job}{page}"));
    ["/", "/events", "/style.css", "/nothing"].map(str::to_owned).into_iter().chain(of_job).collect()
}

#[test]
fn over_tls_an_analysts_certificate_opens_only_their_own_jobs() {
    let (cluster, address, [hers, his]) = open_to_others();
    let ca = cluster.path("ca/ca.pem");
    let stranger = Visit::over_tls(&address, "coordinator.test", &ca);
    let holder = |identity: &str| Visit::with_certificate(&address, "coordinator.test", &ca, &cluster.path(identity));
    let (alice, bob) = (holder("alice"), holder("bob"));

    // Without a certificate, and with a party's.
    assert_eq!(stranger.get("/healthz").0, 200);
    for unauthorised in [&stranger, &holder("a/identity")] {
        for path in paths(&hers) {
            let (status, text) = unauthorised.get(&path);
            assert!(status == 401 && !text.contains(&hers) && !text.contains("small study"), "{path}: {text}");
        }
        assert_eq!(unauthorised.post(&format!("/jobs/{hers}/cancel"), "csrf=x").0, 401);
    }
    assert!(stranger.get("/").1.contains("strict-transport-security: max-age="));
    assert_eq!(stranger.post("/login", "token=wrong").0, 401);
    let plain = Visit::stranger(&address).send(&format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\n\r\n"));
    assert!(plain.0 == 0 && !plain.1.contains("HTTP/"), "{plain:?}");
    cluster.must(&["ca", "init", "--out", "elsewhere"]);
    cluster.must(&["ca", "request", "analyst", "alice", "--out", "false"]);
    cluster.must(&["ca", "sign", "false/request.pem", "--ca", "elsewhere"]);
    assert_eq!(holder("false").get("/healthz").0, 0, "a false certificate gives less access than none");

    // The operator, with the token; the name in the address is one of the certificate's.
    let token = fs::read_to_string(cluster.path("coordinator/dashboard-token")).expect("a token");
    let operator = Visit::over_tls(&address, "127.0.0.1", &ca).log_in(&token);
    let (status, page) = operator.get("/");
    assert!(status == 200 && page.contains(&hers) && page.contains(&his), "{page}");

    // Analysts.
    for (analyst, own, others) in [(&alice, &hers, &his), (&bob, &his, &hers)] {
        let (status, page) = analyst.get("/");
        assert!(status == 200 && page.contains(own) && !page.contains(others), "{page}");
        assert_eq!(analyst.get(&format!("/jobs/{own}")).0, 200);
        for path in ["", "/events", "/cancel"].map(|page| format!("/jobs/{others}{page}")) {
            assert_eq!(analyst.get(&path).0, 404, "{path}");
        }
    }
    let cancel = |job: &str| format!("/jobs/{job}/cancel");
    let form = format!("csrf={}", alice.word(&cancel(&hers)));
    assert_eq!(alice.post(&cancel(&his), &form).0, 404);
    for origin in ["https://evil.example", "null", &format!("http://{address}")] {
        assert_eq!(alice.post_from(origin, &cancel(&hers), &form).0, 403, "{origin}");
    }
    for form in ["", "csrf=x", &format!("csrf={}", bob.word(&cancel(&his)))] {
        assert_eq!(alice.post(&cancel(&hers), form).0, 403, "{form}");
    }
    assert_ne!(cluster.status(&hers)["state"], "cancelled");
    assert_eq!(alice.post(&cancel(&hers), &form).0, 303);
    assert_eq!(cluster.status(&hers)["state"], "cancelled");
    assert!(!bob.get(&format!("/jobs/{his}")).1.contains("<b>Cancelled"));

    // A crowd of silent connections blocks nobody.
    let crowd: Vec<_> = (0..200).map(|_| TcpStream::connect(&address).expect("a connection")).collect();
    assert_eq!((operator.get("/").0, alice.get("/").0, stranger.get("/healthz").0), (200, 200, 200));
    drop(crowd);

    // After a revocation, open streams end and no new one opens.
    let ((begins, began), (ends, ended)) = (mpsc::channel(), mpsc::channel());
    let watching = bob.clone();
    std::thread::spawn(move || ends.send(watching.follow("/events", || begins.send(()).expect("a listener"))));
    began.recv_timeout(PATIENCE).expect("the start of an analyst's stream");
    assert_eq!(bob.get("/").0, 200);
    cluster.must(&["ca", "revoke", "bob/certificate.pem", "--list", "coordinator/revoked.txt"]);
    assert_eq!(bob.get("/").0, 0);
    let (status, _) = ended.recv_timeout(PATIENCE).expect("the end of a revoked analyst's stream");
    assert_eq!(status, 0, "it is cut, and does not end by itself");
    assert_eq!((alice.get("/").0, stranger.get("/").0), (200, 401));
}
