//! A party's checked configuration: files, budget, addresses and limits.

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
    /// Connection to the coordinator: direct or through a proxy.
    pub proxy: ProxySettings,
    /// Folder with `certificate.pem`, `ca.pem` and, by default, `key.pem`.
    pub identity: PathBuf,
    /// The private key; by default in the identity folder.
    pub key: PathBuf,
    /// List of revoked certificates, by name or serial; read again at every check.
    pub revoked: Option<PathBuf>,
    /// The ledger file.
    pub ledger: PathBuf,
    /// File of the ledger's last head; should not be in the ledger's folder, so that one backup does not contain both.
    pub head_file: PathBuf,
    /// Writes that are synced before a number is released.
    pub durability: Durability,
    /// Number of threads for passes over the records.
    pub threads: NonZeroUsize,
    /// Precision of a job's scaled copy of the records.
    pub precision: Precision,
    /// The records and their file format.
    pub data: DataConfig,
    /// The permanent budget of the data over all jobs, with its unit of privacy.
    pub budget: Budget,
    /// Limits on every job.
    pub policy: Policy,
    /// Settings of jobs with masked sums.
    pub secure: SecureSettings,
    /// Logs and metrics.
    pub ops: Settings,
    /// The organisation's full name, for statements.
    pub organisation: Option<String>,
    /// Other publications from the same data, declared by the owner: no budget here covers them.
    pub other_releases: Vec<String>,
    /// Address of the owner's page on the loopback interface; `None` for no page.
    pub page: Option<SocketAddr>,
}
