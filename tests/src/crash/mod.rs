//! Crashes of the answer path: a small process to kill, faults injected beneath it, and an observer that records its output.

pub mod disk;
pub mod jobs;
mod ledger_copy;
pub mod observer;
mod places;
pub mod query;
pub mod session;
pub mod shim;

use std::path::Path;
use std::sync::Arc;

use conclave_party::IdentitySigner;
use conclave_privacy::accounting::Budget;
use conclave_proto::ca;
use conclave_vault::answer::{Answerer, Secrecy};
use conclave_vault::config::{Approve, Policy, ReplyDelay};
use conclave_vault::data::Shard;
use conclave_vault::data::{BadRows, DataConfig, Format, Memory};
use conclave_vault::ledger::{Durability, Ledger, LedgerSettings, Secret};
use conclave_vault::members::Members;
use conclave_vault::noise::Noise;
use conclave_vault::secure::{Fingerprint, MaskKeys, Pins, SecureSettings};

/// Folder of the identity and of the files beside it.
pub const IDENTITY: &str = "identity";

/// The party's name.
pub const PARTY: &str = "hospital-a";

/// Returns the data set's budget.
pub fn budget() -> Budget {
    Budget::new(8.0, 1e-6).expect("a budget")
}

/// File in a party's folder with the delta reserve of its owner's configuration, in units of 2^-60; absent where nothing is
/// reserved.
pub const RESERVE_FILE: &str = "reserve";

/// Amount that the owner adds in a reserve act, in units of 2^-60.
pub const ADDED: u64 = 1 << 38;

/// Returns the data set's budget as configured in a folder.
fn configured(folder: &Path) -> Budget {
    let reserve = std::fs::read_to_string(folder.join(RESERVE_FILE)).ok().map(|text| text.trim().parse().expect("units"));
    budget().reserving(reserve.unwrap_or(0))
}

/// The durability mode: the order of syncs and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Charges and answers are synced before an answer is sent.
    Strict,
    /// Blocks of this many queries are charged ahead.
    Reserve(u32),
}

impl Mode {
    /// Parses an argument.
    pub fn parse(text: &str) -> Self {
        text.parse().map_or(Self::Strict, Self::Reserve)
    }

    /// Formats the mode as an argument.
    pub fn argument(self) -> String {
        match self {
            Self::Strict => "strict".into(),
            Self::Reserve(block) => block.to_string(),
        }
    }

    /// Creates the answer path on the records, the CA's certificate and the ledger of one folder, as in the daemon, but without
    /// its link and its owner's consent. A missing ledger is created.
    ///
    /// # Errors Returns a sentence that names the part of the folder that prevents the start.
    pub fn answerer(self, folder: &Path) -> Result<Answerer, String> {
        let text = |e: &dyn std::fmt::Display| e.to_string();
        let (keeping, identity) = (self.keeping(folder), folder.join(IDENTITY));
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
            snapshot: folder.to_owned(),
        };
        let shard = Shard::load(&data, None).map_err(|e| text(&e))?;
        let mut ledger = Ledger::open_kept(&keeping).map_err(|e| text(&e))?;
        ledger.present_data(&shard.fingerprints(ledger.secret()).map_err(|e| text(&e))?).map_err(|e| text(&e))?;
        let policy = Policy { approve: Approve::Automatic, reply_delay: ReplyDelay::Off, ..Policy::default() };
        let noise = Noise::from_os().map_err(|e| text(&e))?;
        let answerer = Answerer::new(PARTY.into(), policy, configured(folder), shard, ledger, noise)
            .with_members(Members::of(&identity, None));
        answerer.with_secrecy(secrecy(&identity, &keeping)?).map_err(|e| text(&e))
    }

    /// Returns the settings of the ledger. Its secret key, the mask keys and its newest head are stored apart from it, as in the
    /// daemon.
    pub fn keeping(self, folder: &Path) -> LedgerSettings {
        let durability = match self {
            Self::Strict => Durability::Strict,
            Self::Reserve(block) => Durability::Reserve { block },
        };
        LedgerSettings {
            durability,
            secret: folder.join(IDENTITY).join("ledger-secret.key"),
            head_file: folder.join(IDENTITY).join("ledger-head"),
            ..LedgerSettings::beside(&folder.join("ledger.sqlite"), PARTY, &configured(folder))
        }
    }

    /// Adds to the reserve, as the owner's command does. The owner has to update the configuration afterwards.
    ///
    /// # Errors Returns a sentence where this fails.
    pub fn add_reserve(self, folder: &Path) -> Result<(), String> {
        Ledger::add_reserve(&self.keeping(folder), ADDED, "samples").map(drop).map_err(|e| e.to_string())
    }

    /// Unlocks a ledger that is behind, as the owner's command does; the mask keys are deleted first.
    ///
    /// # Errors Returns a sentence where this fails.
    pub fn unlock(self, folder: &Path) -> Result<(), String> {
        let settings = self.keeping(folder);
        let forget = |secret: &Secret| Ok(MaskKeys::beside(&settings.secret, secret.clone()).delete_all()?);
        Ledger::unlock(&settings, "restored", forget).map(drop).map_err(|e: Box<dyn std::error::Error>| e.to_string())
    }
}

/// Admits masked jobs with [`jobs::OTHERS`], whose certificates are beside the identity.
fn secrecy(identity: &Path, keeping: &LedgerSettings) -> Result<Secrecy, String> {
    let mut pins = Pins::default();
    for other in jobs::OTHERS {
        let certificate = std::fs::read_to_string(identity.join(format!("{other}.pem"))).map_err(|e| e.to_string())?;
        let digest = ca::key_digest(&certificate).map_err(|e| e.to_string())?;
        pins.add(other, Fingerprint(digest)).map_err(|e| format!("{e:?}"))?;
    }
    let secret = Secret::load(&keeping.secret).map_err(|e| e.to_string())?;
    Ok(Secrecy {
        settings: SecureSettings { allow: true, colluders_at_least: Some(1), pins, ..SecureSettings::default() },
        keys: MaskKeys::beside(&keeping.secret, secret),
        signer: Arc::new(IdentitySigner {
            party: keeping.party.clone(),
            folder: identity.to_owned(),
            key: identity.join("key.pem"),
        }),
        ca: identity.join("ca.pem"),
        revoked: None,
    })
}
