//! The privacy filter, which grants or refuses a query before any record is read.

use super::budget::Budget;
use super::error::AccountingError;
use super::honest::Honest;
use super::limits;
use super::privacy_unit::PrivacyUnit;
use super::slack;
use super::spent::{FilterRefusal, Spent};
use crate::mechanism::{NoiseScale, QueryKind, Sensitivity};

/// A release with everything that determines its price. A pair of sensitivity and noise converts to a ratio protected by its
/// own party's noise only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Priced {
    kind: QueryKind,
    sensitivity: Sensitivity,
    noise: NoiseScale,
    components: u32,
    honest: Honest,
}

impl Priced {
    /// Describes an answer to a query of this kind. Each party adds noise of this scale, and the noise of `honest` parties
    /// protects the opened value.
    #[must_use]
    pub fn new(kind: QueryKind, sensitivity: Sensitivity, noise: NoiseScale, honest: Honest) -> Self {
        let components = u32::try_from(kind.length()).unwrap_or(u32::MAX);
        Self { kind, sensitivity, noise, components, honest }
    }

    /// Returns the same release as if only its own party's noise protected it: the price against an adversary with whom all other
    /// parties collude.
    #[must_use]
    pub fn alone(self) -> Self {
        self.under(Honest::ALONE)
    }

    /// Returns the same release under the noise of `honest` parties.
    #[must_use]
    pub fn under(self, honest: Honest) -> Self {
        Self { honest, ..self }
    }

    /// Returns the same release with a number of components that differs from its kind's, for tests of vectors.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn of_components_for_test(self, components: u32) -> Self {
        Self { components, ..self }
    }

    /// Returns the kind of the query.
    #[must_use]
    pub fn kind(&self) -> QueryKind {
        self.kind
    }

    /// Returns the sensitivity that is charged; see [`PrivacyUnit::charge_of_kind`].
    #[must_use]
    pub fn sensitivity(&self) -> Sensitivity {
        self.sensitivity
    }

    /// Returns the noise scale.
    #[must_use]
    pub fn noise(&self) -> NoiseScale {
        self.noise
    }

    /// Returns the number of parties whose noise protects the opened value.
    #[must_use]
    pub fn honest(&self) -> Honest {
        self.honest
    }

    /// Returns the number of integers, each with its own noise. It equals the length of an answer to the kind
    /// ([`QueryKind::length`]), so that no release is longer than what was charged.
    #[must_use]
    pub fn components(&self) -> u32 {
        self.components
    }

    /// Returns the cost of the release in each quantity that a ledger limits.
    ///
    /// One charge pays for all components, because the sensitivity bounds the L2 distance of the whole vector. Each component has
    /// its own noise, and so its own share of the slack for discrete noise.
    ///
    /// # Errors
    /// [`AccountingError::ChargeOverflow`] when a quantity exceeds 64 bits. [`AccountingError::Choice`] for a choice at another
    /// noise scale than [`NoiseScale::OF_A_CHOICE`], or with several honest parties.
    pub fn cost(&self, unit: PrivacyUnit) -> Result<Spent, AccountingError> {
        let Self { kind, sensitivity, noise, components, honest } = *self;
        let overflow = AccountingError::ChargeOverflow { sensitivity: sensitivity.units(), noise: noise.units() };
        Ok(Spent {
            units: unit.charge_of_release(kind, components, sensitivity, (noise, honest))?,
            slack_units: slack::units_of_draw(noise, honest).checked_mul(u64::from(components)).ok_or(overflow)?,
            draws: u64::from(components),
            reserve_units: 0,
        })
    }
}

impl From<(Sensitivity, NoiseScale)> for Priced {
    fn from((sensitivity, noise): (Sensitivity, NoiseScale)) -> Self {
        Self::new(QueryKind::Ratio, sensitivity, noise, Honest::ALONE)
    }
}

/// A filter that grants queries while their total mu^2 stays within a budget.
///
/// Theorem, composition: all releases that it grants are together `(epsilon, delta)` differentially private at its budget, even if
/// each query is chosen from earlier answers (Smith & Thakurta 2022). All sums are integers, so the total does not depend on the
/// order of charges, on restarts or on the machine.
///
/// Proof: `docs/explanation/proofs.md`, section 3.
#[derive(Debug, Clone)]
pub struct PrivacyFilter {
    limit: Spent,
    spent: Spent,
    unit: PrivacyUnit,
}

impl PrivacyFilter {
    /// Creates an unspent filter for a budget.
    ///
    /// # Errors
    /// [`AccountingError`] for a budget that is not valid, or too small or too large to keep a ledger for.
    pub fn new(budget: &Budget) -> Result<Self, AccountingError> {
        Self::resume(budget, Spent::default())
    }

    /// Creates a filter that continues from earlier charges. These may exceed a budget that has been lowered since.
    ///
    /// # Errors
    /// [`AccountingError`] for a budget that is not valid, or too small or too large to keep a ledger for.
    pub fn resume(budget: &Budget, spent: Spent) -> Result<Self, AccountingError> {
        Ok(Self { limit: limits::limits(budget)?, spent, unit: budget.unit })
    }

    /// Returns this filter with its spent sum replaced. The limits are not computed again.
    #[must_use]
    pub fn with_spent(self, spent: Spent) -> Self {
        Self { spent, ..self }
    }

    /// Returns the sum of all granted costs.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// Returns the budget's mu^2 in units of 2^-48, less the slack.
    #[must_use]
    pub fn limit_units(&self) -> u64 {
        self.limit.units
    }

    /// Returns the budget's mu as the ledger enforces it, less the slack.
    #[cfg(test)]
    #[must_use]
    pub fn limit_mu(&self) -> f64 {
        super::fixed_point::mu_squared(self.limit.units).sqrt()
    }

    /// Returns the limits that a ledger of this budget enforces: charges, slack, draws and the reserve. Charges are priced so
    /// that they reach their limit before slack and draws do.
    #[must_use]
    pub fn limit(&self) -> Spent {
        self.limit
    }

    /// Returns the remaining budget in each quantity.
    #[must_use]
    pub fn remaining(&self) -> Spent {
        self.limit.minus(self.spent)
    }

    /// Returns this filter with its remaining mu^2 and reserve lowered to those of `room`, where they exceed it.
    #[must_use]
    pub fn within_room(mut self, room: Spent) -> Self {
        let lowered = |limit: u64, spent: u64, room: u64| limit.min(spent.saturating_add(room));
        self.limit.units = lowered(self.limit.units, self.spent.units, room.units);
        self.limit.reserve_units = lowered(self.limit.reserve_units, self.spent.reserve_units, room.reserve_units);
        self
    }

    /// Charges all of `releases` or none, and returns each one's charge in units of 2^-48.
    ///
    /// # Errors
    /// [`FilterRefusal`]; then nothing is charged.
    pub fn try_charge<R: Copy + Into<Priced>>(&mut self, releases: &[R]) -> Result<Vec<u64>, FilterRefusal> {
        let (charges, after) = self.price(releases)?;
        self.spent = after;
        Ok(charges)
    }

    /// Returns whether [`PrivacyFilter::try_charge`] would grant `releases`.
    #[cfg(test)]
    #[must_use]
    pub fn admits<R: Copy + Into<Priced>>(&self, releases: &[R]) -> bool {
        self.price(releases).is_ok()
    }

    /// Charges a cost that was computed before, such as a block's.
    ///
    /// # Errors
    /// [`FilterRefusal`]; then nothing is charged.
    pub fn try_spend(&mut self, cost: Spent) -> Result<(), FilterRefusal> {
        self.spent = self.within(self.spent.plus(cost).ok_or(FilterRefusal::Overflow)?)?;
        Ok(())
    }

    fn price<R: Copy + Into<Priced>>(&self, releases: &[R]) -> Result<(Vec<u64>, Spent), FilterRefusal> {
        let mut after = self.spent;
        let mut charges = Vec::with_capacity(releases.len());
        for release in releases {
            let cost = (*release).into().cost(self.unit).map_err(|_| FilterRefusal::Overflow)?;
            after = after.plus(cost).ok_or(FilterRefusal::Overflow)?;
            charges.push(cost.units);
        }
        Ok((charges, self.within(after)?))
    }

    /// Returns the sum if it is within all limits.
    fn within(&self, after: Spent) -> Result<Spent, FilterRefusal> {
        let limit = self.limit;
        if after.units > limit.units {
            Err(FilterRefusal::Budget)
        } else if after.slack_units > limit.slack_units {
            Err(FilterRefusal::Slack)
        } else if after.draws > limit.draws {
            Err(FilterRefusal::Draws)
        } else if after.reserve_units > limit.reserve_units {
            Err(FilterRefusal::Reserve)
        } else {
            Ok(after)
        }
    }
}
