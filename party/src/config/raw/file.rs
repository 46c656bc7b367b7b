//! The whole configuration file, checked into a [`PartyConfig`].

use std::num::NonZeroUsize;
use std::path::Path;

use conclave_common::schema::keys::Keys;
use conclave_ops::{Settings, web};
use conclave_privacy::accounting::{Adjacency, Budget, RESERVE_LOG2};
use conclave_proto::identity::valid_name;
use conclave_proto::tls::{ProxyChoice, ProxySettings};
use serde::Deserialize;

use super::data::Data;
use super::policy::RawPolicy;
use super::secure::RawSecure;
use super::unknown::unknown;
use crate::config::ledger::{HEAD_FILE, KEY_FILE};
use crate::config::party::PartyConfig;
use conclave_vault::config::policy::ReplyDelay;
use conclave_vault::data::Memory;
use conclave_vault::ledger::{Durability, RESERVE_BLOCK, reserve_units};

/// Every key of `party.toml`.
pub const KEYS: Keys = Keys::Table(&[
    ("name", Keys::Any),
    ("coordinator", Keys::Any),
    ("proxy", Keys::Any),
    ("ca_bundle", Keys::Any),
    ("identity", Keys::Any),
    ("key", Keys::Any),
    ("revoked", Keys::Any),
    ("ledger", Keys::Any),
    ("head_file", Keys::Any),
    ("durability", Keys::Any),
    ("reserve_block", Keys::Any),
    ("log", Keys::Any),
    ("log_level", Keys::Any),
    ("metrics", Keys::Any),
    ("otlp", Keys::Any),
    ("threads", Keys::Any),
    ("page", Keys::Any),
    (
        "data",
        Keys::Table(&[
            ("path", Keys::Any),
            ("bad_rows", Keys::Any),
            ("text", Keys::Any),
            ("delimiter", Keys::Any),
            ("quotes", Keys::Any),
            ("decimal", Keys::Any),
            ("missing", Keys::Any),
            ("dates", Keys::Any),
            ("adjacency", Keys::Any),
            ("person", Keys::Any),
            ("max_records_per_person", Keys::Any),
            ("memory", Keys::Any),
            ("precision", Keys::Any),
        ]),
    ),
    ("budget", Keys::Table(&[("epsilon", Keys::Any), ("delta", Keys::Any), ("delta_reserve", Keys::Any)])),
    (
        "policy",
        Keys::Table(&[
            ("approve", Keys::Any),
            ("analysts", Keys::Any),
            ("models", Keys::Any),
            ("max_epsilon_per_job", Keys::Any),
            ("max_epsilon_per_analyst", Keys::Any),
            ("tell_budget", Keys::Any),
            ("min_noise_sd", Keys::Any),
            ("min_noise_multiplier", Keys::Any),
            ("releases", Keys::Any),
            ("max_iterations_per_job", Keys::Any),
            ("columns", Keys::Any),
            ("max_memory_mib", Keys::Any),
            ("reply_delay_ms", Keys::Any),
        ]),
    ),
    (
        "secure",
        Keys::Table(&[
            ("allow", Keys::Any),
            ("colluders_at_least", Keys::Any),
            ("peers", Keys::Any),
            ("pinned", Keys::Any),
            ("max_epsilon_if_all_collude", Keys::Any),
            ("keep_key_days", Keys::Any),
        ]),
    ),
]);

/// Maximum number of threads: a larger value is assumed to be a typing error.
const MAX_THREADS: usize = 1024;

#[derive(Deserialize)]
pub(in crate::config) struct Config {
    name: String,
    coordinator: String,
    proxy: Option<String>,
    ca_bundle: Option<String>,
    identity: String,
    key: Option<String>,
    revoked: Option<String>,
    ledger: String,
    head_file: Option<String>,
    durability: Option<String>,
    reserve_block: Option<u32>,
    log: Option<String>,
    log_level: Option<String>,
    metrics: Option<String>,
    otlp: Option<String>,
    threads: Option<i64>,
    page: Option<String>,
    data: Data,
    budget: RawBudget,
    #[serde(default)]
    policy: RawPolicy,
    #[serde(default)]
    secure: RawSecure,
}

#[derive(Deserialize)]
struct RawBudget {
    epsilon: f64,
    delta: f64,
    delta_reserve: Option<f64>,
}

impl RawBudget {
    /// Splits the promised delta: the reserve for subsampled releases is a part of it.
    fn check(&self) -> Result<Budget, String> {
        let budget = Budget::new(self.epsilon, self.delta).map_err(|e| format!("[budget]: {e}"))?;
        let Some(reserve) = self.delta_reserve else { return Ok(budget) };
        let Some(units) = reserve_units(reserve).filter(|_| reserve < self.delta) else {
            return Err(format!(
                "`budget.delta_reserve` is {reserve}: it is the part of budget.delta for subsampled releases, above 0 and below \
                 {}; omit it to admit no such job",
                self.delta
            ));
        };
        let rest = self.delta - units as f64 / (1_u64 << RESERVE_LOG2) as f64;
        Ok(Budget::new(self.epsilon, rest).map_err(|e| format!("[budget]: {e}"))?.reserving(units))
    }
}

impl Config {
    fn durability(&self) -> Result<Durability, String> {
        match (self.durability.as_deref(), self.reserve_block) {
            (None | Some("strict"), None) => Ok(Durability::Strict),
            (None | Some("strict"), Some(_)) => {
                Err("`reserve_block` needs durability = \"reserve\": write that too, or remove it".into())
            }
            (Some("reserve"), block) => match block.unwrap_or(RESERVE_BLOCK) {
                block @ 1..=65_536 => Ok(Durability::Reserve { block }),
                block => Err(format!("`reserve_block` is {block}: it must be 1 to 65536 queries")),
            },
            (Some(other), _) => Err(unknown("durability", other, &["strict", "reserve"])),
        }
    }

    /// Returns the number of threads; by default the number of processors.
    fn threads(&self) -> Result<NonZeroUsize, String> {
        match self.threads {
            None => Ok(std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)),
            Some(threads) => {
                usize::try_from(threads).ok().filter(|threads| *threads <= MAX_THREADS).and_then(NonZeroUsize::new).ok_or_else(
                    || format!("`threads` is {threads}: it must be from 1 to {MAX_THREADS}, or omitted for one per processor"),
                )
            }
        }
    }

    fn proxy(&self, folder: &Path) -> Result<ProxySettings, String> {
        let choice = self.proxy.as_deref().map(|text| ProxyChoice::parse(text, "`proxy` in party.toml"));
        Ok(ProxySettings {
            choice: choice.transpose().map_err(|fault| fault.message)?.unwrap_or_default(),
            ca_bundle: self.ca_bundle.as_ref().map(|file| folder.join(file)),
        })
    }

    pub(in crate::config) fn check(self, folder: &Path) -> Result<PartyConfig, String> {
        if !valid_name(&self.name) {
            return Err(format!("`name` is {:?}: a party's name is 1 to 63 of a-z, 0-9 and -, as in its certificate", self.name));
        }
        if !self.coordinator.starts_with("https://") || self.coordinator.len() <= "https://".len() {
            return Err(format!("`coordinator` is {:?}: write it as https://host or https://host:port", self.coordinator));
        }
        let (durability, proxy, threads) = (self.durability()?, self.proxy(folder)?, self.threads()?);
        let precision = self.data.precision()?;
        let ops = Settings::parse(self.log.as_deref(), self.log_level.as_deref(), self.metrics.as_deref(), self.otlp.as_deref())?;
        let budget = self.budget.check()?;
        let (data, policy, secure) = (self.data.check(folder)?, self.policy.check()?, self.secure.check(&budget)?);
        if data.unit.adjacency == Adjacency::AddRemove && policy.reply_delay == ReplyDelay::Auto {
            return Err("`policy.reply_delay_ms` must be a number with adjacency = \"add-remove\": \"auto\" is measured on the \
                        actual number of records, which is not public"
                .into());
        }
        if data.memory != Memory::Copies && policy.reply_delay == ReplyDelay::Auto {
            return Err(
                "`policy.reply_delay_ms` must be a number with data.memory = \"lean\" or \"stream\": \"auto\" is measured on \
                 simulated records that take as much memory as a job's copies"
                    .into(),
            );
        }
        if let Some(person) = &data.person
            && policy.columns.iter().flatten().any(|column| column == person)
        {
            return Err(format!("`policy.columns` names {person:?}, which is data.person: it can't be a column of a model"));
        }
        Ok(PartyConfig {
            name: self.name,
            coordinator: self.coordinator,
            proxy,
            head_file: folder.join(self.head_file.unwrap_or_else(|| format!("{}/{HEAD_FILE}", self.identity))),
            key: folder.join(self.key.unwrap_or_else(|| format!("{}/{KEY_FILE}", self.identity))),
            identity: folder.join(self.identity),
            revoked: self.revoked.map(|path| folder.join(path)),
            ledger: folder.join(self.ledger),
            durability,
            threads,
            precision,
            budget: budget.of(data.unit),
            data,
            policy,
            secure,
            ops,
            page: self.page.as_deref().map(|address| web::parse_loopback_address("page", address)).transpose()?,
        })
    }
}
