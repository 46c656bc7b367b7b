//! Daemons: started until ready, signalled, killed.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::Cluster;

const READY_WITHIN: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(5);

impl Cluster {
    /// Starts the coordinator and waits until it listens: first on a port chosen by the system, later on the same port.
    pub fn start_coordinator(&mut self) {
        let listen = self.url.strip_prefix("https://").unwrap_or("127.0.0.1:0");
        self.write_coordinator(listen);
        let mut child = self.spawn("__coordinator", "coordinator/coordinator.toml", "coordinator");
        let address = self.wait_ready("coordinator", &mut child);
        self.coordinator = Some(child);
        self.url = format!("https://{address}");
    }

    fn write_coordinator(&self, listen: &str) {
        let text = format!(
            "listen = \"{listen}\"\nidentity = \"identity/\"\nstore = \"coordinator.sqlite\"\ndraws = \"draws/\"\n{}",
            self.coordinator_extra
        );
        fs::write(self.path("coordinator/coordinator.toml"), text).expect("a configuration");
    }

    /// Makes the daemon of this name (`coordinator`, or a party's) run this build of the command line from its next start on. A
    /// party that is not yet enrolled has its ledger created by this build, too.
    pub fn use_build(&mut self, name: &str, exe: &str) {
        self.builds.insert(name.to_owned(), exe.into());
    }

    pub(super) fn build_of(&self, name: &str) -> &Path {
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

    /// Starts a party and waits until it is attached.
    pub fn start_party(&mut self, party: usize) {
        let name = self.parties[party].0.clone();
        let mut child = self.spawn("__party", &format!("{name}/party.toml"), &name);
        self.wait_ready(&name, &mut child);
        self.parties[party].1 = Some(child);
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

    /// Returns the process id of the running coordinator.
    pub fn coordinator_pid(&self) -> u32 {
        self.coordinator.as_ref().expect("a running coordinator").id()
    }

    /// Returns the process id of a running party.
    pub fn party_pid(&self, party: usize) -> u32 {
        self.parties[party].1.as_ref().expect("a running party").id()
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
