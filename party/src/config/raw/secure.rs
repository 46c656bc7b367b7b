//! The table `[secure]`: settings of jobs with masked sums.

use std::collections::BTreeMap;

use conclave_privacy::accounting::Budget;
use conclave_privacy::secagg::Roster;
use conclave_proto::identity::valid_name;
use serde::Deserialize;

use super::unknown::unknown;
use conclave_vault::secure::{Fingerprint, Peers, Pins, SecureSettings};

/// Maximum of `keep_key_days`, a century.
const MAX_KEEP_DAYS: i64 = 36_500;

#[derive(Deserialize, Default)]
pub(super) struct RawSecure {
    allow: Option<bool>,
    colluders_at_least: Option<i64>,
    peers: Option<String>,
    #[serde(default)]
    pinned: BTreeMap<String, Pinned>,
    max_epsilon_if_all_collude: Option<f64>,
    keep_key_days: Option<i64>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a fingerprint or a list of fingerprints")]
enum Pinned {
    One(String),
    Several(Vec<String>),
}

impl RawSecure {
    pub(super) fn check(self, budget: &Budget) -> Result<SecureSettings, String> {
        let peers = match self.peers.as_deref() {
            None | Some("pinned") => Peers::Pinned,
            Some("ca") => Peers::Ca,
            Some(other) => return Err(unknown("secure.peers", other, &["pinned", "ca"])),
        };
        // A sum needs at least two honest participants.
        let most = Roster::MAX_MEMBERS - 2;
        let colluders = |given: i64| {
            u32::try_from(given).ok().filter(|t| (1..=most).contains(&(*t as usize))).ok_or_else(|| {
                format!(
                    "`secure.colluders_at_least` is {given}: it must be from 1 to {most}, or omitted for the larger half of the \
                     others"
                )
            })
        };
        let days = self.keep_key_days.unwrap_or(SecureSettings::KEEP_KEY_DAYS.into());
        let keep_key_days = u32::try_from(days)
            .ok()
            .filter(|_| (1..=MAX_KEEP_DAYS).contains(&days))
            .ok_or_else(|| format!("`secure.keep_key_days` is {days}: it must be from 1 to {MAX_KEEP_DAYS}"))?;
        Ok(SecureSettings {
            allow: self.allow.unwrap_or(false),
            colluders_at_least: self.colluders_at_least.map(colluders).transpose()?,
            peers,
            pins: pins(self.pinned)?,
            max_epsilon_if_all_collude: if_all_collude(self.max_epsilon_if_all_collude, peers, budget)?,
            keep_key_days,
        })
    }
}

/// Requires the owner's limit on the loss under full collusion if a CA alone vouches for the other parties.
fn if_all_collude(given: Option<f64>, peers: Peers, budget: &Budget) -> Result<Option<f64>, String> {
    const KEY: &str = "secure.max_epsilon_if_all_collude";
    let Some(epsilon) = given else {
        return match peers {
            Peers::Pinned => Ok(None),
            Peers::Ca => Err(format!(
                "`{KEY}` must be set with secure.peers = \"ca\": the keeper of the consortium's CA can invent all the other \
                 parties, and this is the most that your data then lose; or pin the others (conclave-party pin)"
            )),
        };
    };
    if !epsilon.is_finite() {
        return Err(format!("`{KEY}` is {epsilon}: it must be a finite number"));
    }
    if epsilon < budget.epsilon {
        return Err(format!(
            "`{KEY}` is {epsilon}, below budget.epsilon of {}: it limits the same releases at higher prices, so it must be at \
             least as large",
            budget.epsilon
        ));
    }
    Ok(Some(epsilon))
}

fn pins(pinned: BTreeMap<String, Pinned>) -> Result<Pins, String> {
    let mut pins = Pins::default();
    for (name, fingerprints) in pinned {
        if !valid_name(&name) {
            return Err(format!("`secure.pinned` contains {name:?}: a party's name is 1 to 63 of a-z, 0-9 and -"));
        }
        let fingerprints = match fingerprints {
            Pinned::One(fingerprint) => vec![fingerprint],
            Pinned::Several(fingerprints) => fingerprints,
        };
        if fingerprints.is_empty() {
            return Err(format!("`secure.pinned.{name}` is an empty list: name a fingerprint, or remove it"));
        }
        for text in fingerprints {
            let fingerprint = text.parse::<Fingerprint>().map_err(|why| format!("`secure.pinned.{name}`: {text:?} {why}"))?;
            pins.add(&name, fingerprint).map_err(|why| format!("`secure.pinned`: {why}"))?;
        }
    }
    Ok(pins)
}
