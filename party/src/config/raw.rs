//! The file's own shape, and the checks that turn it into a [`PartyConfig`].

use std::path::Path;

use conclave_common::accounting::Budget;
use conclave_common::job::keys::{Keys, nearest};
use conclave_proto::identity::valid_name;
use serde::Deserialize;

use super::{BadRows, DataConfig, PartyConfig, Policy};

pub(super) const KEYS: Keys = Keys::Table(&[
    ("name", Keys::Any),
    ("coordinator", Keys::Any),
    ("identity", Keys::Any),
    ("ledger", Keys::Any),
    ("durability", Keys::Any),
    (
        "data",
        Keys::Table(&[
            ("path", Keys::Any),
            ("bad_rows", Keys::Any),
            ("adjacency", Keys::Any),
            ("person", Keys::Any),
            ("max_records_per_person", Keys::Any),
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
            ("min_noise_sd", Keys::Any),
            ("columns", Keys::Any),
            ("reply_delay_ms", Keys::Any),
        ]),
    ),
]);

/// Model kinds that a policy may name, the ones still to come included.
const MODELS: [&str; 11] = [
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
];

#[derive(Deserialize)]
pub(super) struct Config {
    name: String,
    coordinator: String,
    identity: String,
    ledger: String,
    durability: Option<String>,
    data: Data,
    budget: RawBudget,
    #[serde(default)]
    policy: RawPolicy,
}

#[derive(Deserialize)]
struct Data {
    path: String,
    bad_rows: Option<String>,
    adjacency: Option<String>,
    person: Option<toml::Value>,
    max_records_per_person: Option<toml::Value>,
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
    min_noise_sd: Option<f64>,
    columns: Option<Vec<String>>,
    reply_delay_ms: Option<toml::Value>,
}

impl Config {
    pub(super) fn check(self, folder: &Path) -> Result<PartyConfig, String> {
        if !valid_name(&self.name) {
            return Err(format!("`name` is {:?}: a party's name is 1 to 63 of a-z, 0-9 and -, as in its certificate", self.name));
        }
        if !self.coordinator.starts_with("https://") || self.coordinator.len() <= "https://".len() {
            return Err(format!("`coordinator` is {:?}: write it as https://host or https://host:port", self.coordinator));
        }
        match self.durability.as_deref() {
            None | Some("strict") => {}
            Some("reserve") => return Err(not_built("durability = \"reserve\"", "write durability = \"strict\"")),
            Some(other) => return Err(unknown("durability", other, &["strict", "reserve"])),
        }
        let budget = Budget::new(self.budget.epsilon, self.budget.delta).map_err(|e| format!("[budget]: {e}"))?;
        Ok(PartyConfig {
            name: self.name,
            coordinator: self.coordinator,
            identity: folder.join(self.identity),
            ledger: folder.join(self.ledger),
            data: self.data.check(folder)?,
            budget,
            policy: self.policy.check()?,
        })
    }
}

impl Data {
    fn check(self, folder: &Path) -> Result<DataConfig, String> {
        match self.adjacency.as_deref() {
            None | Some("replace") => {}
            Some("add-remove") => {
                return Err(not_built("data.adjacency = \"add-remove\"", "write adjacency = \"replace\""));
            }
            Some(other) => return Err(unknown("data.adjacency", other, &["replace", "add-remove"])),
        }
        for (key, value) in [("person", &self.person), ("max_records_per_person", &self.max_records_per_person)] {
            if value.is_some() {
                return Err(not_built(
                    &format!("data.{key}"),
                    "remove it; until then one row is protected, not one person: give the party one row per person",
                ));
            }
        }
        let bad_rows = match self.bad_rows.as_deref() {
            None | Some("stop") => BadRows::Stop,
            Some("drop") => BadRows::Drop,
            Some(other) => return Err(unknown("data.bad_rows", other, &["stop", "drop"])),
        };
        Ok(DataConfig { path: folder.join(self.path), bad_rows })
    }
}

impl RawPolicy {
    fn check(self) -> Result<Policy, String> {
        match self.approve.as_deref() {
            Some("automatic") => {}
            None => {
                return Err("`policy.approve` is not set, which means \"manual\": every job waits for its owner's word. \
                            Approval by hand is not built yet; write approve = \"automatic\" under [policy], and the \
                            limits there that jobs must keep within"
                    .into());
            }
            Some("manual") => {
                return Err(not_built(
                    "policy.approve = \"manual\"",
                    "write approve = \"automatic\", and the limits under [policy] that jobs must keep within",
                ));
            }
            Some(other) => return Err(unknown("policy.approve", other, &["manual", "automatic"])),
        }
        match &self.reply_delay_ms {
            None | Some(toml::Value::Integer(0)) => {}
            Some(_) => {
                return Err(not_built(
                    "policy.reply_delay_ms other than 0",
                    "remove it or write 0: replies then leave as soon as they are ready",
                ));
            }
        }
        positive("policy.max_epsilon_per_job", self.max_epsilon_per_job)?;
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
            analysts: self.analysts,
            models: self.models,
            max_epsilon_per_job: self.max_epsilon_per_job,
            min_noise_sd: self.min_noise_sd.unwrap_or(0.0),
            columns: self.columns,
        })
    }
}

fn positive(key: &str, value: Option<f64>) -> Result<(), String> {
    match value {
        Some(v) if !(v.is_finite() && v > 0.0) => Err(format!("`{key}` is {v}: it must be a finite number above 0")),
        _ => Ok(()),
    }
}

fn not_built(what: &str, remedy: &str) -> String {
    format!("`{what}` is not built yet; {remedy}")
}

fn unknown(key: &str, value: &str, known: &[&str]) -> String {
    let hint = nearest(value, known.iter().copied()).map(|n| format!(" (did you mean {n:?}?)")).unwrap_or_default();
    format!("`{key}` is {value:?}{hint}; known: {}", known.join(", "))
}
