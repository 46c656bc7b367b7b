//! Members behind proxies and on unreliable connections, in real processes: the job ends with the draws of an undisturbed run.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use conclave_tests::books::{LedgerCopy, Replay};
use conclave_tests::cluster::{Cluster, PartySetup, json};
use conclave_tests::proxies::{Breaks, ConnectProxy, Wire};
use conclave_tests::study;
use serde_json::Value;

use crate::EXE;

const NAMES: [&str; 3] = ["hospital-a", "hospital-b", "hospital-c"];
const SOON: Duration = Duration::from_secs(60);
/// "hospital:open sesame", encoded for a header and for a URL.
const CREDENTIALS: &str = "Basic aG9zcGl0YWw6b3BlbiBzZXNhbWU=";
const USER: &str = "hospital:open%20sesame";
const AN_HOUR: Duration = Duration::from_secs(3600);
const NO_BREAKS: Breaks = Breaks { refuse: 0.0, cut: 0.0, seed: 0 };

fn enrol(cluster: &mut Cluster, name: &str, seed: u64) -> usize {
    cluster.enrol_study(name, &study::records(400, seed), 990.0)
}

/// Changes a party's configuration, and adds lines before it.
fn configure(cluster: &Cluster, name: &str, lines: &str, changes: &[(&str, &str)]) {
    let file = cluster.path(name).join("party.toml");
    let mut text = fs::read_to_string(&file).expect("a configuration");
    for (from, to) in changes {
        assert!(text.contains(from), "{from:?} is not in {text}");
        text = text.replace(from, to);
    }
    fs::write(&file, format!("{lines}\n{text}")).expect("a configuration");
}

fn job(names: &[&str], draws: usize) -> String {
    let sampler = format!(
        "chains = 2\ndraws = {draws}\nwarmup = 10\nseed = 7\nproposal = {{ kind = \"guided\", radius = 0.08 }}\n\
         start = {{ intercept = 0.0, treated = 0.5, age = 0.5 }}"
    );
    study::job(names, &sampler, "epsilon = 980\ndelta = 1e-6")
}

fn address(cluster: &Cluster) -> SocketAddr {
    cluster.url.trim_start_matches("https://").parse().expect("an address")
}

/// Waits for the end, and compares draws, log and ledgers: nothing was lost, charged twice or changed.
fn check_the_end(cluster: &Cluster, job: &str, within: Duration) -> (u64, f64) {
    let ended = |status: &Value| !["queued", "opening", "running", "paused"].iter().any(|state| status["state"] == *state);
    let status = cluster.wait_status(job, within, "the end", ended);
    assert_eq!(status["state"], "finished", "{status}");
    let result = json(&cluster.must(&["summary", job, "--json"]));
    let replay = Replay::of(&cluster.store(), job);
    assert!(replay.complete);
    assert_eq!(result["stopped_by"], "draws");
    assert_eq!(result["iterations"], replay.rounds);
    replay.assert_equals_zarr(result["draws"].as_str().expect("a path").as_ref());
    for party in 0..cluster.names().len() {
        let ledger = LedgerCopy::of(&cluster.ledger(party), job);
        let beyond = replay.assert_in_ledger(&ledger, party);
        assert!(beyond.is_empty(), "party {party} was charged for queries in no recorded round: {beyond:?}");
    }
    (replay.rounds, result["seconds"].as_f64().expect("seconds"))
}

/// Fifty milliseconds of latency each way between owners and coordinator, with the default reply delay; then the same without
/// latency, where chains run until their budget ends and so show the value of a round.
#[test]
#[ignore = "a measurement: cargo test -p conclave-tests --test faults wide_area -- --ignored --nocapture"]
fn what_a_job_takes_across_a_wide_area_network() {
    println!("50 ms each way:");
    measure(Duration::from_millis(50), &[("auto", "draws = 1000"), ("hmc", "draws = 50"), ("penalty", "draws = 50")]);
    println!("without:");
    measure(Duration::ZERO, &[("auto", "draws = 1000"), ("hmc", "draws = 100000"), ("penalty", "draws = 100000")]);
}

fn measure(delayed: Duration, jobs: &[(&str, &str)]) {
    let mut cluster = Cluster::new(EXE);
    let wire = (!delayed.is_zero()).then(|| Wire::delayed(address(&cluster), delayed));
    for (seed, name) in NAMES.iter().enumerate() {
        let data = study::write(&cluster.path(&format!("{name}.csv")), &study::csv(&study::records(10_000, seed as u64)));
        let setup = PartySetup {
            name,
            data: &data,
            columns: &study::COLUMNS,
            epsilon: 30.0,
            data_extra: "",
            budget_extra: "",
            policy_extra: "releases = [\"ratio\", \"score\", \"remainder\"]",
        };
        let party = cluster.enrol(&setup);
        if let Some(wire) = &wire {
            configure(&cluster, name, "", &[(&cluster.url, &format!("https://{}", wire.address))]);
        }
        cluster.start_party(party);
    }
    for (algorithm, sampler) in jobs {
        let text = study::job(&NAMES, sampler, "epsilon = 8\ndelta = 1e-6");
        let began = Instant::now();
        let result = cluster.submit(&text.replace("algorithm = \"penalty\"", &format!("algorithm = \"{algorithm}\"")));
        let (rounds, seconds) =
            (result["iterations"].as_f64().unwrap_or_default(), result["seconds"].as_f64().unwrap_or_default());
        let rows = conclave_tests::cluster::figures(&result)["posterior"].as_array().map(Vec::as_slice).unwrap_or_default();
        let least = rows.iter().filter_map(|row| row["ess_bulk"].as_f64()).fold(f64::INFINITY, f64::min);
        println!(
            "{algorithm}: {rounds} rounds, {:.1} ms each; {seconds:.1} s from the first query to the last draw, {:.1} s from submission to the \
             posterior; {least:.0} effective draws, {:.2} a second, {:.1} rounds each; {}",
            1e3 * seconds / rounds,
            began.elapsed().as_secs_f64(),
            least / seconds,
            rounds / least,
            result["stopped_by"]
        );
    }
}

#[test]
fn a_party_and_an_analyst_connect_through_a_proxy_and_follow_a_coordinator_that_moves() {
    let mut cluster = Cluster::new(EXE);
    let (first, second) = (Wire::to(address(&cluster), NO_BREAKS), Wire::to(address(&cluster), NO_BREAKS));
    let proxy = ConnectProxy::start(Some(CREDENTIALS), AN_HOUR);
    // A name that only the proxy can resolve.
    let name = format!("coordinator.test:{}", address(&cluster).port());
    let url = format!("https://{name}");
    proxy.set_address(&name, first.address);
    let party = enrol(&mut cluster, "hospital-a", 1);
    let line = format!("proxy = \"http://{USER}@{}\"", proxy.address);
    configure(&cluster, "hospital-a", &line, &[(&cluster.url, &url)]);
    cluster.start_party(party);
    assert_eq!((proxy.counts.now(), first.counts.now()), ((1, 0, 0), (1, 0, 0)));

    // The analyst uses the environment.
    let jobs = |variables: &[(&str, &str)]| {
        let output = cluster.run_with(&["jobs", "--json", "--coordinator", &url], variables);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let with = |user: &str| format!("http://{user}{}", proxy.address);
    let good = with(&format!("{USER}@"));
    assert_eq!(jobs(&[("HTTPS_PROXY", &good)]).0, Some(0));
    assert_eq!(jobs(&[("https_proxy", &good), ("NO_PROXY", "elsewhere.test,coordinator.test:1")]).0, Some(0));
    for (variables, code, said) in [
        (
            [("HTTPS_PROXY", with("hospital:hunter2@")), ("NO_PROXY", String::new())],
            3,
            "does not accept the user and password in HTTPS_PROXY (407)",
        ),
        ([("https_proxy", with("")), ("NO_PROXY", String::new())], 3, "requires credentials (407): write them into https_proxy"),
        ([("HTTPS_PROXY", good.clone()), ("no_proxy", ".test".to_owned())], 4, "cannot be reached ("),
        ([("HTTPS_PROXY", "socks5://u:hunter2@localhost".to_owned()), ("NO_PROXY", String::new())], 2, "SOCKS"),
    ] {
        let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let (exit, words) = jobs(&variables);
        assert_eq!(exit, Some(code), "{variables:?}: {words}");
        assert!(words.contains(said) && !words.contains("hunter2") && !words.contains("sesame"), "{variables:?}: {words}");
    }

    // The coordinator moves: the name resolves to another address, and nothing listens at the old one.
    let job = cluster.submit_only(&job(&["hospital-a"], 400));
    proxy.set_address(&name, second.address);
    drop(first);
    let (rounds, _) = check_the_end(&cluster, &job, SOON);
    assert!(rounds >= 400, "{rounds}");
    let end = Instant::now() + SOON;
    while second.counts.now().0 == 0 {
        assert!(Instant::now() < end, "the party does not find the coordinator at its new address");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!cluster.log("hospital-a").contains("sesame"));
}

/// SIGTERM lets work in progress finish: every charge has its answer, and the job resumes when the party returns.
#[test]
fn a_party_finishes_the_answer_in_progress_before_it_stops() {
    let mut cluster = Cluster::new(EXE);
    let party = enrol(&mut cluster, "hospital-a", 1);
    cluster.start_party(party);
    let id = cluster.submit_only(&job(&["hospital-a"], 2000));
    for stops in 1..=3 {
        let before = cluster.status(&id)["iterations"].as_u64().unwrap_or_default();
        cluster.wait_status(&id, SOON, "progress", |status| status["iterations"].as_u64() > Some(before + 50));
        cluster.signal_party(party, "TERM");
        assert_eq!(cluster.wait_party_exit(party).code(), Some(0));
        let ledger = LedgerCopy::of(&cluster.ledger(party), &id);
        assert_eq!(ledger.answers(), ledger.rows.len(), "stop {stops} left a charge without an answer");
        cluster.wait_status(&id, SOON, "the pause", |status| status["state"] == "paused");
        cluster.start_party(party);
    }
    check_the_end(&cluster, &id, SOON);
}

/// A proxy that cuts connections idle for 20 s, and owners who take longer to decide.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn a_proxy_that_cuts_idle_connections_does_not_detach_a_party_that_waits() {
    const IDLE: Duration = Duration::from_secs(20);
    let mut cluster = Cluster::new(EXE);
    let proxy = ConnectProxy::start(Some(CREDENTIALS), IDLE);
    for (seed, name) in NAMES.iter().enumerate() {
        let party = enrol(&mut cluster, name, seed as u64);
        let line = format!("proxy = \"http://{USER}@{}\"", proxy.address);
        configure(&cluster, name, &line, &[("\"automatic\"", "\"manual\"")]);
        cluster.start_party(party);
    }
    let id = cluster.submit_only(&job(&NAMES, 10_000));
    cluster
        .wait_status(&id, SOON, "the owners", |status| status["awaiting_consent"].as_array().is_some_and(|all| all.len() == 3));
    // A silent client loses its tunnel meanwhile, which shows that the proxy works as configured.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    proxy.set_address("silent.test:1", listener.local_addr().expect("an address"));
    let mut silent = TcpStream::connect(proxy.address).expect("the proxy");
    write!(silent, "CONNECT silent.test:1 HTTP/1.1\r\nProxy-Authorization: {CREDENTIALS}\r\n\r\n").expect("a request");
    let waited = Instant::now();
    while waited.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_secs(1));
        assert_eq!(proxy.counts.opened.load(Ordering::SeqCst), 4, "a party dialled again after {:?}", waited.elapsed());
    }
    let mut heard = String::new();
    silent.read_to_string(&mut heard).expect("an answer, and then the end");
    assert!(heard.starts_with("HTTP/1.1 200"), "{heard}");
    // Each party still has the tunnel opened at its start.
    assert_eq!(proxy.counts.now(), (4, 0, 1));
    for name in NAMES {
        cluster.must(&["__party", "approve", &id, "--yes", "--config", &format!("{name}/party.toml")]);
    }
    let started = Instant::now();
    let (rounds, seconds) = check_the_end(&cluster, &id, Duration::from_secs(600));
    assert!(rounds >= 10_000, "{rounds}");
    assert_eq!(proxy.counts.now(), (4, 0, 1), "a party's tunnel was cut");
    assert!(!cluster.log("coordinator").contains("detached"), "a party was detached");
    println!(
        "{rounds} rounds in {seconds:.1} s of sampling, {:.1} s in all after 60 s of waiting",
        started.elapsed().as_secs_f64()
    );
}

/// A connection that refuses one attempt in a hundred and cuts the others repeatedly, losing data in transit.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn a_wire_that_drops_connections_at_random_changes_no_draw() {
    let mut cluster = Cluster::new(EXE);
    let wire = Wire::to(address(&cluster), Breaks { refuse: 0.01, cut: 1.0 / 400.0, seed: 4 });
    let by_wire = format!("https://{}", wire.address);
    for (seed, name) in NAMES.iter().enumerate() {
        let party = enrol(&mut cluster, name, seed as u64);
        configure(&cluster, name, "", &[(&cluster.url, &by_wire)]);
        cluster.start_party(party);
    }
    let started = Instant::now();
    let id = cluster.submit_only(&job(&NAMES, 10_000));
    let (rounds, seconds) = check_the_end(&cluster, &id, Duration::from_secs(900));
    let (opened, refused, cut) = wire.counts.now();
    println!(
        "{rounds} rounds in {seconds:.1} s of sampling, {:.1} s in all; {opened} connections opened, {refused} refused, {cut} cut",
        started.elapsed().as_secs_f64()
    );
    assert!(rounds >= 10_000, "{rounds}");
    assert!(cut >= 100, "{cut} cuts are too few to show anything");
}

/// A connection that dies without notice to either end: the party detects it and dials again, and the chain continues.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn a_connection_that_becomes_a_black_hole_is_given_up_and_replaced() {
    let mut cluster = Cluster::new(EXE);
    let wire = Wire::to(address(&cluster), NO_BREAKS);
    let party = enrol(&mut cluster, "hospital-a", 1);
    configure(&cluster, "hospital-a", "", &[(&cluster.url, &format!("https://{}", wire.address))]);
    cluster.start_party(party);
    let id = cluster.submit_only(&job(&["hospital-a"], 8000));
    cluster.wait_status(&id, SOON, "progress", |status| status["iterations"].as_u64() > Some(200));
    assert_eq!(wire.counts.now(), (1, 0, 0));
    wire.swallow();
    let gone = Instant::now();
    let end = gone + Duration::from_secs(120);
    while wire.counts.now().0 < 2 {
        assert!(Instant::now() < end, "the party keeps a dead connection: {}", cluster.status(&id));
        std::thread::sleep(Duration::from_millis(100));
    }
    println!("dialled again {:.1} s after the connection died", gone.elapsed().as_secs_f64());
    check_the_end(&cluster, &id, Duration::from_secs(300));
    assert_eq!(wire.counts.now(), (2, 0, 1));
}
