//! The privacy filter grants a query or refuses it, before any record is read.

use super::budget::Budget;
use super::error::AccountingError;
use super::fixed_point::mu_squared;
use super::honest::Honest;
use super::limits::{self, Limits};
use super::privacy_unit::PrivacyUnit;
use super::{gaussian_dp, slack, zcdp};
use crate::mechanism::{NoiseScale, QueryKind, Sensitivity};

/// What a ledger has granted. Add-only; the ledger stores it and [`PrivacyFilter::resume`] takes it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// mu^2 in units of 2^-48.
    pub units: u64,
    /// The sum over noise draws of `6 / s^2`, in units of 2^-80.
    pub slack_units: u64,
    /// Noise draws.
    pub draws: u64,
}

impl Spent {
    /// The sum with another, field by field; `None` where it leaves 64 bits.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        Some(Self {
            units: self.units.checked_add(other.units)?,
            slack_units: self.slack_units.checked_add(other.slack_units)?,
            draws: self.draws.checked_add(other.draws)?,
        })
    }

    /// mu^2 as a float.
    #[must_use]
    pub fn mu_squared(&self) -> f64 {
        mu_squared(self.units)
    }

    /// A running epsilon at `delta`, for the owner to watch. What is promised is the budget, not this.
    #[must_use]
    pub fn epsilon(&self, delta: f64) -> f64 {
        gaussian_dp::epsilon(self.mu_squared().sqrt(), delta)
    }

    /// The same by zCDP (`rho = mu^2 / 2`).
    #[must_use]
    pub fn epsilon_zcdp(&self, delta: f64) -> f64 {
        zcdp::epsilon(0.5 * self.mu_squared(), delta)
    }
}

/// Why a filter refused. Nothing is charged by a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FilterRefusal {
    /// The privacy budget does not hold the charge.
    #[error("the privacy budget is spent")]
    Budget,
    /// The allowance for the discrete Gaussian's departure from the Gaussian is spent. Unreachable at the prices of this version.
    #[error("the allowance for discrete noise is spent")]
    Slack,
    /// The number of noise draws that one ledger grants is reached. Unreachable at the prices of this version.
    #[error("the number of releases that one ledger grants is reached")]
    Draws,
    /// The charge does not fit the ledger's integers.
    #[error("the charge is too large for a ledger")]
    Overflow,
}

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
    limit_units: u64,
    limit_slack_units: u64,
    limit_draws: u64,
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
        let Limits { units, slack_units, draws } = limits::limits(budget)?;
        Ok(Self { limit_units: units, limit_slack_units: slack_units, limit_draws: draws, spent, unit: budget.unit })
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
        self.limit_units
    }

    /// The ledger-exact mu of the budget, after the slack.
    #[must_use]
    pub fn limit_mu(&self) -> f64 {
        mu_squared(self.limit_units).sqrt()
    }

    /// The most that a ledger of this budget grants: charges, slack and draws. Charges are priced so that they end first.
    #[must_use]
    pub fn limit(&self) -> Spent {
        Spent { units: self.limit_units, slack_units: self.limit_slack_units, draws: self.limit_draws }
    }

    /// What the budget still holds, in units of 2^-48.
    #[must_use]
    pub fn remaining_units(&self) -> u64 {
        self.limit_units.saturating_sub(self.spent.units)
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

    fn price<R: Copy + Into<Priced>>(&self, releases: &[R]) -> Result<(Vec<u64>, Spent), FilterRefusal> {
        let mut after = self.spent;
        let mut charges = Vec::with_capacity(releases.len());
        for release in releases {
            let cost = (*release).into().cost(self.unit).map_err(|_| FilterRefusal::Overflow)?;
            after = after.plus(cost).ok_or(FilterRefusal::Overflow)?;
            charges.push(cost.units);
        }
        if after.units > self.limit_units {
            Err(FilterRefusal::Budget)
        } else if after.slack_units > self.limit_slack_units {
            Err(FilterRefusal::Slack)
        } else if after.draws > self.limit_draws {
            Err(FilterRefusal::Draws)
        } else {
            Ok((charges, after))
        }
    }
}
