//! Times of a round: the dashboard shows those that a party may reveal, the party's own page all of them, its metrics none.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use conclave_tests::cluster::Cluster;
use conclave_tests::study;
use conclave_tests::visit::Visit;

use crate::EXE;

const PATIENCE: Duration = Duration::from_secs(60);
const SAMPLER: &str = "chains = 2\ndraws = 1000000\nwarmup = 2\nseed = 5\nproposal = { kind = \"guided\", radius = 0.08 }\n\
                       start = { intercept = 0.0, treated = 0.5, age = 0.5 }\n";

/// Returns an address from a daemon's log.
fn address(cluster: &Cluster, daemon: &str, key: &str) -> String {
    let log = cluster.log(daemon);
    let rest = log.rsplit(&format!("{key} at http://")).next().unwrap_or_default();
    rest.split('/').next().unwrap_or_default().to_owned()
}

fn login(cluster: &Cluster, daemon: &str, key: &str, token: &str) -> Visit {
    Visit::login(&address(cluster, daemon, key), &fs::read_to_string(cluster.path(token)).expect("a token"))
}

fn until(what: &str, mut page: impl FnMut() -> String, there: &[&str]) -> String {
    let end = Instant::now() + PATIENCE;
    loop {
        let text = page();
        match there.iter().find(|part| !text.contains(*part)) {
            None => return text,
            Some(missing) => assert!(Instant::now() < end, "timed out waiting for {missing:?} on {what}: {text}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// One party delays its replies, in strict mode; the other does not, in reserve mode.
#[test]
fn a_rounds_time_is_split_as_far_as_each_viewer_may_see() {
    let mut cluster = Cluster::new(EXE);
    cluster.coordinator_extra = "dashboard = \"127.0.0.1:0\"\n";
    cluster.kill_coordinator();
    cluster.start_coordinator();
    for (seed, name) in ["hospital-a", "hospital-b"].iter().enumerate() {
        let party = cluster.enrol_study(name, &study::records(300, seed as u64), 400.0);
        cluster.configure_party(party, "page = \"127.0.0.1:0\"\nmetrics = \"127.0.0.1:0\"");
        let config = cluster.path(&format!("{name}/party.toml"));
        let text = fs::read_to_string(&config).expect("a configuration");
        let text = if seed == 0 {
            text.replace("reply_delay_ms = 0", "reply_delay_ms = 3")
        } else {
            format!("durability = \"reserve\"\n{text}")
        };
        fs::write(config, text).expect("a configuration");
        cluster.start_party(party);
    }
    let job = cluster.submit_only(&study::job(&["hospital-a", "hospital-b"], SAMPLER, "epsilon = 300\ndelta = 1e-6"));

    let operator = login(&cluster, "coordinator", "dashboard", "coordinator/dashboard-token");
    let bars = [
        "Where the time of a round goes",
        ">hospital-a</tspan></text><rect class=\"part p0\"",
        ">hospital-b</tspan></text><rect class=\"part p2\"",
        ">the coordinator</tspan></text>",
        "held by the party's reply delay, median ms",
        "class=\"n\">3.000</td>",
        "commits in parallel",
    ];
    let page = until("the dashboard", || operator.get(&format!("/jobs/{job}")).1, &bars);
    assert!(!page.contains("computing, median ms"), "a party's computing is its owner's to see: {page}");

    for (name, ledger) in [("hospital-a", "ledger, with its syncs"), ("hospital-b", "ledger, its syncs off the path")] {
        let owner = login(&cluster, name, "page", &format!("{name}/identity/page-token"));
        let there = [
            "Components of an answer's time",
            ">an answer</tspan></text><rect class=\"part p0\"",
            "computing, median ms",
            ledger,
        ];
        until(name, || owner.get("/").1, &there);
        let metrics = metrics(&address(&cluster, name, "metrics"));
        let is_time = |line: &&str| !line.starts_with('#') && (line.contains("second") || line.contains("delay"));
        let times: Vec<&str> = metrics.lines().filter(is_time).map(|line| line.split(' ').next().unwrap_or_default()).collect();
        assert_eq!(times, ["process_start_time_seconds", "conclave_party_certificate_expiry_timestamp_seconds"], "{metrics}");
        let log = cluster.log(name);
        assert!(!log.contains("computing"), "{log}");
    }
    cluster.must(&["cancel", &job]);
}

fn metrics(address: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a listener");
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("a request");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text
}
