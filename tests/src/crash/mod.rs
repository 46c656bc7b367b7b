//! Crashes of the answer path: a small process to kill, faults put under it, and an observer who keeps what it said.

pub mod disk;
pub mod jobs;
pub mod outside;
pub mod session;
pub mod shim;

use std::path::Path;

use conclave_common::accounting::Budget;
use conclave_party::answer::{Answerer, Secrecy};
use conclave_party::config::{Approve, BadRows, DataConfig, Format, Memory, Policy, ReplyDelay};
use conclave_party::data::Shard;
use conclave_party::ledger::{Durability, Ledger, LedgerSettings, Secret};
use conclave_party::members::Members;
use conclave_party::noise::Noise;
use conclave_party::secure::{Fingerprint, MaskKeys, Pins, SecureSettings};
use conclave_proto::ca;

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

    /// The answer path on the records, the CA's certificate and the ledger of one folder, as the daemon has it: without its link
    /// and its owner's consent. The ledger is made where there is none.
    ///
    /// # Errors
    /// A sentence: what of the folder it can't be started on.
    pub fn answerer(self, folder: &Path) -> Result<Answerer, String> {
        let text = |e: &dyn std::fmt::Display| e.to_string();
        let keeping = self.keeping(folder);
        if !keeping.ledger.exists() {
            keeping.init().map_err(|e| text(&e))?;
        }
        let data = DataConfig {
            path: folder.join("rows.csv"),
            format: Format::default(),
            bad_rows: BadRows::Stop,
            text: Vec::new(),
            person: None,
            unit: budget().unit,
            memory: Memory::default(),
        };
        let shard = Shard::load(&data, None).map_err(|e| text(&e))?;
        let mut ledger = Ledger::open_kept(&keeping).map_err(|e| text(&e))?;
        ledger.present_data(&shard.fingerprints(ledger.secret()).map_err(|e| text(&e))?).map_err(|e| text(&e))?;
        let policy = Policy { approve: Approve::Automatic, reply_delay: ReplyDelay::Off, ..Policy::default() };
        let noise = Noise::from_os().map_err(|e| text(&e))?;
        let answerer =
            Answerer::new(PARTY.into(), policy, budget(), shard, ledger, noise).with_members(Members::of(folder, None));
        answerer.with_secrecy(secrecy(folder, &keeping)?).map_err(|e| text(&e))
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

/// Masked jobs are admitted of [`jobs::OTHERS`], whose certificates lie in the folder.
fn secrecy(folder: &Path, keeping: &LedgerSettings) -> Result<Secrecy, String> {
    let mut pins = Pins::default();
    for other in jobs::OTHERS {
        let certificate = std::fs::read_to_string(folder.join(format!("{other}.pem"))).map_err(|e| e.to_string())?;
        let digest = ca::key_digest(&certificate).map_err(|e| e.to_string())?;
        pins.add(other, Fingerprint(digest)).map_err(|e| format!("{e:?}"))?;
    }
    let secret = Secret::load(&keeping.secret).map_err(|e| e.to_string())?;
    Ok(Secrecy {
        settings: SecureSettings { allow: true, colluders_at_least: Some(1), pins, ..SecureSettings::default() },
        keys: MaskKeys::beside(&keeping.secret, secret),
        identity: (folder.to_owned(), folder.join("key.pem")),
        revoked: None,
    })
}
