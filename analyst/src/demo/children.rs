//! The demo's daemons: child processes of this executable, stopped with it in all cases.
//!
//! A child stops when its standard input closes: on request of this process, and also if this process is killed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use conclave_proto::error::{ErrorCode, Fault};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout_at};

use crate::output::note;

/// Time after which a daemon that is not ready is abandoned.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// Time after which a daemon that was asked to stop is killed.
const STOP_WITHIN: Duration = Duration::from_secs(10);
/// Polling interval for a daemon's ready file.
const POLL: Duration = Duration::from_millis(20);
/// Number of log lines shown for a failed daemon.
const TAIL: usize = 8;

pub(super) struct Daemon<'a> {
    /// Name in messages, and of its log.
    pub(super) name: &'a str,
    /// Hidden subcommand that runs this daemon.
    pub(super) word: &'a str,
    pub(super) config: &'a Path,
    /// Folder of logs and ready files.
    pub(super) logs: &'a Path,
}

/// The running daemons, in the order of their start.
#[derive(Default)]
pub(super) struct Children {
    running: Vec<Running>,
}

struct Running {
    name: String,
    log: PathBuf,
    ready: PathBuf,
    child: Child,
}

impl Children {
    pub(super) fn start(&mut self, daemon: &Daemon<'_>) -> Result<(), Fault> {
        let log = daemon.logs.join(format!("{}.log", daemon.name));
        let ready = daemon.logs.join(format!("{}.ready", daemon.name));
        let file = File::create(&log).map_err(|e| Fault::of_file(&log, "be written", &e))?;
        let copy = file.try_clone().map_err(|e| Fault::of_file(&log, "be written", &e))?;
        let words = super::program::words().map_err(|e| cannot_start(daemon.name, &e))?;
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .arg(daemon.word)
            .arg("run")
            .arg("--config")
            .arg(daemon.config)
            .arg("--ready-file")
            .arg(&ready)
            .arg("--exit-with-stdin")
            // Logs go to files; colours are for terminals.
            .env("NO_COLOR", "1")
            .stdin(Stdio::piped())
            .stdout(copy)
            .stderr(file)
            .kill_on_drop(true);
        // Only this process handles Ctrl-C; it stops the daemons in order.
        #[cfg(unix)]
        command.process_group(0);
        let child = command.spawn().map_err(|e| cannot_start(daemon.name, &e))?;
        self.running.push(Running { name: daemon.name.to_owned(), log, ready, child });
        Ok(())
    }

    /// Waits until every daemon has written its ready file, and returns the text of the last one started.
    pub(super) async fn ready(&mut self) -> Result<String, Fault> {
        let deadline = Instant::now() + READY_WITHIN;
        let mut last = String::new();
        for running in &mut self.running {
            loop {
                if let Ok(text) = std::fs::read_to_string(&running.ready)
                    && !text.trim().is_empty()
                {
                    last = text.trim().to_owned();
                    break;
                }
                if let Ok(Some(status)) = running.child.try_wait() {
                    return Err(running.ended(status));
                }
                if Instant::now() > deadline {
                    return Err(
                        running.fault(ErrorCode::Unreachable, &format!("is not ready after {} s", READY_WITHIN.as_secs()))
                    );
                }
                sleep(POLL).await;
            }
        }
        Ok(last)
    }

    /// Returns a fault as soon as any daemon ends by itself.
    pub(super) async fn watch(&mut self) -> Fault {
        loop {
            for running in &mut self.running {
                if let Ok(Some(status)) = running.child.try_wait() {
                    return running.ended(status);
                }
            }
            sleep(10 * POLL).await;
        }
    }

    /// Asks every daemon to stop, the parties before the coordinator, and kills those that do not.
    pub(super) async fn stop(mut self) {
        for running in self.running.iter_mut().rev() {
            drop(running.child.stdin.take());
        }
        let deadline = Instant::now() + STOP_WITHIN;
        for running in self.running.iter_mut().rev() {
            if timeout_at(deadline, running.child.wait()).await.is_err() {
                note!("{} did not stop by itself and will be killed", running.name);
                // It may have ended in the meantime, as requested.
                let _ = running.child.kill().await;
            }
            let _ = std::fs::remove_file(&running.ready);
        }
    }
}

impl Running {
    fn ended(&self, status: ExitStatus) -> Fault {
        let code = match status.code() {
            Some(2) => ErrorCode::InvalidInput,
            Some(3) => ErrorCode::Policy,
            Some(4) => ErrorCode::Unreachable,
            _ => ErrorCode::Internal,
        };
        self.fault(code, &format!("has ended ({status})"))
    }

    fn fault(&self, code: ErrorCode, what: &str) -> Fault {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(TAIL)..].join("\n  ");
        Fault::new(code, format!("the daemon {} {what}; its log {} ends with\n  {tail}", self.name, self.log.display()))
    }
}

fn cannot_start(name: &str, error: &std::io::Error) -> Fault {
    Fault::new(ErrorCode::Internal, format!("the daemon {name} could not be started: {error}"))
}
