//! The file's own shape, and the checks that turn it into a [`PartyConfig`].

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use conclave_common::accounting::{Adjacency, Budget, MAX_RECORDS_PER_PERSON, PrivacyUnit};
use conclave_common::schema::keys::{Keys, nearest};
use conclave_ops::{Settings, web};
use conclave_proto::identity::valid_name;
use conclave_proto::tls::{ProxyChoice, ProxySettings};
use serde::Deserialize;

use super::keeping::{HEAD_FILE, KEY_FILE};
use super::{Approve, BadRows, DataConfig, Memory, PartyConfig, Policy, Precision, ReplyDelay};
use crate::data::NOT_STREAMED;
use crate::ledger::{Durability, RESERVE_BLOCK};

pub(super) const KEYS: Keys = Keys::Table(&[
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
            ("adjacency", Keys::Any),
            ("person", Keys::Any),
            ("max_records_per_person", Keys::Any),
            ("memory", Keys::Any),
            ("precision", Keys::Any),
        ]),
    ),
    ("budget", Keys::Table(&[("epsilon", Keys::Any), ("delta", Keys::Any)])),
    (
        "policy",
        Keys::Table(&[
            ("approve", Keys::Any),
            ("analysts", Keys::Any),
            ("models", Keys::Any),
            ("max_epsilon_per_job", Keys::Any),
            ("max_epsilon_per_analyst", Keys::Any),
            ("min_noise_sd", Keys::Any),
            ("max_iterations_per_job", Keys::Any),
            ("columns", Keys::Any),
            ("max_memory_mib", Keys::Any),
            ("reply_delay_ms", Keys::Any),
        ]),
    ),
]);

/// Model kinds that a policy may name, the ones still to come included.
/// Least noise where the policy names none. It keeps what the discrete noise takes off the whole ledger negligible, so that
/// quiet questions that cost next to nothing can't use up the ledger itself.
const LEAST_NOISE_SD: f64 = 0.01;
const MODELS: [&str; 12] = [
    "logistic",
    "gaussian_mean",
    "bernoulli",
    "poisson_mean",
    "multinomial",
    "linear",
    "poisson",
    "negative_binomial",
    "student_t",
    "gaussian_mixture",
    "weibull",
    "banana",
];

/// More threads than any machine has processors are a slip of the pen.
const MAX_THREADS: usize = 1024;

#[derive(Deserialize)]
pub(super) struct Config {
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
    metrics: Option<String>,
    otlp: Option<String>,
    threads: Option<i64>,
    page: Option<String>,
    data: Data,
    budget: RawBudget,
    #[serde(default)]
    policy: RawPolicy,
}

#[derive(Deserialize)]
struct Data {
    path: String,
    bad_rows: Option<String>,
    #[serde(default)]
    text: Vec<String>,
    adjacency: Option<String>,
    person: Option<String>,
    max_records_per_person: Option<i64>,
    memory: Option<String>,
    precision: Option<String>,
}

#[derive(Deserialize)]
struct RawBudget {
    epsilon: f64,
    delta: f64,
}

#[derive(Deserialize, Default)]
struct RawPolicy {
    approve: Option<String>,
    analysts: Option<Vec<String>>,
    models: Option<Vec<String>>,
    max_epsilon_per_job: Option<f64>,
    max_epsilon_per_analyst: Option<f64>,
    min_noise_sd: Option<f64>,
    max_iterations_per_job: Option<i64>,
    columns: Option<Vec<String>>,
    max_memory_mib: Option<i64>,
    reply_delay_ms: Option<toml::Value>,
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

    /// As many as there are processors unless the file says otherwise.
    fn threads(&self) -> Result<NonZeroUsize, String> {
        match self.threads {
            None => Ok(std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)),
            Some(threads) => {
                usize::try_from(threads).ok().filter(|threads| *threads <= MAX_THREADS).and_then(NonZeroUsize::new).ok_or_else(
                    || format!("`threads` is {threads}: it must be from 1 to {MAX_THREADS}, or left out for one per processor"),
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

    pub(super) fn check(self, folder: &Path) -> Result<PartyConfig, String> {
        if !valid_name(&self.name) {
            return Err(format!("`name` is {:?}: a party's name is 1 to 63 of a-z, 0-9 and -, as in its certificate", self.name));
        }
        if !self.coordinator.starts_with("https://") || self.coordinator.len() <= "https://".len() {
            return Err(format!("`coordinator` is {:?}: write it as https://host or https://host:port", self.coordinator));
        }
        let (durability, proxy, threads) = (self.durability()?, self.proxy(folder)?, self.threads()?);
        let precision = self.data.precision()?;
        let ops = Settings::parse(self.log.as_deref(), self.metrics.as_deref(), self.otlp.as_deref())?;
        let budget = Budget::new(self.budget.epsilon, self.budget.delta).map_err(|e| format!("[budget]: {e}"))?;
        let (data, policy) = (self.data.check(folder)?, self.policy.check()?);
        if data.unit.adjacency == Adjacency::AddRemove && policy.reply_delay == ReplyDelay::Auto {
            return Err("`policy.reply_delay_ms` must be a number with adjacency = \"add-remove\": \"auto\" is measured on as \
                        many records as there are, and their number is not public"
                .into());
        }
        if data.memory != Memory::Copies && policy.reply_delay == ReplyDelay::Auto {
            return Err(
                "`policy.reply_delay_ms` must be a number with data.memory = \"lean\" or \"stream\": \"auto\" is measured on \
                        made-up records that take as much memory as a job's copies"
                    .into(),
            );
        }
        if let Some(person) = &data.person
            && policy.columns.iter().flatten().any(|column| column == person)
        {
            return Err(format!("`policy.columns` names {person:?}, which is data.person: it is never a column of a model"));
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
            ops,
            page: self.page.as_deref().map(|address| web::loopback_address("page", address)).transpose()?,
        })
    }
}

impl Data {
    fn precision(&self) -> Result<Precision, String> {
        match self.precision.as_deref() {
            None | Some("f64") => Ok(Precision::Double),
            Some("f32") => Ok(Precision::Single),
            Some(other) => Err(unknown("data.precision", other, &["f64", "f32"])),
        }
    }

    fn check(self, folder: &Path) -> Result<DataConfig, String> {
        let adjacency = match self.adjacency.as_deref() {
            None | Some("replace") => Adjacency::Replace,
            Some("add-remove") => Adjacency::AddRemove,
            Some(other) => return Err(unknown("data.adjacency", other, &["replace", "add-remove"])),
        };
        let unit = match (&self.person, self.max_records_per_person) {
            (None, None) => PrivacyUnit::row(adjacency),
            (Some(_), Some(limit)) => {
                let unit = u32::try_from(limit).ok().and_then(|limit| PrivacyUnit::person(adjacency, limit));
                unit.ok_or_else(|| {
                    format!("`data.max_records_per_person` is {limit}: it must be from 1 to {MAX_RECORDS_PER_PERSON}")
                })?
            }
            (Some(_), None) => {
                return Err("`data.person` needs `data.max_records_per_person` beside it: the most rows of one person that \
                            are used; every charge grows with its square"
                    .into());
            }
            (None, Some(_)) => {
                return Err("`data.max_records_per_person` needs `data.person` beside it: the column that names persons".into());
            }
        };
        let bad_rows = match self.bad_rows.as_deref() {
            None | Some("stop") => BadRows::Stop,
            Some("drop") => BadRows::Drop,
            Some(other) => return Err(unknown("data.bad_rows", other, &["stop", "drop"])),
        };
        let memory = memory(self.memory.as_deref(), &self.path, self.person.is_some())?;
        Ok(DataConfig { path: folder.join(self.path), bad_rows, text: self.text, person: self.person, unit, memory })
    }
}

fn memory(word: Option<&str>, path: &str, persons: bool) -> Result<Memory, String> {
    match word {
        None | Some("copies") => Ok(Memory::Copies),
        Some("lean") => Ok(Memory::Lean),
        Some("stream") if persons || !path.to_ascii_lowercase().ends_with(".parquet") => Err(NOT_STREAMED.into()),
        Some("stream") => Ok(Memory::Stream),
        Some(other) => Err(unknown("data.memory", other, &["copies", "lean", "stream"])),
    }
}

impl RawPolicy {
    fn check(self) -> Result<Policy, String> {
        let approve = match self.approve.as_deref() {
            None | Some("manual") => Approve::Manual,
            Some("automatic") => Approve::Automatic,
            Some(other) => return Err(unknown("policy.approve", other, &["manual", "automatic"])),
        };
        let max_iterations_per_job = match self.max_iterations_per_job {
            None => None,
            Some(rounds) => Some(u64::try_from(rounds).ok().filter(|rounds| *rounds > 0).ok_or_else(|| {
                format!("`policy.max_iterations_per_job` is {rounds}: it must be a number of rounds, 1 or more")
            })?),
        };
        let max_memory_mib = match self.max_memory_mib {
            None => None,
            Some(mib) => Some(
                u64::try_from(mib)
                    .ok()
                    .filter(|mib| *mib > 0)
                    .ok_or_else(|| format!("`policy.max_memory_mib` is {mib}: it must be a number of mebibytes, 1 or more"))?,
            ),
        };
        let reply_delay = reply_delay(self.reply_delay_ms.as_ref())?;
        positive("policy.max_epsilon_per_job", self.max_epsilon_per_job)?;
        positive("policy.max_epsilon_per_analyst", self.max_epsilon_per_analyst)?;
        if let Some(sd) = self.min_noise_sd
            && !(sd.is_finite() && sd >= 0.0)
        {
            return Err(format!("`policy.min_noise_sd` is {sd}: it must be a finite number, 0 or more"));
        }
        for model in self.models.iter().flatten() {
            if !MODELS.contains(&model.as_str()) {
                return Err(unknown("policy.models", model, &MODELS));
            }
        }
        for analyst in self.analysts.iter().flatten() {
            if !valid_name(analyst) {
                return Err(format!("`policy.analysts` holds {analyst:?}: a name is 1 to 63 of a-z, 0-9 and -"));
            }
        }
        if let Some(columns) = &self.columns {
            if columns.is_empty() {
                return Err("`policy.columns` is empty: name the columns that jobs may use, or remove it".into());
            }
            if let Some(twice) = columns.iter().enumerate().find_map(|(i, c)| columns[..i].contains(c).then_some(c)) {
                return Err(format!("`policy.columns` names {twice:?} twice"));
            }
        }
        Ok(Policy {
            approve,
            max_iterations_per_job,
            analysts: self.analysts,
            models: self.models,
            max_epsilon_per_job: self.max_epsilon_per_job,
            max_epsilon_per_analyst: self.max_epsilon_per_analyst,
            min_noise_sd: self.min_noise_sd.unwrap_or(LEAST_NOISE_SD),
            columns: self.columns,
            max_memory_mib,
            reply_delay,
        })
    }
}

/// A delay of more than a minute is a slip of the pen: the coordinator would take the party for gone.
const MAX_REPLY_DELAY_MS: f64 = 60_000.0;

fn reply_delay(value: Option<&toml::Value>) -> Result<ReplyDelay, String> {
    let millis = match value {
        None => return Ok(ReplyDelay::Auto),
        Some(toml::Value::String(word)) if word == "auto" => return Ok(ReplyDelay::Auto),
        Some(toml::Value::Integer(0)) => return Ok(ReplyDelay::Off),
        Some(toml::Value::Integer(millis)) => *millis as f64,
        Some(toml::Value::Float(millis)) => *millis,
        Some(_) => f64::NAN,
    };
    if !(millis > 0.0 && millis <= MAX_REPLY_DELAY_MS) {
        return Err(format!(
            "`policy.reply_delay_ms` must be \"auto\", or a number of milliseconds up to {MAX_REPLY_DELAY_MS}, 0 for no delay"
        ));
    }
    Ok(ReplyDelay::Fixed(Duration::from_secs_f64(millis * 1e-3)))
}

fn positive(key: &str, value: Option<f64>) -> Result<(), String> {
    match value {
        Some(v) if !(v.is_finite() && v > 0.0) => Err(format!("`{key}` is {v}: it must be a finite number above 0")),
        _ => Ok(()),
    }
}

fn unknown(key: &str, value: &str, known: &[&str]) -> String {
    let hint = nearest(value, known.iter().copied()).map(|n| format!(" (did you mean {n:?}?)")).unwrap_or_default();
    format!("`{key}` is {value:?}{hint}; known: {}", known.join(", "))
}
