//! A consortium of real processes on loopback, set up through the command line as its members would do it.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::study;

const READY_WITHIN: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(5);

/// The set-up of one party.
pub struct PartySetup<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its data file.
    pub data: &'a Path,
    /// The column names that its policy admits.
    pub columns: &'a [&'a str],
    /// Its data set's epsilon, at delta = 1e-6.
    pub epsilon: f64,
    /// Lines added to `[data]`.
    pub data_extra: &'a str,
    /// Lines added to `[budget]`.
    pub budget_extra: &'a str,
    /// Lines added to `[policy]`.
    pub policy_extra: &'a str,
}

/// A coordinator, parties and an analyst called alice in a folder of their own.
pub struct Cluster {
    folder: TempDir,
    exe: PathBuf,
    /// The coordinator's URL.
    pub url: String,
    /// `RUST_LOG` of daemons started from now on.
    pub rust_log: Option<&'static str>,
    /// Lines added to `coordinator.toml`, from the next start on.
    pub coordinator_extra: &'static str,
    coordinator: Option<Child>,
    parties: Vec<(String, Option<Child>)>,
    /// Daemons that run another build of the command line, by name.
    builds: HashMap<String, PathBuf>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let children = self.parties.iter_mut().map(|(_, c)| c).chain([&mut self.coordinator]);
        for mut child in children.filter_map(Option::take) {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            self.print_logs();
        }
    }
}

impl Cluster {
    /// Creates certificates and starts a coordinator; there is no party yet. `exe` is the binary of the whole command line.
    pub fn new(exe: &str) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let mut cluster = Self {
            folder,
            exe: exe.into(),
            url: String::new(),
            rust_log: None,
            coordinator_extra: "",
            coordinator: None,
            parties: Vec::new(),
            builds: HashMap::new(),
        };
        cluster.must(&["ca", "init", "--out", "ca"]);
        cluster.must(&[
            "ca",
            "request",
            "coordinator",
            "main",
            "--host",
            "127.0.0.1",
            "--host",
            "coordinator.test",
            "--out",
            "coordinator/identity",
        ]);
        cluster.must(&["ca", "sign", "coordinator/identity/request.pem", "--ca", "ca", "--coordinator"]);
        cluster.must(&["ca", "request", "analyst", "alice", "--out", "alice"]);
        cluster.must(&["ca", "sign", "alice/request.pem", "--ca", "ca"]);
        cluster.start_coordinator();
        cluster
    }

    /// Returns the path of a file in the cluster's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write_coordinator(&self, listen: &str) {
        let text = format!(
            "listen = \"{listen}\"\nidentity = \"identity/\"\nstore = \"coordinator.sqlite\"\ndraws = \"draws/\"\n{}",
            self.coordinator_extra
        );
        fs::write(self.path("coordinator/coordinator.toml"), text).expect("a configuration");
    }

    /// Starts the coordinator and waits until it listens: first on a port chosen by the system, later on the same port.
    pub fn start_coordinator(&mut self) {
        let listen = self.url.strip_prefix("https://").unwrap_or("127.0.0.1:0");
        self.write_coordinator(listen);
        let mut child = self.spawn("__coordinator", "coordinator/coordinator.toml", "coordinator");
        let address = self.wait_ready("coordinator", &mut child);
        self.coordinator = Some(child);
        self.url = format!("https://{address}");
    }

    /// Makes the daemon of this name (`coordinator`, or a party's) run this build of the command line from its next start on. A
    /// party that is not yet enrolled has its ledger created by this build, too.
    pub fn use_build(&mut self, name: &str, exe: &str) {
        self.builds.insert(name.to_owned(), exe.into());
    }

    fn build_of(&self, name: &str) -> &Path {
        self.builds.get(name).unwrap_or(&self.exe)
    }

    /// Kills the coordinator with SIGKILL.
    pub fn kill_coordinator(&mut self) {
        kill(self.coordinator.take());
    }

    /// Sends the coordinator a signal by name, such as `TERM`.
    pub fn signal_coordinator(&self, name: &str) {
        signal(self.coordinator.as_ref(), name);
    }

    /// Waits for the coordinator to exit by itself.
    pub fn wait_coordinator_exit(&mut self) -> ExitStatus {
        self.coordinator.take().expect("a running process").wait().expect("its end")
    }

    /// Writes a party's configuration and enrols the party without starting it; returns its index.
    pub fn enrol(&mut self, setup: &PartySetup<'_>) -> usize {
        let name = setup.name;
        let columns: Vec<String> = setup.columns.iter().map(|c| format!("\"{c}\"")).collect();
        let text = format!(
            "name = \"{name}\"\ncoordinator = \"{}\"\nidentity = \"identity/\"\nledger = \"ledger.sqlite\"\n\
             [data]\npath = {:?}\n{}\n[budget]\nepsilon = {:?}\ndelta = 1e-6\n{}[policy]\napprove = \"automatic\"\ncolumns = [{}]\n{}\n",
            self.url,
            setup.data,
            setup.data_extra,
            setup.epsilon,
            setup.budget_extra,
            columns.join(", "),
            setup.policy_extra,
        );
        fs::create_dir_all(self.path(name)).expect("a party's folder");
        fs::write(self.path(name).join("party.toml"), text).expect("a party's configuration");
        let config = format!("{name}/party.toml");
        let init = |more: &[&str]| {
            let args = [&["__party", "init", "--config", &config], more].concat();
            self.command_of(self.build_of(name), &args).output().expect("the binary starts")
        };
        let mut made = init(&["--yes"]);
        // An older build may not know the option, and asks nothing.
        if String::from_utf8_lossy(&made.stderr).contains("unexpected argument '--yes'") {
            made = init(&[]);
        }
        let init = made;
        assert!(init.status.success(), "{}", String::from_utf8_lossy(&init.stderr));
        self.must(&["ca", "sign", &format!("{name}/identity/request.pem"), "--ca", "ca"]);
        self.parties.push((name.to_owned(), None));
        self.parties.len() - 1
    }

    /// Enrols a party with these records of the small study and no reply delay, without starting it; returns its index.
    pub fn enrol_study(&mut self, name: &str, records: &[study::Record], epsilon: f64) -> usize {
        let data = study::write(&self.path(&format!("{name}.csv")), &study::csv(records));
        let (columns, policy_extra) = (&study::COLUMNS, "reply_delay_ms = 0");
        self.enrol(&PartySetup { name, data: &data, columns, epsilon, data_extra: "", budget_extra: "", policy_extra })
    }

    /// Starts a party and waits until it is attached.
    pub fn start_party(&mut self, party: usize) {
        let name = self.parties[party].0.clone();
        let mut child = self.spawn("__party", &format!("{name}/party.toml"), &name);
        self.wait_ready(&name, &mut child);
        self.parties[party].1 = Some(child);
    }

    /// Returns the names of the parties, in the order of their enrolment.
    pub fn names(&self) -> Vec<&str> {
        self.parties.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Kills a party with SIGKILL.
    pub fn kill_party(&mut self, party: usize) {
        kill(self.parties[party].1.take());
    }

    /// Sends a party a signal by name, such as `TERM`.
    pub fn signal_party(&self, party: usize, name: &str) {
        signal(self.parties[party].1.as_ref(), name);
    }

    /// Waits for a party to exit by itself.
    pub fn wait_party_exit(&mut self, party: usize) -> ExitStatus {
        self.parties[party].1.take().expect("a running process").wait().expect("its end")
    }

    /// Makes every enrolled party admit jobs with masked answers and pin all other parties by the fingerprints that they print.
    /// To be called before the parties are started.
    pub fn pin_all(&self) {
        let names = self.names();
        let line = |name: &&str| {
            let printed = self.must(&["__party", "fingerprint", "--config", &format!("{name}/party.toml")]);
            printed.trim().replacen(' ', " = \"", 1) + "\"\n"
        };
        let lines: Vec<String> = names.iter().map(line).collect();
        for (party, name) in names.iter().enumerate() {
            let others = lines.iter().enumerate().filter(|(other, _)| *other != party);
            let pins: String = others.map(|(_, line)| line.as_str()).collect();
            let path = self.path(name).join("party.toml");
            let text = fs::read_to_string(&path).expect("a configuration");
            fs::write(path, format!("{text}\n[secure]\nallow = true\n[secure.pinned]\n{pins}")).expect("a configuration");
        }
    }

    /// Adds lines before the tables of a party's configuration.
    pub fn configure_party(&self, party: usize, lines: &str) {
        let path = self.path(&self.parties[party].0).join("party.toml");
        let text = fs::read_to_string(&path).expect("a configuration");
        fs::write(path, format!("{lines}\n{text}")).expect("a configuration");
    }

    /// Returns the process id of the running coordinator.
    pub fn coordinator_pid(&self) -> u32 {
        self.coordinator.as_ref().expect("a running coordinator").id()
    }

    /// Returns the process id of a running party.
    pub fn party_pid(&self, party: usize) -> u32 {
        self.parties[party].1.as_ref().expect("a running party").id()
    }

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
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
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

    /// Waits until `test` holds for the job's status.
    pub fn wait_status(&self, job: &str, within: Duration, what: &str, test: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + within;
        loop {
            let status = self.status(job);
            if test(&status) {
                return status;
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

    /// Opens the party's ledger read-only, as an auditor would.
    pub fn ledger(&self, party: usize) -> rusqlite::Connection {
        let path = self.path(&self.parties[party].0).join("ledger.sqlite");
        rusqlite::Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).expect("a ledger")
    }

    /// Opens the coordinator's store read-only.
    pub fn store(&self) -> rusqlite::Connection {
        let path = self.path("coordinator/coordinator.sqlite");
        rusqlite::Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).expect("a store")
    }

    /// Returns the number of rounds in the coordinator's durable log.
    pub fn rounds(&self) -> u64 {
        self.store().query_row("SELECT count(*) FROM rounds", [], |row| row.get(0)).expect("a count")
    }

    /// Returns a daemon's log so far.
    pub fn log(&self, name: &str) -> String {
        fs::read_to_string(self.path(&format!("{name}.log"))).unwrap_or_default()
    }

    fn command(&self, args: &[&str]) -> Command {
        self.command_of(&self.exe, args)
    }

    fn command_of(&self, exe: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(exe);
        command.args(args).current_dir(self.folder.path());
        if let Some(filter) = self.rust_log {
            command.env("RUST_LOG", filter);
        }
        command.env("CONCLAVE_COORDINATOR", &self.url).env("CONCLAVE_IDENTITY", self.path("alice"));
        command
    }

    fn spawn(&self, word: &str, config: &str, name: &str) -> Child {
        let ready = self.path(&format!("{name}.ready"));
        let _ = fs::remove_file(&ready);
        let log = fs::OpenOptions::new().create(true).append(true).open(self.path(&format!("{name}.log"))).expect("a log");
        let ready = ready.to_str().expect("a plain path");
        // A daemon stops once its standard input closes: none outlives a killed test.
        let exe = self.build_of(name);
        self.command_of(exe, &[word, "run", "--config", config, "--ready-file", ready, "--exit-with-stdin"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the binary starts")
    }

    fn wait_ready(&self, name: &str, child: &mut Child) -> String {
        let end = Instant::now() + READY_WITHIN;
        loop {
            let text = fs::read_to_string(self.path(&format!("{name}.ready"))).unwrap_or_default();
            if !text.trim().is_empty() {
                return text.trim().to_owned();
            }
            let gone = child.try_wait().expect("a child");
            if gone.is_some() || Instant::now() > end {
                let _ = child.kill();
                panic!("{name} is not ready ({gone:?}): {}", self.log(name));
            }
            std::thread::sleep(POLL);
        }
    }

    fn print_logs(&self) {
        for name in self.parties.iter().map(|(n, _)| n.as_str()).chain(["coordinator"]) {
            let log = self.log(name);
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("--- {name}\n{}", lines[lines.len().saturating_sub(30)..].join("\n"));
        }
    }
}

fn signal(child: Option<&Child>, name: &str) {
    let process = child.expect("a running process").id().to_string();
    let sent = Command::new("kill").args([&format!("-{name}"), &process]).status().expect("kill");
    assert!(sent.success(), "kill -{name} {process}");
}

fn kill(child: Option<Child>) {
    let mut child = child.expect("a running process");
    child.kill().expect("SIGKILL");
    child.wait().expect("its end");
}

/// Parses one JSON object.
pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("not one JSON object ({e}): {text}"))
}
