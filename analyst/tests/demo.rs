//! The demo, end to end, with real processes; then its daemons restarted by hand and used by an analyst.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_conclave");

/// Stops the daemon when the test ends, whether it passes or fails.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn start(word: &str, config: &Path, ready: &Path) -> Daemon {
    let child = Command::new(PROGRAM)
        .args([word, "run", "--exit-with-stdin", "--config"])
        .arg(config)
        .arg("--ready-file")
        .arg(ready)
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let daemon = Daemon(child);
    let begun = Instant::now();
    while !ready.exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{word} is not ready");
        std::thread::sleep(Duration::from_millis(20));
    }
    daemon
}

fn run(args: &[&str]) -> Output {
    Command::new(PROGRAM).args(args).output().unwrap()
}

fn check_result(result: &Value) {
    for key in ["job", "algorithm", "iterations", "chains", "seconds", "acceptance_rate", "stopped_by", "draws"] {
        assert!(!result[key].is_null(), "{key} is missing in {result}");
    }
    let row_keys = ["mean", "sd", "q5", "median", "q95", "ess_bulk", "ess_tail", "rhat", "mcse_mean"];
    for row in result["posterior"].as_array().unwrap() {
        assert!(row_keys.iter().all(|key| row.get(key).is_some()), "{row}");
    }
    let party_keys = ["records", "queries", "epsilon_spent", "delta", "epsilon_budget", "mu_squared_spent", "epsilon_zcdp"];
    for party in result["parties"].as_array().unwrap() {
        assert!(party_keys.iter().all(|key| party[key].is_number()), "{party}");
        assert!(party["epsilon_spent"].as_f64() <= party["epsilon_budget"].as_f64());
    }
}

#[test]
fn the_demo_and_what_it_leaves() {
    let parent = tempfile::tempdir().unwrap();
    let made = parent.path().join("made here");
    let out = made.to_str().unwrap();
    let args = [
        "demo",
        "--algorithm",
        "penalty",
        "--rows",
        "2000",
        "--draws",
        "4000",
        "--epsilon",
        "100",
        "--parties",
        "2",
        "--chains",
        "2",
        "--json",
        "--out",
        out,
    ];
    let output = run(&args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    check_result(&result);
    assert_eq!(result["parties"].as_array().unwrap().len(), 2);
    assert_eq!(result["parties"][0]["records"], 2000);
    let names: Vec<&str> = result["posterior"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["intercept", "treated", "dose", "age"]);
    assert!(names.iter().all(|name| result["true"][name].is_number()));

    // A ledger is never overwritten.
    let again = run(&args);
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("--out"));

    // The folder may be moved, and started again by hand.
    let folder = parent.path().join("moved");
    std::fs::rename(&made, &folder).unwrap();
    let file = |name: &str| folder.join(name);
    let _coordinator = start("__coordinator", &file("coordinator/coordinator.toml"), &file("c.ready"));
    let _a = start("__party", &file("hospital-a/party.toml"), &file("a.ready"));
    let _b = start("__party", &file("hospital-b/party.toml"), &file("b.ready"));
    use_as_analyst(&folder, result["job"].as_str().unwrap());
}

fn use_as_analyst(folder: &Path, first_job: &str) {
    let config: toml::Table = std::fs::read_to_string(folder.join("hospital-a/party.toml")).unwrap().parse().unwrap();
    let conclave = |args: &[&str]| {
        Command::new(PROGRAM)
            .args(args)
            .current_dir(folder)
            .env("CONCLAVE_COORDINATOR", config["coordinator"].as_str().unwrap())
            .env("CONCLAVE_IDENTITY", "alice/identity")
            .output()
            .unwrap()
    };
    let json = |output: Output| -> Value {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let second = json(conclave(&["submit", "job.toml", "--wait", "--json"]));
    check_result(&second);
    let jobs = json(conclave(&["jobs", "--json"]));
    assert_eq!(jobs["jobs"].as_array().unwrap().len(), 2);
    assert_eq!(json(conclave(&["summary", first_job, "--json"]))["job"], first_job);
    let draws = json(conclave(&["draws", first_job, "--format", "zarr", "--out", "fetched", "--json"]));
    assert!(draws["files"].as_u64() > Some(5));
    let metadata = std::fs::read_to_string(folder.join("fetched/zarr.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&metadata).unwrap()["zarr_format"], 3);

    let summary = conclave(&["summary", first_job, "--json"]);
    check_report(folder, first_job, &String::from_utf8(summary.stdout).unwrap(), &conclave);

    refusals(folder, &conclave);
}

/// The demo with default options, and its pages, which stay available until Ctrl-C.
#[test]
fn the_default_demo_ends_without_a_warning_and_keeps_its_pages_up() {
    let parent = tempfile::tempdir().unwrap();
    let mut child = Command::new(PROGRAM)
        .args(["demo", "--pages", "--out"])
        .arg(parent.path().join("demo"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("the pages stay up until Ctrl-C")), "{:?}", child.wait_with_output());
    let urls: Vec<String> = lines.by_ref().take(4).map(|line| line.split_once(": ").unwrap().1.to_owned()).collect();
    for url in &urls {
        let address = url.strip_prefix("http://").unwrap().split('/').next().unwrap();
        let mut page = std::net::TcpStream::connect(address).unwrap();
        page.write_all(format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        page.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 401") && answer.contains("token"), "{url}: {answer}");
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let last: Vec<String> = lines.collect();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{last:?}");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("hospital-c") && !shown.to_lowercase().contains("warning"), "{shown}");
    assert!(
        last.iter().any(|line| line == "Stopping the daemons") && last.iter().all(|line| !line.contains("killed")),
        "{last:?}"
    );
}

/// Checks a run's report: its numbers match the summary digit for digit, and it has no external reference.
fn check_report(folder: &Path, job: &str, summary: &str, conclave: &dyn Fn(&[&str]) -> Output) {
    let written = conclave(&["report", job, "-o", "report.html", "--json"]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    let object = page.split("id=\"result\">").nth(1).unwrap().split("</pre>").next().unwrap();
    assert_eq!(object.replace("&quot;", "\""), summary.trim());
    let result: Value = serde_json::from_str(summary).unwrap();
    let shown: Vec<&str> = page.split("<data value=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let row = |row: &Value, keys: &[&str]| keys.iter().map(|key| row[key].to_string()).collect::<Vec<_>>();
    let figures = ["mean", "mcse_mean", "sd", "q5", "median", "q95"];
    let spent = ["queries", "epsilon_spent", "epsilon_zcdp", "mu_squared_spent", "delta", "epsilon_budget"];
    // The report of a run without an adequate answer shows no interval.
    assert_eq!(result["adequacy"]["adequate"], true, "{}", result["adequacy"]);
    for (table, keys) in [("posterior", figures), ("posterior_original", figures), ("parties", spent)] {
        for values in result[table].as_array().unwrap().iter().map(|r| row(r, &keys)) {
            assert!(shown.windows(keys.len()).any(|window| window == values), "{table}: {values:?}");
        }
    }
    for outside in ["http:", "https:", "url(", "src=", "@import", "<script", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let is_inside = |rest: &str| rest.starts_with('#') || rest.starts_with("data:image/svg+xml;base64,");
    assert!(page.split("href=\"").skip(1).all(is_inside));
    let text = std::fs::read_to_string(folder.join("job.toml")).unwrap();
    assert!(page.contains(&text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")));
    assert!(page.contains("Trace of dose") && page.contains("Pairs of parameters"));
    assert!(!folder.join("report.html.partial").exists());
    // The same job gives the same page, and no page is overwritten.
    assert!(conclave(&["report", job, "-o", "again.html"]).status.success());
    assert_eq!(std::fs::read_to_string(folder.join("again.html")).unwrap(), page);
    let taken = conclave(&["report", job, "-o", "report.html"]);
    assert_eq!(taken.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&taken.stderr).contains("already exists"));
}

/// Checks invalid input: exit code 2, a message that names the error, and no job created.
fn refusals(folder: &Path, conclave: &dyn Fn(&[&str]) -> Output) {
    let job = std::fs::read_to_string(folder.join("job.toml")).unwrap();
    for (name, from, to, named) in [
        ("unknown-key", "name =", "nmae =", "nmae"),
        ("no-bounds", "age = { min = 20, max = 80 }\n", "", "age"),
        ("epsilon", "epsilon = 100.0", "epsilon = 0.0", "epsilon"),
        ("delta", "delta = 1e-6", "delta = 1.0", "delta"),
        ("chains", "chains = 2", "chains = 0", "chains"),
        ("column", "\"dose\"", "\"dosis\"", "dosis"),
        ("enrolled", "\"hospital-b\"", "\"hospital-z\"", "hospital-z"),
    ] {
        let bad = job.replacen(from, to, 1);
        assert_ne!(bad, job, "{name}");
        let file = format!("{name}.toml");
        std::fs::write(folder.join(&file), bad).unwrap();
        let output = conclave(&["submit", &file, "--wait"]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{name}: {message}");
        assert!(message.contains(named), "{name}: {message}");
    }
    for (args, code) in [
        (&["summary", "no-such-job"][..], 2),
        (&["cancel", "no-such-job"], 2),
        (&["report", "no-such-job", "-o", "none.html"], 2),
        (&["draws", "x", "--format", "csv", "--out", "x"], 2),
        (&["jobs", "--coordinator", "https://127.0.0.1:9"], 4),
        (&["jobs", "--coordinator", "http://127.0.0.1:9"], 2),
        (&["jobs", "--identity", "hospital-a/identity"], 2),
    ] {
        let output = conclave(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}
