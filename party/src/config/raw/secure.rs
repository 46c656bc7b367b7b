//! The table `[secure]`: settings of jobs with masked sums.

use std::collections::BTreeMap;

use conclave_common::settings;
use conclave_common::settings::{Fault, Setting, Value, each, one_of, or, within};
use conclave_privacy::accounting::Budget;
use conclave_privacy::secagg::Roster;
use conclave_proto::identity::valid_name;

use conclave_vault::secure::{Fingerprint, Peers, Pins, SecureSettings};

/// A sum needs at least two honest participants.
const MOST_COLLUDERS: u32 = Roster::MAX_MEMBERS as u32 - 2;
/// Maximum of `keep_key_days`, a century.
const MAX_KEEP_DAYS: u32 = 36_500;

settings! {
    pub(super) struct RawSecure {
        allow: bool = false,
        colluders_at_least: Option<u32> => or("omit it for the larger half of the others", within(1..=MOST_COLLUDERS)),
        peers: Peers = Peers::Pinned => one_of(&[("pinned", Peers::Pinned), ("ca", Peers::Ca)]),
        pinned: BTreeMap<String, Pinned>,
        max_epsilon_if_all_collude: Option<f64>,
        keep_key_days: u32 = SecureSettings::KEEP_KEY_DAYS => within(1..=MAX_KEEP_DAYS),
    }
}

/// One fingerprint or several.
pub(super) struct Pinned(Vec<Fingerprint>);

impl Setting for Pinned {
    fn read(value: &Value) -> Result<Self, Fault> {
        let one = |value: &Value| {
            let text = value.as_str().ok_or_else(|| Fault::of("must be a fingerprint or a list of fingerprints"))?;
            text.parse().map_err(|why| Fault::of(format!("names {text:?}, which {why}")))
        };
        match value.as_array() {
            None => Ok(Self(vec![one(value)?])),
            Some(none) if none.is_empty() => Err(Fault::of("is an empty list: name a fingerprint, or remove it")),
            Some(_) => each(one)(value).map(Self),
        }
    }
}

impl RawSecure {
    pub(super) fn check(self, budget: &Budget) -> Result<SecureSettings, String> {
        Ok(SecureSettings {
            allow: self.allow,
            colluders_at_least: self.colluders_at_least,
            peers: self.peers,
            pins: pins(self.pinned)?,
            max_epsilon_if_all_collude: if_all_collude(self.max_epsilon_if_all_collude, self.peers, budget)?,
            keep_key_days: self.keep_key_days,
        })
    }
}

/// Requires the owner's limit on the loss under full collusion if a CA alone vouches for the other parties.
fn if_all_collude(given: Option<f64>, peers: Peers, budget: &Budget) -> Result<Option<f64>, String> {
    const KEY: &str = "secure.max_epsilon_if_all_collude";
    match given {
        None if peers == Peers::Ca => Err(format!(
            "`{KEY}` must be set with secure.peers = \"ca\": the keeper of the consortium's CA can invent all the other \
             parties, and this is the most that your data then lose; or pin the others (conclave-party pin)"
        )),
        Some(epsilon) if !epsilon.is_finite() => Err(format!("`{KEY}` is {epsilon}: it must be a finite number")),
        Some(epsilon) if epsilon < budget.epsilon => Err(format!(
            "`{KEY}` is {epsilon}, below budget.epsilon of {}: it limits the same releases at higher prices, so it must be at \
             least as large",
            budget.epsilon
        )),
        given => Ok(given),
    }
}

fn pins(pinned: BTreeMap<String, Pinned>) -> Result<Pins, String> {
    let mut pins = Pins::default();
    for (name, Pinned(fingerprints)) in pinned {
        if !valid_name(&name) {
            return Err(format!("`secure.pinned` contains {name:?}: a party's name is 1 to 63 of a-z, 0-9 and -"));
        }
        for fingerprint in fingerprints {
            pins.add(&name, fingerprint).map_err(|why| format!("`secure.pinned`: {why}"))?;
        }
    }
    Ok(pins)
}
