//! An owner's own answer in real processes: computed beside the records, written for the owner alone, never charged and never sent.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use conclave_tests::cluster::{Cluster, json};
use conclave_tests::study;
use serde_json::Value;

use crate::{cluster, cluster_of, setup, stderr};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Returns a job that releases plain scores, with further tables.
fn job(more: &str) -> String {
    format!(
        "name = \"own\"\nalgorithm = \"noisy-statistics\"\nparties = [\"a\", \"b\", \"c\"]\n[model]\nkind = \"logistic\"\n\
         outcome = \"readmitted\"\nweights = \"never\"\npredictors = [\"treated\", \"age\"]\n[columns]\nreadmitted = {{ binary = true }}\n\
         treated = {{ binary = true }}\nage = {{ min = 20, max = 80 }}\n[sampler]\ndraws = 200\n[privacy]\nepsilon = 8\ndelta = 1e-6\n{more}"
    )
}

/// Runs `answer` at the first party; returns its exit code, standard output and standard error.
fn answer(cluster: &Cluster, job: &str, config: &str, output: &str) -> (Option<i32>, String, String) {
    let run = cluster.run(&["__party", "answer", job, "--config", config, "--output", output]);
    (run.status.code(), String::from_utf8(run.stdout.clone()).expect("UTF-8"), stderr(&run))
}

/// Returns the number of the ledger's last entry and its charges in all.
fn head(cluster: &Cluster) -> (u64, u64, u64) {
    let last = "SELECT max((SELECT coalesce(max(seq), 0) FROM jobs), (SELECT coalesce(max(seq), 0) FROM charges), \
                (SELECT coalesce(max(seq), 0) FROM answers), (SELECT coalesce(max(seq), 0) FROM events)), \
                (SELECT count(*) FROM releases), (SELECT coalesce(sum(charge), 0) FROM releases)";
    cluster.ledger(0).query_row(last, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).expect("a head")
}

/// A wire to the coordinator that counts the bytes sent to it.
struct Meter {
    config: String,
    sent: Arc<AtomicUsize>,
}

impl Meter {
    /// Starts a wire, and writes the first party's configuration with its address in place of the coordinator's.
    fn start(cluster: &Cluster) -> Self {
        let text = fs::read_to_string(cluster.path("a/party.toml")).expect("a configuration");
        let line = text.lines().find(|line| line.starts_with("coordinator = ")).expect("an address");
        let port: u16 = line.rsplit(':').next().and_then(|port| port.trim_matches(['"', '/']).parse().ok()).expect("a port");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let own = listener.local_addr().expect("an address").port();
        fs::write(cluster.path("a/metered.toml"), text.replace(line, &line.replace(&port.to_string(), &own.to_string())))
            .expect("a file");
        let sent = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&sent);
        std::thread::spawn(move || {
            for from in listener.incoming().map_while(Result::ok) {
                let to = TcpStream::connect(("127.0.0.1", port)).expect("the coordinator");
                let (back, forth) = (to.try_clone().expect("a clone"), from.try_clone().expect("a clone"));
                let counted = Arc::clone(&counted);
                std::thread::spawn(move || copy(from, to, Some(&counted)));
                std::thread::spawn(move || copy(back, forth, None));
            }
        });
        Self { config: "a/metered.toml".to_owned(), sent }
    }

    /// Returns the bytes sent since the last call.
    fn taken(&self) -> usize {
        self.sent.swap(0, Ordering::SeqCst)
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream, counted: Option<&AtomicUsize>) {
    let mut buffer = [0; 1 << 14];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if let Some(counted) = counted {
            counted.fetch_add(length, Ordering::SeqCst);
        }
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    drop(to.shutdown(Shutdown::Write));
}

fn id(result: &Value) -> String {
    result["job"].as_str().expect("an id").to_owned()
}

fn sd(row: &Value, of: &str) -> f64 {
    let value = if of.is_empty() { &row["sd"] } else { &row[of]["sd"] };
    value.as_f64().expect("an sd")
}

#[test]
fn an_own_answer_stays_beside_the_records() {
    let mut cluster = cluster(&NAMES, 2_000, 60.0);
    let job_id = id(&cluster.submit(&job("")));
    let of_age = job("").replace("logistic", "linear").replace("outcome = \"readmitted\"", "outcome = \"age\"");
    let linear = id(&cluster.submit(&of_age.replace("[\"treated\", \"age\"]", "[\"treated\", \"readmitted\"]")));
    cluster.kill_party(0);
    let meter = Meter::start(&cluster);
    assert!(cluster.run(&["__party", "verify", &job_id, "--config", &meter.config]).status.success());
    let (before, of_verify) = (head(&cluster), meter.taken());
    let (code, shown, said) = answer(&cluster, &job_id, &meter.config, "a/own.json");
    let of_answer = meter.taken();
    assert_eq!(code, Some(0), "{said}");
    // The file alone has some thousand bytes. The two differ by acknowledgements of what was read.
    assert!(of_verify > 500 && of_answer < of_verify + 400, "{of_answer} bytes sent, {of_verify} to verify");
    assert_eq!(head(&cluster), before, "the ledger has other entries");
    let file = cluster.path("a/own.json");
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&file).expect("text");
    let warns = |line: &str| line.contains("without protection");
    assert!(shown.lines().next().is_some_and(warns) && text.lines().nth(1).is_some_and(warns), "{shown}\n{text}");
    let report = json(&text);
    assert_eq!((&report["job"], &report["adequacy"]["adequate"]), (&job_id.as_str().into(), &true.into()), "{report:#}");
    let rows = report["parameters"].as_array().expect("rows");
    assert_eq!(rows.len(), 3);
    for row in rows {
        // Little of the joint answer's width is noise here, and the ratio of two sds has an error of 1.6 %.
        assert!(sd(row, "") < 1.06 * sd(row, "joint") && sd(row, "") < 0.8 * sd(row, "alone"), "{row:#}");
    }
    assert!(shown.contains("treated") && shown.contains("sd alone"), "{shown}");

    // It never writes over a file, needs the records of the job, and names the reason where there is none.
    let (code, _, said) = answer(&cluster, &job_id, "a/party.toml", "a/own.json");
    assert!(code == Some(2) && said.contains("exists already"), "{said}");
    let (code, _, said) = answer(&cluster, &linear, "a/party.toml", "a/linear.json");
    assert!(code == Some(2) && said.contains("second moments") && !cluster.path("a/linear.json").exists(), "{said}");
    let data = fs::read_to_string(cluster.path("a.csv")).expect("records");
    fs::write(cluster.path("a.csv"), study::csv(&study::records(2_000, 77))).expect("other records");
    let (code, _, said) = answer(&cluster, &job_id, "a/party.toml", "a/other.json");
    assert!(code == Some(2) && said.contains("the data differ") && !cluster.path("a/other.json").exists(), "{said}");
    fs::write(cluster.path("a.csv"), data).expect("the records");
    cluster.kill_coordinator();
    let (code, _, said) = answer(&cluster, &job_id, "a/party.toml", "a/later.json");
    assert!(code == Some(4) && said.contains("cannot be reached"), "{said}");
}

/// The party takes its own exact sum out of masked totals.
#[test]
fn an_own_answer_to_masked_sums_takes_the_exact_part_out() {
    let mut cluster = cluster_of(&NAMES, |cluster, name, seed| {
        let data = study::csv(&study::records(2_000, seed));
        let data = study::write(&cluster.path(&format!("{name}.csv")), &data);
        cluster.enrol(&setup(name, &data, 60.0))
    });
    cluster.pin_all();
    (0..NAMES.len()).for_each(|party| cluster.start_party(party));
    let job_id = id(&cluster.submit(&job("[aggregation]\nmode = \"secure\"\n")));
    // A running party may enter the job's end meanwhile.
    cluster.kill_party(0);
    let before = head(&cluster);
    let (code, _, said) = answer(&cluster, &job_id, "a/party.toml", "a/own.json");
    assert_eq!((code, head(&cluster)), (Some(0), before), "{said}");
    let report = json(&fs::read_to_string(cluster.path("a/own.json")).expect("text"));
    for (row, truth) in report["parameters"].as_array().expect("rows").iter().zip(study::TRUE) {
        let off = (row["mean"].as_f64().expect("a mean") - truth) / sd(row, "");
        // With this owner's part still in the sums, or with another sum taken out, they are off by tens of sds.
        assert!(off.abs() < 4.0 && sd(row, "") < sd(row, "alone"), "{row:#}");
    }
}
