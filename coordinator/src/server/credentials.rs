//! The coordinator's certificate and revocation list, as they are on disk: both change without a restart.

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
use crate::party_registry::PartyRegistry;

/// Interval at which the files are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which every connection's certificate is checked again, and an unreadable list is reported.
const CHECK: Duration = Duration::from_secs(60);
const DAILY: Duration = Duration::from_secs(86_400);

/// The gate that admits members, and the connections of those admitted.
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
    /// Loads the identity folder and checks that the revocation list can be read.
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

    /// Loads the credentials that a configuration names.
    ///
    /// # Errors
    /// The errors of [`Self::load`]; [`RunError::Input`] if others may read the key.
    pub(crate) fn of(config: &Config) -> Result<Self, RunError> {
        // A group may read it: the daemon does not own a key that is mounted as a container's secret.
        check_closed_to(0o027, &config.identity.join("key.pem")).map_err(RunError::Input)?;
        Self::load(&config.identity, config.revoked.as_deref())
    }

    /// The gate for new connections.
    pub(super) fn gate(&self) -> Gate {
        self.gate.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Members' connections; those whose certificates are no longer valid are cut.
    pub(super) fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    /// Watches the files on a thread of its own, for as long as the returned value lives, and lets `party_registry` know of revoked
    /// parties.
    ///
    /// # Errors
    /// The operating system can't start a thread.
    pub(super) fn watch(self: &Arc<Self>, party_registry: Arc<PartyRegistry>) -> std::io::Result<Watch> {
        let (stop, stopped) = mpsc::channel();
        let mut watcher = Watcher::new(Arc::clone(self), party_registry);
        std::thread::Builder::new().name("credentials".to_owned()).spawn(move || {
            while stopped.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
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
    let next = "create the next CA and put both certificates into every member's ca.pem";
    let ends = [("this coordinator's certificate", expires.certificate, renew), ("the consortium's CA", expires.ca, next)];
    let soon = ends.into_iter().filter(|(_, end, _)| is_expiring(*end, now));
    soon.map(|(what, end, remedy)| match days_until(end, now) {
        ..0 => format!("{what} has expired: {remedy}"),
        days => format!("{what} expires in {days} days: {remedy}"),
    })
    .collect()
}

/// Modification time and length of each file of an identity folder.
type Stamp = Vec<Option<(SystemTime, u64)>>;

fn stamp(folder: &Path) -> Stamp {
    let one = |name: &str| {
        let metadata = std::fs::metadata(folder.join(name)).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    ["certificate.pem", "key.pem", "ca.pem"].into_iter().map(one).collect()
}

/// State of the files as seen so far.
struct Watcher {
    credentials: Arc<Credentials>,
    party_registry: Arc<PartyRegistry>,
    /// Stamp of the identity in use, or of one that was tried and rejected.
    tried: Stamp,
    seen: Stamp,
    list: Result<Option<RevokedList>, Fault>,
    checked: Instant,
    warned: Instant,
}

impl Watcher {
    fn new(credentials: Arc<Credentials>, party_registry: Arc<PartyRegistry>) -> Self {
        let tried = stamp(&credentials.folder);
        let list = read(&credentials);
        credentials.warn_of_expiry();
        let now = Instant::now();
        let watcher = Self { credentials, party_registry, seen: tried.clone(), tried, list, checked: now, warned: now };
        watcher.name_revoked();
        watcher
    }

    fn name_revoked(&self) {
        self.party_registry.set_revoked(self.list.clone().ok().flatten().unwrap_or_default());
    }

    /// Cuts the connections whose certificates are no longer valid.
    fn sweep(&self) {
        let gate = self.credentials.gate();
        self.credentials.connections.sweep(|chain| gate.check(chain, SystemTime::now()));
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
            self.sweep();
        }
        if now.duration_since(self.warned) >= DAILY {
            self.warned = now;
            self.credentials.warn_of_expiry();
        }
    }

    /// Loads a new identity once its files are complete: unchanged from one check to the next.
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

    /// Reads the list again; returns true if connections have to be checked against it. New connections read it themselves.
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
        self.name_revoked();
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
