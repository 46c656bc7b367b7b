//! Chains watched in a terminal, and the plots of ended jobs: real processes, real sockets, a real pseudo-terminal.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use conclave_tests::cluster::{Cluster, figures};
use conclave_tests::study;
use conclave_tests::visit::Visit;
use conclave_tests::wait::until;
use conclave_tests::zarr;

use crate::EXE;

const PATIENCE: Duration = Duration::from_secs(60);
const SAMPLER: &str = "chains = 2\nwarmup = 2\nseed = 5\nproposal = { kind = \"guided\", radius = 0.08 }\n\
                       start = { intercept = 0.0, treated = 0.5, age = 0.5 }\n";
const PRIVACY: &str = "epsilon = 300\ndelta = 1e-6";

/// Starts a coordinator and the parties a and b, with budgets for all jobs of a test.
fn cluster(coordinator_extra: &'static str) -> Cluster {
    let mut cluster = Cluster::new(EXE);
    if !coordinator_extra.is_empty() {
        cluster.coordinator_extra = coordinator_extra;
        cluster.kill_coordinator();
        cluster.start_coordinator();
    }
    for (seed, name) in ["a", "b"].iter().enumerate() {
        let party = cluster.enrol_study(name, &study::records(200, seed as u64), 900.0);
        cluster.start_party(party);
    }
    cluster
}

fn job(draws: u64) -> String {
    study::job(&["a", "b"], &format!("draws = {draws}\n{SAMPLER}"), PRIVACY)
}

/// `conclave watch` on a pseudo-terminal created by `script` of util-linux.
struct Watching {
    child: Child,
    said: Arc<Mutex<Vec<u8>>>,
}

impl Watching {
    fn start(cluster: &Cluster, job: &str, columns: u32) -> Self {
        let line = format!("stty rows 40 cols {columns}; exec {EXE} watch {job}");
        let mut child = Command::new("script")
            .args(["--quiet", "--return", "--flush", "--command", &line, "/dev/null"])
            .envs([("CONCLAVE_COORDINATOR", cluster.url.as_str()), ("TERM", "xterm"), ("SHELL", "/bin/sh")])
            .env("CONCLAVE_IDENTITY", cluster.path("alice"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("`script` of util-linux");
        let (said, mut out) = (Arc::new(Mutex::new(Vec::new())), child.stdout.take().expect("a pipe"));
        let heard = Arc::clone(&said);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = out.read(&mut bytes) {
                heard.lock().expect("a whole buffer").extend_from_slice(&bytes[..count]);
            }
        });
        Self { child, said }
    }

    /// Returns the terminal's output from the last occurrence of `since` on.
    fn since(&self, since: &str) -> String {
        let text = String::from_utf8_lossy(&self.said.lock().expect("a whole buffer")).into_owned();
        text.rfind(since).map_or_else(String::new, |at| text[at..].to_owned())
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_terminal_shows_traces_budgets_and_a_pause_that_comes_and_goes() {
    let mut cluster = cluster("");
    let job = cluster.submit_only(&job(1_000_000));
    let mut watching = Watching::start(&cluster, &job, 100);
    let traces =
        |text: &str| text.split("treated").skip(1).any(|rest| rest.lines().next().is_some_and(|l| l.contains(['▁', '█'])));
    until("traces", PATIENCE, || traces(&watching.since("trace of each chain")));
    until("a budget's bar", PATIENCE, || watching.since("] epsilon ").contains(" of 300 ("));
    until("every parameter", PATIENCE, || {
        let table = watching.since("trace of each chain");
        ["intercept", "treated", "age", " ± "].iter().all(|part| table.contains(part))
    });

    cluster.kill_party(1);
    until("the pause", PATIENCE, || !watching.since("waiting for b since").is_empty());
    cluster.start_party(1);
    // A line of new draws after the last line of waiting.
    until("the end of the pause", PATIENCE, || {
        let after = watching.since("waiting for b since");
        after.contains("sampling [") && traces(&after)
    });
    cluster.must(&["cancel", &job]);
    // `wait` would close the terminal's input first.
    let mut ended = None;
    until("its end", PATIENCE, || {
        ended = watching.child.try_wait().expect("a child");
        ended.is_some()
    });
    // A cancelled run is not a success.
    assert_eq!(ended.and_then(|status| status.code()), Some(1));
    until("the result", PATIENCE, || watching.since("rounds of 2 chains").contains("The job was cancelled"));
}

#[test]
fn plain_lines_name_the_parameter_that_mixes_worst() {
    let cluster = cluster("");
    let job = cluster.submit_only(&job(1_000_000));
    let mut watch = cluster.start(&["watch", &job]);
    let mut lines = std::io::BufReader::new(watch.stderr.take().expect("a pipe"));
    let mut line = String::new();
    let end = Instant::now() + PATIENCE;
    while !line.contains("worst R-hat") {
        assert!(Instant::now() < end, "timed out waiting for a line that names it");
        line.clear();
        assert!(std::io::BufRead::read_line(&mut lines, &mut line).expect("a line") > 0, "the watch ended");
    }
    cluster.must(&["cancel", &job]);
    watch.wait().expect("its end");
    let names = ["intercept", "treated", "age"];
    for figure in ["; worst R-hat ", ", least ESS "] {
        let of = line.split(figure).nth(1).and_then(|rest| rest.split(['(', ')']).nth(1)).unwrap_or_default();
        assert!(names.contains(&of), "{line}");
    }
    assert!(line.contains("epsilon") && !line.contains('\u{1b}') && !line.contains('▁'), "{line}");
}

/// Restarts the coordinator and logs in to its dashboard.
fn restarted(cluster: &mut Cluster) -> Visit {
    cluster.kill_coordinator();
    cluster.start_coordinator();
    cluster.visit_dashboard()
}

#[test]
fn a_job_that_ended_before_a_restart_has_its_plots() {
    let mut cluster = cluster("dashboard = \"127.0.0.1:0\"\n");
    let result = cluster.submit(&job(60));
    let id = result["job"].as_str().expect("a job").to_owned();
    let at = format!("/jobs/{id}");
    let operator = restarted(&mut cluster);
    until("plots from the disk", PATIENCE, || operator.get(&at).1.contains("Trace of treated"));
    let (_, page) = operator.get(&at);
    for there in ["<b>Finished", "R-hat", "60 per chain after the warm-up", "of 60"] {
        assert!(page.contains(there), "{there} in {page}");
    }
    assert!(!page.contains("data-events="), "the page will not change");
    // The page's figures, computed from the disk, equal those of the result.
    // The page has a minus sign where a number has a hyphen.
    let figure = |key: &str| figures(&result)["posterior"][0][key].as_f64().expect("a figure");
    // Two significant digits of the sd.
    let decimals = (1.0 - figure("sd").log10().floor()).max(0.0) as usize;
    let mean = format!("{:.decimals$}", figure("mean").abs());
    assert!(page.rsplit("How the chains mix").next().is_some_and(|table| table.contains(&mean)), "{mean} in {page}");

    // A damaged store and a missing one.
    let draws = zarr::unpack(Path::new(result["draws"].as_str().expect("a path")));
    fs::write(draws.join("sample_stats/accepted/c/1/0"), "short").expect("a chunk");
    let operator = restarted(&mut cluster);
    until("a note on the damage", PATIENCE, || operator.get(&at).1.contains("draws of this job can't be shown"));
    let (_, page) = operator.get(&at);
    assert!(page.contains("accepted/c/1/0") && page.contains("<b>Finished") && !page.contains("<svg class=\"chart\""), "{page}");
    fs::remove_dir_all(&draws).expect("no draws");
    until("a note on the loss", PATIENCE, || operator.get(&at).1.contains("zarr.json cannot be read"));
}
