//! Ledger settings of the configuration: files and limits.

use std::path::{Path, PathBuf};

use conclave_ops::files::parent_folder;
use conclave_privacy::accounting::Budget;

use super::party::PartyConfig;
use conclave_vault::ledger::{LedgerSettings, SECRET_FILE};

/// Default file name of the last head in the identity folder; overridden by `head_file`.
pub(super) const HEAD_FILE: &str = "ledger-head";
/// The private key, within the identity folder.
pub(super) const KEY_FILE: &str = "key.pem";

impl PartyConfig {
    /// Returns the ledger's settings. Its secret key lies beside the party's private key.
    pub fn ledger_settings(&self) -> LedgerSettings {
        let analyst = self.policy.max_epsilon_per_analyst;
        LedgerSettings {
            ledger: self.ledger.clone(),
            secret: self.key.with_file_name(SECRET_FILE),
            head_file: self.head_file.clone(),
            party: self.name.clone(),
            budget: self.budget,
            durability: self.durability,
            analyst_cap: analyst.map(|epsilon| Budget { epsilon, ..self.budget }),
            all_collude: self.secure.max_epsilon_if_all_collude.map(|epsilon| Budget { epsilon, ..self.budget }),
        }
    }
    /// Returns true if the file of the newest head is in the ledger's folder, symbolic links resolved: one copy then contains
    /// both.
    pub(crate) fn is_head_beside_ledger(&self) -> bool {
        let folder = resolved_folder(&self.head_file);
        // The ledger itself may be a link: a copy of the folder that names it then contains no ledger, or both files.
        folder.is_some() && [resolved_folder(&self.ledger), parent_folder(&self.ledger).canonicalize().ok()].contains(&folder)
    }

    /// Refuses secure jobs if an old copy of the ledger would include its head: the rollback would be undetected, and an answer
    /// might be sent twice under one mask.
    ///
    /// # Errors
    /// A sentence that names the key, the file and the remedy.
    pub(crate) fn check_head_location(&self) -> Result<(), String> {
        if !self.secure.allow || !self.is_head_beside_ledger() {
            return Ok(());
        }
        Err(format!(
            "`head_file` is {}, in the folder of `ledger`: with [secure] allow = true, restoring an older copy of that folder \
             would restore the head too, and an answer might be sent twice under one mask. Stop the party, move that file \
             (without it, the keys of all secure jobs are deleted) to a folder that is not copied together with the ledger, and \
             set `head_file` to its new path",
            self.head_file.display()
        ))
    }
}

/// Returns the folder of a file, existing or not, with symbolic links resolved; `None` if the folder does not exist.
fn resolved_folder(file: &Path) -> Option<PathBuf> {
    match file.canonicalize() {
        Ok(file) => Some(parent_folder(&file).to_owned()),
        Err(_) => parent_folder(file).canonicalize().ok(),
    }
}
