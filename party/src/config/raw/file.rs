//! The whole configuration file, checked into a [`PartyConfig`].

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use conclave_common::settings;
use conclave_common::settings::{Keys, Setting, one_of, or, within};
use conclave_ops::files::parent_folder;
use conclave_ops::{Settings, web};
use conclave_privacy::accounting::{Adjacency, Budget, RESERVE_LOG2};
use conclave_proto::tls::{ProxyChoice, ProxySettings};

use super::data::Data;
use super::name::name;
use super::policy::RawPolicy;
use super::secure::RawSecure;
use crate::config::ledger::{HEAD_FILE, KEY_FILE};
use crate::config::party::PartyConfig;
use conclave_vault::config::policy::ReplyDelay;
use conclave_vault::data::Memory;
use conclave_vault::ledger::{Durability, RESERVE_BLOCK, reserve_units};

/// Every key of `party.toml`.
pub const KEYS: Keys = Config::KEYS;

/// Maximum number of threads: a larger value is assumed to be a typing error.
const MAX_THREADS: usize = 1024;

settings! {
    pub(in crate::config) struct Config {
        name: String => or("it must be that of the party's certificate", name),
        coordinator: String,
        proxy: Option<String>,
        ca_bundle: Option<PathBuf>,
        identity: String,
        key: Option<String>,
        revoked: Option<PathBuf>,
        ledger: PathBuf,
        head_file: Option<String>,
        /// True for `reserve`.
        durability: bool = false => one_of(&[("strict", false), ("reserve", true)]),
        /// Queries.
        reserve_block: Option<u32> => within(1..=65_536),
        log: Option<String>,
        log_level: Option<String>,
        metrics: Option<String>,
        otlp: Option<String>,
        threads: usize = processors() => or("omit it for one per processor", within(1..=MAX_THREADS)),
        page: Option<String>,
        organisation: Option<String>,
        other_releases: Vec<String>,
        data: Data,
        budget: RawBudget,
        policy: RawPolicy,
        secure: RawSecure,
    }
}

settings! {
    struct RawBudget { epsilon: f64, delta: f64, delta_reserve: Option<f64> }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
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
        match (self.durability, self.reserve_block) {
            (true, block) => Ok(Durability::Reserve { block: block.unwrap_or(RESERVE_BLOCK) }),
            (false, None) => Ok(Durability::Strict),
            (false, Some(_)) => Err("`reserve_block` needs durability = \"reserve\": write that too, or remove it".into()),
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
        if !self.coordinator.starts_with("https://") || self.coordinator.len() <= "https://".len() {
            return Err(format!("`coordinator` is {:?}: write it as https://host or https://host:port", self.coordinator));
        }
        let (durability, proxy) = (self.durability()?, self.proxy(folder)?);
        let precision = self.data.precision;
        let ops = Settings::parse(self.log.as_deref(), self.log_level.as_deref(), self.metrics.as_deref(), self.otlp.as_deref())?;
        let budget = self.budget.check()?;
        let ledger = folder.join(&self.ledger);
        let data = self.data.check(folder, parent_folder(&ledger).to_owned())?;
        let (policy, secure) = (self.policy.check()?, self.secure.check(&budget)?);
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
            threads: NonZeroUsize::new(self.threads).unwrap_or(NonZeroUsize::MIN),
            precision,
            budget: budget.of(data.unit),
            data,
            policy,
            secure,
            ops,
            organisation: self.organisation,
            other_releases: self.other_releases,
            page: self.page.as_deref().map(|address| web::parse_loopback_address("page", address)).transpose()?,
        })
    }
}
