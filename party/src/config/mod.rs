//! `party.toml`: what one data owner's daemon reads at start, checked in full before anything else happens.
//!
//! Every key is known or refused; what this version does not build yet is refused by name with the remedy, so that no
//! owner believes in a protection that is not there. Relative paths are relative to the configuration file's folder.
//!
//! Jobs are default-deny: `approve` is "manual" where it is not written down, and every job then waits for its owner's word.

mod keeping;
mod raw;

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use conclave_common::accounting::{Budget, PrivacyUnit};
use conclave_common::schema::keys;
use conclave_ops::Settings;

use conclave_proto::tls::ProxySettings;

use crate::ledger::Durability;

/// One party's configuration, with absolute or caller-relative paths.
#[derive(Debug, Clone, PartialEq)]
pub struct PartyConfig {
    /// The party's name; its certificate must carry the same one.
    pub name: String,
    /// The coordinator's address, `https://host[:port]`.
    pub coordinator: String,
    /// How the coordinator is reached: directly or through a proxy.
    pub proxy: ProxySettings,
    /// Folder with `certificate.pem`, `ca.pem` and, unless `key` says otherwise, `key.pem`.
    pub identity: PathBuf,
    /// The private key; in the identity folder unless the file says otherwise.
    pub key: PathBuf,
    /// Certificates that count for nothing here, by name or serial; read again at every check.
    pub revoked: Option<PathBuf>,
    /// The ledger file.
    pub ledger: PathBuf,
    /// The file of the ledger's last head; better not in the ledger's folder, so that a backup of one is not one of both.
    pub head_file: PathBuf,
    /// What is synced before a number leaves.
    pub durability: Durability,
    /// Threads that passes over the records run on.
    pub threads: NonZeroUsize,
    /// How a job's scaled copy of the records is held.
    pub precision: Precision,
    /// The records and how they are read.
    pub data: DataConfig,
    /// The budget of the data, over all jobs and for ever, and the unit of privacy that it protects.
    pub budget: Budget,
    /// What a job must keep within.
    pub policy: Policy,
    /// Logs and metrics.
    pub ops: Settings,
    /// Where the owner's page is served, on the loopback interface; nowhere where it is not set.
    pub page: Option<SocketAddr>,
}

/// Where the records are and what becomes of bad rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataConfig {
    /// A `.csv` or `.parquet` file.
    pub path: PathBuf,
    /// What a missing, non-numeric or non-finite value in a needed column does.
    pub bad_rows: BadRows,
    /// Columns of a CSV file that hold texts.
    pub text: Vec<String>,
    /// The column that names persons, where a person is the unit of privacy; never a column of a model.
    pub person: Option<String>,
    /// What the data's guarantee protects.
    pub unit: PrivacyUnit,
    /// What of the records is kept in memory.
    pub memory: Memory,
}

/// What of the records is kept in memory. Answers are the same, bit for bit; their delays are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Memory {
    /// The columns, and every open job's own columns on its model's scale.
    #[default]
    Copies,
    /// The columns; every pass scales them block by block.
    Lean,
    /// Nothing but the blocks at hand: every pass reads the file.
    Stream,
}

/// How the numbers of a job's scaled copy of the records are held. Arithmetic on them is in doubles in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// 64 bits.
    #[default]
    Double,
    /// 32 bits: half the memory, and each number rounded to 24 significant bits.
    Single,
}

impl Precision {
    /// Bytes of a number.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Double => 8,
            Self::Single => 4,
        }
    }
}

/// What a row with a missing, non-numeric or non-finite value in a needed column does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadRows {
    /// It stops the start, named by file, line and column.
    Stop,
    /// It is left out; the count is the owner's alone.
    Drop,
}

/// The owner's limits. A limit that is not set does not limit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Policy {
    /// Who admits a job that keeps within the limits.
    pub approve: Approve,
    /// Analysts whose jobs are admitted; `None` admits every analyst whom the consortium's CA signed.
    pub analysts: Option<Vec<String>>,
    /// Kinds of models admitted; `None` admits all.
    pub models: Option<Vec<String>>,
    /// The largest epsilon that a job may ask for, at the delta of the data's budget.
    pub max_epsilon_per_job: Option<f64>,
    /// The most that all jobs of one analyst may spend together: an epsilon at the delta of the data's budget, kept as mu².
    pub max_epsilon_per_analyst: Option<f64>,
    /// The least noise standard deviation of a release, in log-likelihood units; 0.01 when not set.
    pub min_noise_sd: f64,
    /// Columns that jobs may use; they are also the only ones that are read. `None` reads and admits all.
    pub columns: Option<Vec<String>>,
    /// Rounds that one job may make.
    pub max_iterations_per_job: Option<u64>,
    /// Mebibytes that the open jobs' scaled copies of the data may take together; 4096 when not set.
    pub max_memory_mib: Option<u64>,
    /// When replies leave.
    pub reply_delay: ReplyDelay,
}

impl Policy {
    /// The limits that an owner is warned of not having set.
    pub(crate) fn unlimited(&self) -> Vec<&'static str> {
        [
            ("analysts", self.analysts.is_some()),
            ("models", self.models.is_some()),
            ("max_epsilon_per_job", self.max_epsilon_per_job.is_some()),
            ("columns", self.columns.is_some()),
        ]
        .into_iter()
        .filter_map(|(limit, set)| (!set).then_some(limit))
        .collect()
    }
}

/// Who admits a job that keeps within the owner's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Approve {
    /// The owner, job by job.
    #[default]
    Manual,
    /// The limits themselves.
    Automatic,
}

/// How long after a message's service began its reply leaves. Public, and no matter of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplyDelay {
    /// Measured per job, before its first query, on made-up records of the shard's shape.
    #[default]
    Auto,
    /// The owner's own.
    Fixed(std::time::Duration),
    /// At once: how long an answer took can be told from outside.
    Off,
}

/// A configuration that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", .file.display())]
pub struct ConfigError {
    /// The configuration file.
    pub file: PathBuf,
    /// What is wrong, with the key and the remedy.
    pub message: String,
}

impl PartyConfig {
    /// Reads and checks a configuration file.
    ///
    /// # Errors
    /// The first thing that is wrong, by key, with the remedy.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let fail = |message: String| ConfigError { file: path.to_owned(), message };
        let text = std::fs::read_to_string(path)
            .map_err(|e| fail(format!("cannot be read: {e}; --config names the party's configuration file")))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, folder).map_err(fail)
    }

    /// Checks a configuration's text; relative paths are taken from `folder`.
    ///
    /// # Errors
    /// A sentence that names the key and the remedy.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, String> {
        let table: toml::Table = text.parse().map_err(|e: toml::de::Error| e.to_string().trim_end().to_owned())?;
        keys::check(&table, &raw::KEYS).map_err(|e| e.to_string())?;
        let raw: raw::Config = table.try_into().map_err(|e: toml::de::Error| e.to_string().trim_end().to_owned())?;
        raw.check(folder)
    }
}

#[cfg(test)]
mod tests;
