//! The coordinator's certificate and its list of revoked ones, as they stand on disk now: both change without a restart.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use conclave_ops::files::check_closed_to;
use conclave_proto::error::Fault;
use conclave_proto::identity::Role;
use conclave_proto::revoked::{RevokedFile, RevokedList};
use conclave_proto::tls::{Expiry, Gate, IdentityDir, days_until, is_expiring};

use super::connections::Connections;
use crate::config::Config;
use crate::error::RunError;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How often every connection's certificate is checked again, and a list that can't be read is complained of.
const CHECK: Duration = Duration::from_secs(60);
const DAILY: Duration = Duration::from_secs(86_400);

/// What lets members in, and who is in.
#[derive(Debug)]
pub(crate) struct Credentials {
    folder: PathBuf,
    revoked: Option<RevokedFile>,
    gate: RwLock<Gate>,
    connections: Arc<Connections>,
}

/// Ends the watching of the files when it is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    _stop: mpsc::Sender<()>,
}

impl Credentials {
    /// Loads the identity folder and looks whether the list of revoked certificates can be read.
    ///
    /// # Errors
    /// [`RunError::Input`], naming the key and the file.
    pub(crate) fn load(folder: &Path, revoked: Option<&Path>) -> Result<Self, RunError> {
        let revoked = revoked.map(RevokedFile::at);
        if let Some(file) = &revoked {
            file.read().map_err(|fault| RunError::Input(fault.message))?;
        }
        let gate = load(folder, revoked.clone()).map_err(|fault| RunError::Input(format!("`identity`: {fault}")))?;
        Ok(Self { folder: folder.to_owned(), revoked, gate: RwLock::new(gate), connections: Arc::default() })
    }

    /// As [`Self::load`], of what a configuration names.
    ///
    /// # Errors
    /// As [`Self::load`]; [`RunError::Input`] where others may read the key.
    pub(crate) fn of(config: &Config) -> Result<Self, RunError> {
        // A group may read it: of a key that comes as a container's secret, the daemon is not the owner.
        check_closed_to(0o027, &config.identity.join("key.pem")).map_err(RunError::Input)?;
        Self::load(&config.identity, config.revoked.as_deref())
    }

    /// What new connections go through.
    pub(super) fn gate(&self) -> Gate {
        self.gate.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The members' connections; those whose certificates no longer count are cut.
    pub(super) fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    /// Watches the files, on a thread of its own, for as long as the answer lives.
    ///
    /// # Errors
    /// An operating system that gives no thread.
    pub(super) fn watch(self: &Arc<Self>) -> std::io::Result<Watch> {
        let (stop, stopped) = mpsc::channel();
        let mut watcher = Watcher::new(Arc::clone(self));
        std::thread::Builder::new().name("credentials".to_owned()).spawn(move || {
            while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                watcher.look(Instant::now());
            }
        })?;
        Ok(Watch { _stop: stop })
    }

    fn warn_of_expiry(&self) {
        match IdentityDir::load(&self.folder).and_then(|identity| identity.expiry()) {
            Ok(expires) => warnings(&expires, SystemTime::now()).iter().for_each(|line| tracing::warn!("{line}")),
            Err(fault) => tracing::warn!("{fault}"),
        }
    }
}

fn load(folder: &Path, revoked: Option<RevokedFile>) -> Result<Gate, Fault> {
    let identity = IdentityDir::load(folder)?;
    identity.require(Role::Coordinator)?;
    identity.check_at(SystemTime::now())?;
    identity.gate(revoked)
}

fn warnings(expires: &Expiry, now: SystemTime) -> Vec<String> {
    let renew =
        "have a new one signed with `conclave ca sign --coordinator` and put it into the identity folder; no restart is needed";
    let next = "make the next CA and put both certificates into every member's ca.pem";
    let ends = [("this coordinator's certificate", expires.certificate, renew), ("the consortium's CA", expires.ca, next)];
    let soon = ends.into_iter().filter(|(_, end, _)| is_expiring(*end, now));
    soon.map(|(what, end, remedy)| match days_until(end, now) {
        ..0 => format!("{what} has expired: {remedy}"),
        days => format!("{what} expires in {days} days: {remedy}"),
    })
    .collect()
}

/// Time of change and length of each file of an identity folder.
type Stamp = Vec<Option<(SystemTime, u64)>>;

fn stamp(folder: &Path) -> Stamp {
    let one = |name: &str| {
        let metadata = std::fs::metadata(folder.join(name)).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    ["certificate.pem", "key.pem", "ca.pem"].into_iter().map(one).collect()
}

/// What has been seen of the files so far.
struct Watcher {
    credentials: Arc<Credentials>,
    /// Of the identity in use, or of one that was tried and found wanting.
    tried: Stamp,
    seen: Stamp,
    list: Result<Option<RevokedList>, Fault>,
    checked: Instant,
    warned: Instant,
}

impl Watcher {
    fn new(credentials: Arc<Credentials>) -> Self {
        let tried = stamp(&credentials.folder);
        let list = read(&credentials);
        credentials.warn_of_expiry();
        let now = Instant::now();
        Self { credentials, seen: tried.clone(), tried, list, checked: now, warned: now }
    }

    fn look(&mut self, now: Instant) {
        let renewed = self.look_at_identity();
        let revoked = self.look_at_list();
        let due = now.duration_since(self.checked) >= CHECK;
        if renewed || revoked || due {
            if let (true, Err(fault)) = (due, &self.list) {
                tracing::error!("{}", fault.message);
            }
            self.checked = now;
            let gate = self.credentials.gate();
            self.credentials.connections.sweep(|chain| gate.check(chain, SystemTime::now()));
        }
        if now.duration_since(self.warned) >= DAILY {
            self.warned = now;
            self.credentials.warn_of_expiry();
        }
    }

    /// Takes up a new identity once its files are there together: when they have stayed the same from one look to the next.
    fn look_at_identity(&mut self) -> bool {
        let found = stamp(&self.credentials.folder);
        let settled = found == self.seen;
        self.seen.clone_from(&found);
        if !settled || found == self.tried {
            return false;
        }
        self.tried = found;
        match load(&self.credentials.folder, self.credentials.revoked.clone()) {
            Ok(gate) => {
                *self.credentials.gate.write().unwrap_or_else(PoisonError::into_inner) = gate;
                tracing::info!("the identity folder has changed: new connections use the new certificate");
                self.credentials.warn_of_expiry();
                true
            }
            Err(fault) => {
                tracing::error!(
                    "the identity folder has changed and can't be used, so the old certificate stays in use: {fault}"
                );
                false
            }
        }
    }

    /// Reads the list again; true where connections are to be checked by it. New ones read it for themselves.
    fn look_at_list(&mut self) -> bool {
        let found = read(&self.credentials);
        if found == self.list {
            return false;
        }
        match &found {
            Ok(_) => tracing::info!("the list of revoked certificates has changed"),
            Err(fault) => tracing::error!("{}", fault.message),
        }
        self.list = found;
        true
    }
}

fn read(credentials: &Credentials) -> Result<Option<RevokedList>, Fault> {
    credentials.revoked.as_ref().map(RevokedFile::read).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_begin_thirty_days_before() {
        let now = SystemTime::UNIX_EPOCH + 100 * DAILY;
        let said = |certificate: u32, ca: u32| {
            let at = |day: u32| SystemTime::UNIX_EPOCH + day * DAILY;
            warnings(&Expiry { certificate: at(certificate), ca: at(ca) }, now)
        };
        assert!(said(131, 131).is_empty());
        assert!(matches!(&said(130, 131)[..], [line] if line.contains("coordinator's certificate expires in 30 days")));
        assert!(matches!(&said(131, 99)[..], [line] if line.contains("CA has expired")));
    }
}
