//! Crashes of the answer path: a small process to kill, faults put under it, and an observer who keeps what it said.

pub mod disk;
pub mod jobs;
pub mod outside;
pub mod session;
pub mod shim;

use std::path::Path;

use conclave_common::accounting::Budget;
use conclave_party::ledger::{Durability, LedgerSettings};

/// The party's name.
pub const PARTY: &str = "hospital-a";

/// The data's budget.
pub fn budget() -> Budget {
    Budget::new(8.0, 1e-6).expect("a budget")
}

/// What is synced when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Charges before, answers before.
    Strict,
    /// Blocks of so many queries.
    Reserve(u32),
}

impl Mode {
    /// Reads an argument.
    pub fn parse(text: &str) -> Self {
        text.parse().map_or(Self::Strict, Self::Reserve)
    }

    /// As an argument.
    pub fn argument(self) -> String {
        match self {
            Self::Strict => "strict".into(),
            Self::Reserve(block) => block.to_string(),
        }
    }

    /// Ledger, key and head in one folder.
    pub fn keeping(self, folder: &Path) -> LedgerSettings {
        let durability = match self {
            Self::Strict => Durability::Strict,
            Self::Reserve(block) => Durability::Reserve { block },
        };
        LedgerSettings { durability, ..LedgerSettings::beside(&folder.join("ledger.sqlite"), PARTY, &budget()) }
    }
}
