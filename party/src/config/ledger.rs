//! The configuration's ledger settings: where a party's ledger is kept, and under which limits.

use std::path::{Path, PathBuf};

use conclave_ops::files::parent_folder;
use conclave_privacy::accounting::Budget;

use super::party::PartyConfig;
use conclave_vault::ledger::{LedgerSettings, SECRET_FILE};

/// Name of the last head's file in the identity folder, unless `head_file` says otherwise.
pub(super) const HEAD_FILE: &str = "ledger-head";
/// The private key, within the identity folder.
pub(super) const KEY_FILE: &str = "key.pem";

impl PartyConfig {
    /// The ledger's settings. Its secret key lies beside the party's private key.
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
    /// Whether the note of the newest head lies in the ledger's folder, links followed: a copy of one is then a copy of both.
    pub(crate) fn head_is_beside_the_ledger(&self) -> bool {
        let folder = folder_in_truth(&self.head_file);
        // The ledger itself may be a link, and whoever copies the folder that it is named in copies nothing of it; or all of it.
        folder.is_some() && [folder_in_truth(&self.ledger), parent_folder(&self.ledger).canonicalize().ok()].contains(&folder)
    }

    /// Refuses secure jobs where a ledger that is set back brings its head back with it: nothing would then tell that it is not the newest, and
    /// an answer might leave twice under one mask.
    ///
    /// # Errors
    /// A sentence that names the key, the file and the remedy.
    pub(crate) fn head_apart(&self) -> Result<(), String> {
        if !self.secure.allow || !self.head_is_beside_the_ledger() {
            return Ok(());
        }
        Err(format!(
            "`head_file` is {}, in the folder of `ledger`: with [secure] allow = true whoever puts back an older copy of that folder would put the \
             head back with it, and an answer might leave twice under one mask. Stop the party, move that file (without it, the keys of all secure \
             jobs are deleted) to a folder that is not copied together with the ledger, and name its new place under `head_file`",
            self.head_file.display()
        ))
    }
}

/// The folder in which a file lies, or would, links followed; `None` where there is no such folder.
fn folder_in_truth(file: &Path) -> Option<PathBuf> {
    match file.canonicalize() {
        Ok(file) => Some(parent_folder(&file).to_owned()),
        Err(_) => parent_folder(file).canonicalize().ok(),
    }
}
