//! A renewed certificate, taken up while the party is attached.
//!
//! The session in hand is given up only once the coordinator has accepted the new certificate: files that can't be used, or that the
//! coordinator does not know yet, leave it as it is.

use std::time::{Duration, SystemTime};

use conclave_proto::error::Fault;
use conclave_proto::tls::IdentityDir;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::dial::Dial;
use conclave_vault::text::clip;

/// The folder is looked at this often.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// A certificate that the coordinator has refused is shown to it again after this long.
const AGAIN: Duration = Duration::from_secs(30);

/// Watches over the identity of one session.
pub(super) struct Renewal {
    in_use: IdentityDir,
    /// A connection made with the new files, to see whether they are accepted. It ends with this.
    trial: JoinSet<(IdentityDir, Result<(), Fault>)>,
    /// Files that were not accepted, and when.
    refused: Option<(IdentityDir, Instant)>,
    said: String,
}

impl Renewal {
    pub(super) fn of(in_use: IdentityDir) -> Self {
        Self { in_use, trial: JoinSet::new(), refused: None, said: String::new() }
    }

    /// Looks at the folder. True once other files lie there and the coordinator accepts them: then the session is to begin anew.
    pub(super) fn look(&mut self, dial: &Dial) -> bool {
        match self.trial.try_join_next() {
            Some(Ok((_, Ok(())))) => return true,
            Some(Ok((new, Err(fault)))) => {
                self.say(&format!("the renewed certificate is not accepted, and the session goes on with the old one: {fault}"));
                self.refused = Some((new, Instant::now()));
            }
            Some(Err(e)) => self.say(&format!("the renewed certificate can't be tried: {e}")),
            None => {}
        }
        match self.changed(dial) {
            Ok(None) => {
                self.said.clear();
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
                self.say(&format!("the identity's files can't be used, and the session goes on with the old ones: {fault}"));
            }
        }
        false
    }

    fn refused_lately(&self, new: &IdentityDir) -> bool {
        self.refused.as_ref().is_some_and(|(refused, at)| refused.has_same_files(new) && at.elapsed() < AGAIN)
    }

    /// The files as they are now, where they are others than those in use.
    fn changed(&self, dial: &Dial) -> Result<Option<IdentityDir>, Fault> {
        let new = dial.load()?;
        if new.has_same_files(&self.in_use) {
            return Ok(None);
        }
        new.check_at(SystemTime::now())?;
        Ok(Some(new))
    }

    fn say(&mut self, what: &str) {
        let line = clip(what, 600);
        if self.said != line {
            tracing::warn!("{line}");
            self.said = line;
        }
    }
}
