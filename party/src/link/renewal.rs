//! Loads a renewed certificate while the party is attached.
//!
//! The current session is given up only once the coordinator has accepted the new certificate. Files that can't be used, or that
//! the coordinator does not accept yet, leave the session unchanged.

use std::time::{Duration, SystemTime};

use conclave_proto::error::Fault;
use conclave_proto::tls::IdentityDir;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::dial::Dial;
use conclave_vault::text::clip;

/// Interval between checks of the folder.
pub(super) const POLL_EVERY: Duration = Duration::from_secs(1);
/// Pause before a refused certificate is tried again.
const AGAIN: Duration = Duration::from_secs(30);

/// Watches the identity files of one session.
pub(super) struct Renewal {
    in_use: IdentityDir,
    /// A trial connection with the new files; it ends with this struct.
    trial: JoinSet<(IdentityDir, Result<(), Fault>)>,
    /// Refused files, with the time of the refusal.
    refused: Option<(IdentityDir, Instant)>,
    last_warning: String,
}

impl Renewal {
    pub(super) fn of(in_use: IdentityDir) -> Self {
        Self { in_use, trial: JoinSet::new(), refused: None, last_warning: String::new() }
    }

    /// Checks the folder. Returns true once the coordinator accepts different files in it: the session must then be restarted.
    pub(super) fn poll(&mut self, dial: &Dial) -> bool {
        match self.trial.try_join_next() {
            Some(Ok((_, Ok(())))) => return true,
            Some(Ok((new, Err(fault)))) => {
                self.warn(&format!(
                    "the renewed certificate was not accepted, and the session continues with the old one: {fault}"
                ));
                self.refused = Some((new, Instant::now()));
            }
            Some(Err(e)) => self.warn(&format!("the renewed certificate can't be tried: {e}")),
            None => {}
        }
        match self.changed(dial) {
            Ok(None) => {
                self.last_warning.clear();
                self.refused = None;
            }
            Ok(Some(new)) if self.trial.is_empty() && !self.refused_lately(&new) => {
                let dial = dial.clone();
                self.trial.spawn(async move {
                    let tried = dial.connect_as(&new).await.map(drop);
                    (new, tried)
                });
            }
            Ok(Some(_)) => {}
            Err(fault) => {
                self.warn(&format!("the identity's files can't be used, and the session continues with the old ones: {fault}"));
            }
        }
        false
    }

    fn refused_lately(&self, new: &IdentityDir) -> bool {
        self.refused.as_ref().is_some_and(|(refused, at)| refused.has_same_files(new) && at.elapsed() < AGAIN)
    }

    /// Loads the current files; `None` if they are those in use.
    fn changed(&self, dial: &Dial) -> Result<Option<IdentityDir>, Fault> {
        let new = dial.load()?;
        if new.has_same_files(&self.in_use) {
            return Ok(None);
        }
        new.check_at(SystemTime::now())?;
        Ok(Some(new))
    }

    fn warn(&mut self, what: &str) {
        let line = clip(what, 600);
        if self.last_warning != line {
            tracing::warn!("{line}");
            self.last_warning = line;
        }
    }
}
