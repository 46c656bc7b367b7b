//! The owner's settings for secure jobs.

use conclave_common::job::JobSpec;
use conclave_privacy::accounting::Honest;

use super::pins::Pins;

/// The terms on which the owner's data take part in secure jobs: with which parties and against how many colluders.
#[derive(Debug, Clone, PartialEq)]
pub struct SecureSettings {
    /// Admits secure jobs at all.
    pub allow: bool,
    /// Least number of colluders that a job must allow for; see [`SecureSettings::least_colluders`] where it is not set.
    pub colluders_at_least: Option<u32>,
    /// Source of the others' identity keys.
    pub peers: Peers,
    /// The others' identity keys that the owner knows.
    pub pins: Pins,
    /// Limit on all of the ledger's releases together, priced as if all others colluded: an epsilon at the delta of the data's budget. No
    /// limit where it is not set, which [`Peers::Ca`] does not allow.
    pub max_epsilon_if_all_collude: Option<f64>,
    /// Days without an answer after which a job's mask key is deleted.
    pub keep_key_days: u32,
}

/// Source of the others' identity keys.
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
    /// Days that an idle job's mask key is kept, unless the owner sets another number.
    pub const KEEP_KEY_DAYS: u32 = 30;

    /// Returns the least number of colluders that a job of `members` participants must allow for: the greater half of the others, unless
    /// the owner sets another number.
    #[must_use]
    pub fn least_colluders(&self, members: usize) -> u32 {
        let half = u32::try_from(members.saturating_sub(1).div_ceil(2)).unwrap_or(u32::MAX);
        self.colluders_at_least.unwrap_or(half)
    }

    /// Returns the number of parties whose noise protects a secure job's opened sums, by this owner's own limits on noise: the job's
    /// number, without parties whose identity keys the owner has not pinned, as those may be invented. The price of a release goes by the
    /// job's number, and [`SecureSettings::max_epsilon_if_all_collude`] limits the loss to invented parties.
    #[must_use]
    pub fn trusted(&self, own: &str, spec: &JobSpec) -> Honest {
        let Some(secure) = spec.aggregation.secure() else { return Honest::ALONE };
        let known = spec.parties.iter().filter(|name| *name == own || self.pins.of(name).is_some()).count();
        let trusted = u32::try_from(known).unwrap_or(u32::MAX).saturating_sub(secure.colluders);
        Honest::new(trusted.max(1).min(spec.honest().get())).unwrap_or_default()
    }
}
