//! A party's configuration: files, budget, addresses and limits, all checked.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use conclave_ops::Settings;
use conclave_privacy::accounting::Budget;
use conclave_proto::tls::ProxySettings;

use conclave_vault::config::policy::Policy;
use conclave_vault::data::{DataConfig, Precision};
use conclave_vault::ledger::Durability;
use conclave_vault::secure::SecureSettings;

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
    /// Jobs whose sums leave under masks.
    pub secure: SecureSettings,
    /// Logs and metrics.
    pub ops: Settings,
    /// Where the owner's page is served, on the loopback interface; nowhere where it is not set.
    pub page: Option<SocketAddr>,
}
