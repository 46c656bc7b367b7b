//! The configuration's ledger settings: where a party's ledger is kept, and under which limits.

use conclave_common::accounting::Budget;

use super::party::PartyConfig;
use crate::ledger::{LedgerSettings, SECRET_FILE};

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
}
