//! The metrics pages of a running consortium.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use conclave_tests::cluster::Cluster;
use conclave_tests::study;

use super::{EXE, enrol, restart_coordinator};

pub(super) const ANY_PORT: &str = "metrics = \"127.0.0.1:0\"";

/// Requests a path from a daemon's metrics address, which its log states.
fn get(cluster: &Cluster, daemon: &str, path: &str) -> (u16, String) {
    let log = cluster.log(daemon);
    let (_, rest) = log.rsplit_once("metrics at http://").expect("a line with the address");
    let address = rest.split('/').next().expect("an address");
    let mut stream = TcpStream::connect(address).expect("a listener");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("a request");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    (head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status"), body.to_owned())
}

/// Returns all names with their labels, and their values.
pub(super) fn page(cluster: &Cluster, daemon: &str) -> BTreeMap<String, String> {
    let (status, text) = get(cluster, daemon, "/metrics");
    assert_eq!(status, 200, "{text}");
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples.filter_map(|line| line.rsplit_once(' ')).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Returns a party's page once the party has closed its job too: the analyst sees the end first.
fn page_after_the_job(cluster: &Cluster, name: &str) -> BTreeMap<String, String> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let page = page(cluster, name);
        if value(&page, "conclave_party_jobs_open") == 0.0 {
            return page;
        }
        assert!(Instant::now() < deadline, "{name} still holds the job: {page:#?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn value(page: &BTreeMap<String, String>, name: &str) -> f64 {
    page.get(name).unwrap_or_else(|| panic!("no {name} in {page:#?}")).parse().expect("a number")
}

/// Returns the metrics that a page describes, including those without a sample at present.
fn described(cluster: &Cluster, daemon: &str) -> BTreeSet<String> {
    let (_, text) = get(cluster, daemon, "/metrics");
    text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next().map(str::to_owned)).collect()
}

/// Returns every metric that a file of `deploy/monitoring` uses, without the suffixes that Prometheus adds.
fn used_metrics(file: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(format!("{}/../deploy/monitoring/{file}", env!("CARGO_MANIFEST_DIR"))).expect("a file");
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let names =
        words.filter(|word| ["conclave_coordinator_", "conclave_party_", "process_"].iter().any(|part| word.starts_with(part)));
    names.map(|name| name.trim_end_matches("_bucket").trim_end_matches("_total").to_owned()).collect()
}

/// Two sets of records that differ in one extreme record. Both parties get the same queries, since they share a job.
fn neighbours() -> [Vec<study::Record>; 2] {
    let records = study::records(300, 1);
    let mut other = records.clone();
    other[17] = [1.0 - other[17][0], 1.0 - other[17][1], -1e300];
    [records, other]
}

/// Metrics that differ between any two parties: start time, certificate, and the machine's disk.
const INDEPENDENT_OF_RECORDS: [&str; 3] =
    ["process_start_time_seconds", "conclave_party_certificate_expiry_timestamp_seconds", "conclave_party_disk_free_bytes"];

/// Runs a masked job beside a local one on two parties that differ in one record.
#[test]
fn pages_report_masked_jobs_and_nothing_about_the_records() {
    let mut cluster = Cluster::new(EXE);
    let names = ["hospital-a", "hospital-b", "hospital-c"];
    let [a, b] = neighbours();
    let parties: Vec<usize> =
        names.iter().zip([a, b, study::records(300, 2)]).map(|(name, r)| enrol(&mut cluster, name, &r)).collect();
    cluster.pin_all();
    for party in parties {
        cluster.configure_party(party, ANY_PORT);
        cluster.start_party(party);
    }
    let sampler = "chains = 2\ndraws = 60\nwarmup = 10\nseed = 3\nlocate_share = 0.05";
    let local = study::job(&names, sampler, "epsilon = 300\ndelta = 1e-6");
    let rounds = [local.clone(), local + "\n[aggregation]\nmode = \"secure\"\ncolluders = 1\n"].map(|job| {
        let result = cluster.submit(&job);
        assert_eq!(result["stopped_by"], "draws");
        (result["iterations"].as_f64().expect("rounds"), result["parties"][0]["queries"].as_f64().expect("releases"))
    });
    let [a, b] = [names[0], names[1]].map(|name| {
        let mut page = page_after_the_job(&cluster, name);
        for name in INDEPENDENT_OF_RECORDS {
            assert!(page.remove(name).is_some(), "{name}");
        }
        page
    });
    assert_eq!(a, b);
    // Both jobs are counted.
    assert_eq!(value(&a, "conclave_party_replies_total{status=\"released\"}"), rounds[0].0 + rounds[1].0);
    assert_eq!(value(&a, "conclave_party_releases"), rounds[0].1 + rounds[1].1);
}

#[test]
fn pages_report_the_work_and_nothing_about_the_records() {
    let mut cluster = Cluster::new(EXE);
    cluster.coordinator_extra = ANY_PORT;
    restart_coordinator(&mut cluster);
    let names = ["hospital-a", "hospital-b"];
    for (name, records) in names.iter().zip(neighbours()) {
        let party = enrol(&mut cluster, name, &records);
        cluster.configure_party(party, ANY_PORT);
        cluster.start_party(party);
    }
    let sampler = "chains = 2\ndraws = 200\nwarmup = 20\nseed = 3\nlocate_share = 0.05";
    let result = cluster.submit(&study::job(&names, sampler, "epsilon = 900\ndelta = 1e-6"));
    assert_eq!(result["stopped_by"], "draws");

    let of_coordinator = page(&cluster, "coordinator");
    assert_eq!(value(&of_coordinator, "conclave_coordinator_jobs{state=\"finished\"}"), 1.0);
    assert_eq!(value(&of_coordinator, "conclave_coordinator_parties_attached"), 2.0);
    assert_eq!(value(&of_coordinator, "conclave_coordinator_draws_total"), 400.0);
    let rounds = result["iterations"].as_f64().expect("rounds");
    assert_eq!(value(&of_coordinator, "conclave_coordinator_rounds_total"), rounds);
    assert_eq!(value(&of_coordinator, "conclave_coordinator_round_seconds_count"), rounds);
    assert!(value(&of_coordinator, "conclave_coordinator_store_commit_seconds_count") >= 1.0);
    assert!(!of_coordinator.keys().any(|name| name.contains("{job=")), "a job that has ended has no lines: {of_coordinator:?}");
    assert_eq!(get(&cluster, "coordinator", "/healthz").0, 200);
    assert!(value(&of_coordinator, "process_resident_memory_bytes") > 1e6 && value(&of_coordinator, "process_open_fds") > 3.0);
    assert!(value(&of_coordinator, "process_max_fds") >= value(&of_coordinator, "process_open_fds"));

    let [a, b] = names.map(|name| {
        assert_eq!(get(&cluster, name, "/healthz"), (200, "ok\n".to_owned()));
        let mut page = page_after_the_job(&cluster, name);
        for name in INDEPENDENT_OF_RECORDS {
            assert!(page.remove(name).is_some(), "{name}");
        }
        page
    });
    assert_eq!(a, b);
    assert_eq!(value(&a, "conclave_party_replies_total{status=\"released\"}"), rounds);
    assert_eq!(value(&a, "conclave_party_releases"), result["parties"][0]["queries"].as_f64().expect("releases"));
    let spent = result["parties"][0]["epsilon_spent"].as_f64().expect("epsilon");
    assert!((value(&a, "conclave_party_epsilon_spent") / spent - 1.0).abs() < 1e-6, "{a:?}");
    // The resource use of a process that holds records depends on them.
    assert!(!a.keys().any(|name| name.contains("memory") || name.contains("fds")), "{a:?}");

    let all: BTreeSet<String> = ["coordinator", "hospital-a"].iter().flat_map(|daemon| described(&cluster, daemon)).collect();
    for file in ["alerts.yml", "dashboard.json"] {
        let asked = used_metrics(file);
        assert!(asked.len() > 8 && asked.is_subset(&all), "{file}: {:?}", asked.difference(&all));
    }

    // A party that has stopped stays on the coordinator's page, so that an alarm can see it.
    let here =
        |name: &str| value(&page(&cluster, "coordinator"), &format!("conclave_coordinator_party_attached{{party=\"{name}\"}}"));
    assert_eq!([here("hospital-a"), here("hospital-b")], [1.0, 1.0]);
    cluster.kill_party(1);
    let deadline = Instant::now() + Duration::from_secs(60);
    let gone =
        |cluster: &Cluster| value(&page(cluster, "coordinator"), "conclave_coordinator_party_attached{party=\"hospital-b\"}");
    while gone(&cluster) > 0.0 {
        assert!(Instant::now() < deadline, "still attached");
        std::thread::sleep(Duration::from_millis(50));
    }
}
