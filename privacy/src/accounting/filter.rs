//! The privacy filter grants a query or refuses it, before any record is read.

use super::budget::Budget;
use super::error::AccountingError;
use super::fixed_point::mu_squared;
use super::honest::Honest;
use super::limits;
use super::privacy_unit::PrivacyUnit;
use super::slack;
use super::spent::{FilterRefusal, Spent};
use crate::mechanism::{NoiseScale, QueryKind, Sensitivity};

/// One release as it is priced; a pair of sensitivity and noise is a ratio's that is opened by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Priced {
    kind: QueryKind,
    sensitivity: Sensitivity,
    noise: NoiseScale,
    components: u32,
    honest: Honest,
}

impl Priced {
    /// A release that answers a query of this kind, with noise of this scale of each party, where the noise of `honest` parties protects what
    /// is opened of it.
    #[must_use]
    pub fn new(kind: QueryKind, sensitivity: Sensitivity, noise: NoiseScale, honest: Honest) -> Self {
        let components = u32::try_from(kind.length()).unwrap_or(u32::MAX);
        Self { kind, sensitivity, noise, components, honest }
    }

    /// The same as if its own party's noise alone protected it: what it is worth to an adversary that all other parties work with.
    #[must_use]
    pub fn alone(self) -> Self {
        self.under(Honest::ALONE)
    }

    /// The same under the noise of so many parties.
    #[must_use]
    pub fn under(self, honest: Honest) -> Self {
        Self { honest, ..self }
    }

    /// The same with a number of components that its kind does not have, for tests of vectors.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn of_components_for_test(self, components: u32) -> Self {
        Self { components, ..self }
    }

    /// What is released.
    #[must_use]
    pub fn kind(&self) -> QueryKind {
        self.kind
    }

    /// What it is charged by; see [`PrivacyUnit::charge_of_kind`].
    #[must_use]
    pub fn sensitivity(&self) -> Sensitivity {
        self.sensitivity
    }

    /// Scale of its noise.
    #[must_use]
    pub fn noise(&self) -> NoiseScale {
        self.noise
    }

    /// How many parties' noise protects what is opened of it.
    #[must_use]
    pub fn honest(&self) -> Honest {
        self.honest
    }

    /// Integers in it, each with noise of its own: as many as an answer to its kind has ([`QueryKind::length`]), so that no release is
    /// longer than what was paid for.
    #[must_use]
    pub fn components(&self) -> u32 {
        self.components
    }

    /// What the release costs of each thing that a ledger counts.
    ///
    /// One charge pays for all components: the sensitivity bounds how far the whole vector moves. Each component has its own noise,
    /// and so its own part of the allowance for discrete noise.
    ///
    /// # Errors
    /// [`AccountingError::ChargeOverflow`] when any of it exceeds 64 bits.
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

/// Grants queries while their total mu^2 stays within a budget's.
///
/// Valid for queries chosen from earlier answers, without loss (Smith & Thakurta 2022). Integers throughout, so that the order of
/// charges, a restart or another machine give the same total.
#[derive(Debug, Clone)]
pub struct PrivacyFilter {
    limit: Spent,
    spent: Spent,
    unit: PrivacyUnit,
}

impl PrivacyFilter {
    /// An unspent filter for a budget.
    ///
    /// # Errors
    /// [`AccountingError`] for a budget that is not valid, or too small or too large to keep a ledger for.
    pub fn new(budget: &Budget) -> Result<Self, AccountingError> {
        Self::resume(budget, Spent::default())
    }

    /// A filter that goes on from what was spent before, which may exceed a budget that has been lowered since.
    ///
    /// # Errors
    /// As [`PrivacyFilter::new`].
    pub fn resume(budget: &Budget, spent: Spent) -> Result<Self, AccountingError> {
        Ok(Self { limit: limits::limits(budget)?, spent, unit: budget.unit })
    }

    /// This filter's budget with another sum spent; [`PrivacyFilter::resume`] without computing the limits again.
    #[must_use]
    pub fn with_spent(self, spent: Spent) -> Self {
        Self { spent, ..self }
    }

    /// What has been granted.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// The budget's mu^2 in units of 2^-48, after the slack.
    #[must_use]
    pub fn limit_units(&self) -> u64 {
        self.limit.units
    }

    /// The ledger-exact mu of the budget, after the slack.
    #[must_use]
    pub fn limit_mu(&self) -> f64 {
        mu_squared(self.limit.units).sqrt()
    }

    /// The most that a ledger of this budget grants: charges, slack, draws and the reserve. Charges are priced so that they end before slack
    /// and draws do.
    #[must_use]
    pub fn limit(&self) -> Spent {
        self.limit
    }

    /// What the budget still holds, in units of 2^-48.
    #[must_use]
    pub fn remaining_units(&self) -> u64 {
        self.limit.units.saturating_sub(self.spent.units)
    }

    /// Charges all of `releases` or none, and returns each one's charge in units of 2^-48.
    ///
    /// # Errors
    /// [`FilterRefusal`]; nothing is charged then.
    pub fn try_charge<R: Copy + Into<Priced>>(&mut self, releases: &[R]) -> Result<Vec<u64>, FilterRefusal> {
        let (charges, after) = self.price(releases)?;
        self.spent = after;
        Ok(charges)
    }

    /// Whether [`PrivacyFilter::try_charge`] would grant `releases`.
    #[must_use]
    pub fn admits<R: Copy + Into<Priced>>(&self, releases: &[R]) -> bool {
        self.price(releases).is_ok()
    }

    /// Charges a cost that is known: a block's.
    ///
    /// # Errors
    /// [`FilterRefusal`]; nothing is charged then.
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

    /// A sum, where it is within all limits.
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
