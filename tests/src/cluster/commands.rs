//! The analyst's commands, and jobs followed by them.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Cluster, json};

impl Cluster {
    /// Runs the command line in the cluster's folder as alice.
    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the binary starts")
    }

    /// Runs the command line with standard output into a pipe whose reader has gone.
    pub fn run_unread(&self, args: &[&str]) -> Output {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        self.command(args).stdout(writer).output().expect("the binary starts")
    }

    /// Runs the command line with these environment variables.
    pub fn run_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Output {
        self.command(args).envs(variables.iter().copied()).output().expect("the binary starts")
    }

    /// Starts the command line in the background with its output captured.
    pub fn start(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
    }

    /// Runs the command line, which must succeed; returns standard output.
    pub fn must(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let words = String::from_utf8_lossy(&output.stderr);
        // A tiny job's noise may leave it without an adequate answer, which is no failure of the command.
        let inadequate = output.status.code() == Some(3) && words.contains("the run has no adequate answer");
        assert!(output.status.success() || inadequate, "{args:?}: {words}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Submits a job and waits for its result.
    pub fn submit(&self, job: &str) -> Value {
        let path = self.write_job(job);
        json(&self.must(&["submit", &path, "--wait", "--json"]))
    }

    /// Submits a job and returns its id without waiting.
    pub fn submit_only(&self, job: &str) -> String {
        let path = self.write_job(job);
        json(&self.must(&["submit", &path, "--json"]))["job"].as_str().expect("a job id").to_owned()
    }

    /// Returns the job's status as printed by `jobs --json`.
    pub fn status(&self, job: &str) -> Value {
        let list = json(&self.must(&["jobs", "--json"]));
        let jobs = list["jobs"].as_array().cloned().unwrap_or_default();
        jobs.into_iter().find(|j| j["job"] == job).unwrap_or_else(|| panic!("no job {job} in {list}"))
    }

    /// Waits until `test` holds for the job's status. Panics once the job has neither moved nor changed its state for `within`, so
    /// that a slow machine fails no job that moves.
    pub fn wait_status(&self, job: &str, within: Duration, what: &str, test: impl Fn(&Value) -> bool) -> Value {
        let (mut end, mut last) = (Instant::now() + within, (Value::Null, Value::Null));
        loop {
            let status = self.status(job);
            if test(&status) {
                return status;
            }
            let now = (status["state"].clone(), status["iterations"].clone());
            if now != last {
                (end, last) = (Instant::now() + within, now);
            }
            assert!(Instant::now() < end, "timed out waiting for {what}: {status}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the job runs, and then for new draws: a log may show draws before all parties are back.
    pub fn wait_resumed(&self, job: &str, within: Duration) {
        let draws = |status: &Value| status["draws"].as_u64().unwrap_or(0);
        let back = self.wait_status(job, within, "all parties to be back", |status| status["state"] == "running");
        self.wait_status(job, within, "more draws", |status| draws(status) > draws(&back) + 5);
    }

    /// Writes a job file and returns its path.
    pub fn write_job(&self, job: &str) -> String {
        let path = self.path("job.toml");
        fs::write(&path, job).expect("a job file");
        path.to_str().expect("a plain path").to_owned()
    }

    fn command(&self, args: &[&str]) -> Command {
        self.command_of(&self.exe, args)
    }

    pub(super) fn command_of(&self, exe: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(exe);
        command.args(args).current_dir(self.folder.path());
        if let Some(filter) = self.rust_log {
            command.env("RUST_LOG", filter);
        }
        command.env("CONCLAVE_COORDINATOR", &self.url).env("CONCLAVE_IDENTITY", self.path("alice"));
        command
    }
}
