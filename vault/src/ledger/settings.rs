//! Defines the settings of a ledger: its place and its limits.

use std::path::{Path, PathBuf};

use conclave_privacy::accounting::Budget;

use super::delta_reserve::{reserve, written};
use super::error::LedgerError;
use super::events::{Genesis, exact, hex, unhex};
use super::format::FORMAT;
use super::secret::Secret;
use super::state::LedgerState;
use conclave_ops::private_files::with_suffix;

/// The writes that must be on disk before a number leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The charge before the answer is computed, the answer before it is sent.
    Strict,
    /// A block of charge, for `block` queries of the first one's price, before the first of them is computed. After a crash the whole block
    /// counts as spent.
    Reserve {
        /// Queries that a block pays for, at the price of the first.
        block: u32,
    },
}

/// Queries that a block pays for unless the owner sets another number: a crash forfeits at most their charge.
pub const RESERVE_BLOCK: u32 = 64;

/// The place of a ledger and its limits.
#[derive(Debug, Clone)]
pub struct LedgerSettings {
    /// The ledger's file.
    pub ledger: PathBuf,
    /// The secret key's file; not in the ledger's folder.
    pub secret: PathBuf,
    /// The file of the last head; not in the ledger's folder.
    pub head_file: PathBuf,
    /// The party.
    pub party: String,
    /// The data's budget and unit of privacy.
    pub budget: Budget,
    /// The writes that are synced, and when.
    pub durability: Durability,
    /// Limit on all jobs of one analyst together.
    pub analyst_cap: Option<Budget>,
    /// Limit on all jobs together, priced as if all other parties of masked jobs colluded.
    pub all_collude: Option<Budget>,
}

impl LedgerSettings {
    /// Makes strict settings with key and head beside the ledger, for temporary ledgers.
    pub fn beside(path: &Path, party: &str, budget: &Budget) -> Self {
        Self {
            ledger: path.to_owned(),
            secret: with_suffix(path, ".key"),
            head_file: with_suffix(path, ".head"),
            party: party.to_owned(),
            budget: *budget,
            durability: Durability::Strict,
            analyst_cap: None,
            all_collude: None,
        }
    }

    /// Makes the first entry's statement of party and budget.
    pub(super) fn genesis(&self) -> Genesis {
        Genesis {
            format: FORMAT,
            party: self.party.clone(),
            epsilon: exact(self.budget.epsilon),
            delta: exact(self.budget.delta),
            reserve: self.budget.reserve_units,
            adjacency: self.budget.unit.adjacency.as_str().to_owned(),
            records_per_person: self.budget.unit.records_per_person().unwrap_or(0),
            key_check: String::new(),
            nonce: String::new(),
        }
    }

    /// Checks that the ledger is this party's, made for this very budget, and has this key.
    pub fn check(&self, path: &Path, state: &LedgerState, secret: &Secret) -> Result<(), LedgerError> {
        self.check_genesis(path, state.genesis())?;
        let found = state.genesis().map(|g| (g.nonce.as_str(), g.key_check.as_str())).unwrap_or_default();
        let nonce = unhex::<32>(found.0).unwrap_or_default();
        if hex(&secret.mac(KEY_CHECK, [nonce.as_slice()])) != found.1 {
            let reason = "is another ledger's key; restore the one that was made with this ledger".into();
            return Err(LedgerError::Secret { file: self.secret.clone(), reason });
        }
        Ok(())
    }

    /// Checks that a ledger's first entry agrees with these settings.
    ///
    /// # Errors
    /// As [`LedgerSettings::agreed`].
    pub fn check_genesis(&self, path: &Path, genesis: Option<&Genesis>) -> Result<(), LedgerError> {
        self.agreed(path, genesis).map(drop)
    }

    /// Returns the ledger's budget, where it agrees with these settings. Its own figures count: the values under `[budget]` after a reserve
    /// was added differ from them by rounding.
    pub fn agreed(&self, path: &Path, genesis: Option<&Genesis>) -> Result<Budget, LedgerError> {
        let (expected, file) = (self.genesis(), path.to_owned());
        let found = genesis.ok_or_else(|| LedgerError::corrupt(path, "it has no first entry"))?;
        if found.party != expected.party {
            return Err(LedgerError::Party { file, found: found.party.clone(), expected: expected.party });
        }
        let first = |why| LedgerError::corrupt(path, format!("its first entry {why}"));
        let budget = found.budget().map_err(first)?;
        if found.epsilon != expected.epsilon || !self.is_delta(&budget) {
            let figures = |budget: &Budget| (exact(budget.epsilon), exact(written(budget.promised_delta())));
            return Err(match (self.budget.reserve_units, budget.reserve_units) {
                (0, 0) => LedgerError::Budget { file, found: figures(&budget), expected: figures(&self.budget) },
                _ => LedgerError::Reserve { file, reason: self.other_reserve(&budget) },
            });
        }
        if (&found.adjacency, found.records_per_person) != (&expected.adjacency, expected.records_per_person) {
            let found = found.unit().map_err(first)?.to_string();
            return Err(LedgerError::Unit { file, found, expected: self.budget.unit.to_string() });
        }
        Ok(budget)
    }

    /// Returns true where both parts of a ledger's delta are those of the settings: to the bit without a reserve, else to a billionth.
    fn is_delta(&self, found: &Budget) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.max(b);
        match (self.budget.reserve_units, found.reserve_units) {
            (0, 0) => found.delta == self.budget.delta,
            (ours, theirs) => near(ours as f64, theirs as f64) && near(self.budget.delta, found.delta),
        }
    }

    fn other_reserve(&self, found: &Budget) -> String {
        let of = |budget: &Budget| (budget.epsilon, written(budget.promised_delta()), reserve(budget.reserve_units));
        let (epsilon, delta, set_aside) = of(found);
        let (_, written_delta, written_reserve) = of(&self.budget);
        if found.reserve_units > 0 {
            return format!(
                "this ledger promises epsilon = {epsilon}, delta = {delta}, of which {set_aside} is set aside for subsampled releases; write \
                 these into [budget], the last as delta_reserve"
            );
        }
        format!(
            "this ledger was made for epsilon = {epsilon}, delta = {delta} and sets no part of it aside, and [budget] says delta = {written_delta}, \
             delta_reserve = {written_reserve}; the budget of a ledger is not divided again. Write delta = {delta} and no delta_reserve; then, \
             if you mean to promise delta = {} from now on, run `conclave-party budget --add-reserve {written_reserve} --reason \"...\"`, which \
             says what to write",
            written(delta + written_reserve)
        )
    }
}

/// Fixed text whose keyed hash is in the first entry.
pub(super) const KEY_CHECK: &str = "conclave ledger key check";
