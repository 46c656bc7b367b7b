//! The owner's settings for secure jobs.

use conclave_common::job::JobSpec;
use conclave_privacy::accounting::Honest;

use super::pins::Pins;

/// Whether, with whom and against how many colluders the owner's data take part in secure jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct SecureSettings {
    /// Whether secure jobs are admitted at all.
    pub allow: bool,
    /// How many of the others a job must at least allow to collude; see [`SecureSettings::least_colluders`] where it is not set.
    pub colluders_at_least: Option<u32>,
    /// Whom the others' identity keys are taken from.
    pub peers: Peers,
    /// The others' identity keys that the owner knows.
    pub pins: Pins,
    /// The most that all of the ledger's releases may spend together, priced as if all others colluded: an epsilon at the delta of the
    /// data's budget. No limit where it is not set, which it can't be with [`Peers::Ca`].
    pub max_epsilon_if_all_collude: Option<f64>,
    /// Days without an answer after which a job's mask key is deleted.
    pub keep_key_days: u32,
}

/// Whom the others' identity keys are taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Peers {
    /// The owner's pins.
    #[default]
    Pinned,
    /// The consortium's CA, where the owner has not pinned a party.
    Ca,
}

impl Default for SecureSettings {
    fn default() -> Self {
        Self {
            allow: false,
            colluders_at_least: None,
            peers: Peers::default(),
            pins: Pins::default(),
            max_epsilon_if_all_collude: None,
            keep_key_days: Self::KEEP_KEY_DAYS,
        }
    }
}

impl SecureSettings {
    /// Days that an idle job's mask key is kept, unless the owner says otherwise.
    pub const KEEP_KEY_DAYS: u32 = 30;

    /// How many colluders a job of so many participants must at least allow for: unless the owner says otherwise the greater half of the
    /// others.
    #[must_use]
    pub fn least_colluders(&self, members: usize) -> u32 {
        let half = u32::try_from(members.saturating_sub(1).div_ceil(2)).unwrap_or(u32::MAX);
        self.colluders_at_least.unwrap_or(half)
    }

    /// How many parties' noise protects what a secure job opens, by this owner's own limits on noise: as many as the job counts, but of parties
    /// whose identity keys the owner has not pinned, and who may be made up, none. What a release costs goes by the job's number, and
    /// [`SecureSettings::max_epsilon_if_all_collude`] is the limit to what that is worth with others who are made up.
    #[must_use]
    pub fn trusted(&self, own: &str, spec: &JobSpec) -> Honest {
        let Some(secure) = spec.aggregation.secure() else { return Honest::ALONE };
        let known = spec.parties.iter().filter(|name| *name == own || self.pins.of(name).is_some()).count();
        let trusted = u32::try_from(known).unwrap_or(u32::MAX).saturating_sub(secure.colluders);
        Honest::new(trusted.max(1).min(spec.honest().get())).unwrap_or_default()
    }

    /// What an owner who admits secure jobs is warned of.
    pub fn concerns(&self) -> Vec<&'static str> {
        let concerns = [
            (
                self.peers == Peers::Ca,
                "peers is \"ca\": whoever keeps the consortium's CA can make up the other parties, and is limited by \
                 max_epsilon_if_all_collude alone",
            ),
            (
                self.peers == Peers::Pinned && self.pins.is_empty(),
                "peers is \"pinned\" and nobody is pinned: no secure job can open; `conclave-party pin` tells what pins the others",
            ),
            (
                self.max_epsilon_if_all_collude.is_none(),
                "sets no max_epsilon_if_all_collude: what your data lose if all the others work together is not limited",
            ),
        ];
        concerns.into_iter().filter_map(|(holds, concern)| (self.allow && holds).then_some(concern)).collect()
    }
}
