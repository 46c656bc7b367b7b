//! The budget of a job that releases once, in the integer units that every party's filter counts in.

use crate::sampler::error::SamplerError;
use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_common::query::PartyMetadata;
use conclave_common::query::QueryTerms;
use conclave_privacy::accounting::{Honest, PrivacyFilter, PrivacyUnit, mu_squared, units_under_noise};
use conclave_privacy::mechanism::{NoiseScale, QueryKind, STEP, Sensitivity};
use conclave_privacy::pass::GRADIENT_SCALE;

/// Remaining part of a job's cap at each party, in units of 2^-48 of mu^2.
#[derive(Debug, Clone)]
pub(crate) struct Allotment {
    parties: Vec<(PrivacyUnit, u64)>,
    /// Smallest of the parties' caps at the start.
    whole: u64,
    /// Most that one vector or remainder may cost.
    most: u64,
    honest: Honest,
}

impl Allotment {
    /// Returns the job's full cap at every party.
    pub(crate) fn new(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Self, SamplerError> {
        let cap = |party: &PartyMetadata| {
            let filter = PrivacyFilter::new(&spec.privacy.budget.of(party.unit()))?;
            Ok::<_, SamplerError>((party.unit(), filter.limit_units()))
        };
        let parties = parties.iter().map(cap).collect::<Result<Vec<_>, _>>()?;
        let whole = parties.iter().map(|(_, units)| *units).min().unwrap_or(0);
        Ok(Self { parties, whole, most: units_under_noise(spec.privacy.noise_multiplier), honest: spec.honest() })
    }

    /// Returns the smallest remaining share of the cap over the parties.
    pub(crate) fn left(&self) -> f64 {
        self.parties.iter().map(|(_, units)| *units).min().unwrap_or(0) as f64 / self.whole.max(1) as f64
    }

    /// Moves a share of the whole cap from every party into a new allotment.
    pub(crate) fn split_off(&mut self, share: f64) -> Self {
        let parties = self.parties.clone();
        let mut part = Self { parties, whole: (share * self.whole as f64) as u64, ..*self };
        for ((_, left), (_, taken)) in self.parties.iter_mut().zip(&mut part.parties) {
            *taken = ((share * *taken as f64) as u64).min(*left);
            *left -= *taken;
        }
        part
    }

    /// Returns a query's cost at the party where it costs most, as a share of the smallest cap; `per_record` is the sensitivity
    /// of one record.
    ///
    /// # Errors
    /// A sensitivity or a charge out of range.
    pub(crate) fn share_of(&self, kind: QueryKind, per_record: Sensitivity, noise: NoiseScale) -> Result<f64, SamplerError> {
        let mut most = 0;
        for (unit, _) in &self.parties {
            most = most.max(unit.charge_of_kind(kind, unit.sensitivity(per_record)?, (noise, self.honest))?);
        }
        Ok(self.share_of_units(most))
    }

    /// Converts a charge into a share of the smallest cap.
    pub(crate) fn share_of_units(&self, units: u64) -> f64 {
        units as f64 / self.whole.max(1) as f64
    }

    /// Returns true if one vector may cost this share of the smallest cap
    /// ([`conclave_common::job::PrivacySpec::noise_multiplier`]).
    pub(crate) fn admits(&self, share: f64) -> bool {
        share * self.whole as f64 <= self.most as f64
    }

    /// Limits the units for one query of this kind to the most that it may cost.
    fn within(&self, kind: QueryKind, units: u64) -> u64 {
        if kind.has_minimum_noise() { units } else { units.min(self.most) }
    }

    /// Subtracts a query's cost at every party. Returns false and subtracts nothing if a party's remaining budget is too small.
    ///
    /// # Errors
    /// Those of [`Allotment::share_of`].
    pub(crate) fn charge(&mut self, kind: QueryKind, per_record: Sensitivity, noise: NoiseScale) -> Result<bool, SamplerError> {
        let charge = |(unit, left): &(PrivacyUnit, u64)| {
            let units = unit.charge_of_kind(kind, unit.sensitivity(per_record)?, (noise, self.honest))?;
            Ok::<_, SamplerError>(left.checked_sub(units))
        };
        let left = self.parties.iter().map(charge).collect::<Result<Option<Vec<u64>>, _>>()?;
        let Some(left) = left else { return Ok(false) };
        self.parties.iter_mut().zip(left).for_each(|((_, before), left)| *before = left);
        Ok(true)
    }

    /// Returns the cost of a query at these points under this noise, at each party in its own units.
    fn prices(
        &self,
        (spec, model): (&JobSpec, &dyn Model),
        (kind, noise): (QueryKind, NoiseScale),
        points: (&[f64], &[f64]),
    ) -> Result<Vec<u64>, SamplerError> {
        let price = |(unit, _): &(PrivacyUnit, u64)| {
            let terms = QueryTerms::new(model, spec, *unit, kind, points)?;
            Ok(unit.charge_of_kind(kind, terms.sensitivity(), (noise, self.honest))?)
        };
        self.parties.iter().map(price).collect()
    }

    /// Returns the cost of a query at these points under this noise, at the party where it costs most, as a share of the smallest
    /// cap.
    ///
    /// # Errors
    /// The query has no price.
    pub(crate) fn price(
        &self,
        spec: &JobSpec,
        model: &dyn Model,
        query: (QueryKind, NoiseScale),
        points: (&[f64], &[f64]),
    ) -> Result<f64, SamplerError> {
        let most = self.prices((spec, model), query, points)?.into_iter().max().unwrap_or(0);
        Ok(most as f64 / self.whole.max(1) as f64)
    }

    /// Subtracts the cost of a query at these points at every party. Returns false and subtracts nothing if a party's remaining
    /// budget is too small.
    ///
    /// # Errors
    /// The query has no price.
    pub(crate) fn pay(
        &mut self,
        spec: &JobSpec,
        model: &dyn Model,
        query: (QueryKind, NoiseScale),
        points: (&[f64], &[f64]),
    ) -> Result<bool, SamplerError> {
        let prices = self.prices((spec, model), query, points)?;
        let left =
            self.parties.iter().zip(prices).map(|((_, left), price)| left.checked_sub(price)).collect::<Option<Vec<u64>>>();
        let Some(left) = left else { return Ok(false) };
        self.parties.iter_mut().zip(left).for_each(|((_, before), left)| *before = left);
        Ok(true)
    }

    /// Returns the ratio of sensitivity to one party's noise at which a query costs `units`.
    fn mu(&self, units: u64) -> f64 {
        (mu_squared(units) * f64::from(self.honest.get())).sqrt()
    }

    /// Returns the standard deviation of one component of a query's noise at a party if the whole cap were spent on it, in units
    /// of a product of two numbers of magnitude 1.
    pub(crate) fn whole_sd(
        &self,
        spec: &JobSpec,
        model: &dyn Model,
        kind: QueryKind,
        points: (&[f64], &[f64]),
    ) -> Result<f64, SamplerError> {
        let mut most: f64 = 0.0;
        for (unit, _) in &self.parties {
            let terms = QueryTerms::new(model, spec, *unit, kind, points)?;
            let moved = kind.moves(unit.adjacency.factor()) as f64 * terms.sensitivity().log_units();
            most = most.max(moved / self.mu(self.whole));
        }
        Ok(most)
    }

    /// Returns the standard deviation over all parties of one component of a gradient's noise if the whole cap were spent on it,
    /// in units of the largest contribution of a record.
    pub(crate) fn whole_score_sd(
        &self,
        spec: &JobSpec,
        model: &dyn Model,
        points: (&[f64], &[f64]),
    ) -> Result<f64, SamplerError> {
        let kind = QueryKind::Gradient { parameters: points.0.len() as u32 };
        let one = self.whole_sd(spec, model, kind, points)?;
        Ok(one / STEP / GRADIENT_SCALE * (self.parties.len() as f64).sqrt())
    }

    /// Subtracts a share of the whole cap for one query, or less if less remains or if one query may cost only less. Returns the
    /// least noise that charges no party more.
    ///
    /// # Errors
    /// [`SamplerError::TooSmallABudget`] if even the greatest noise costs more.
    pub(crate) fn take(
        &mut self,
        spec: &JobSpec,
        model: &dyn Model,
        kind: QueryKind,
        points: (&[f64], &[f64]),
        share: f64,
    ) -> Result<NoiseScale, SamplerError> {
        let allotted = self.within(kind, (share * self.whole as f64) as u64);
        let mut scale = NoiseScale::MIN_UNITS;
        let mut prices: Vec<(PrivacyUnit, Sensitivity, u64)> = Vec::with_capacity(self.parties.len());
        for (unit, left) in &self.parties {
            let terms = QueryTerms::new(model, spec, *unit, kind, points)?;
            let units = allotted.min(*left);
            // The noise at which the charge, before it is rounded up, equals the available units.
            let moved = kind.moves(unit.adjacency.factor()) as f64 * terms.sensitivity().units() as f64;
            let least = moved / self.mu(units.max(1));
            scale = scale.max(least as u64);
            prices.push((*unit, terms.sensitivity(), units));
        }
        let noise = affordable((kind, self.honest), scale, &prices).ok_or(SamplerError::TooSmallABudget { kind })?;
        for ((unit, left), (_, sensitivity, _)) in self.parties.iter_mut().zip(&prices) {
            *left = left.saturating_sub(unit.charge_of_kind(kind, *sensitivity, (noise, self.honest))?);
        }
        Ok(noise)
    }
}

/// Returns the least noise scale, starting near `scale`, that costs no party more than its available units.
fn affordable((kind, honest): (QueryKind, Honest), scale: u64, prices: &[(PrivacyUnit, Sensitivity, u64)]) -> Option<NoiseScale> {
    let mut multiple = (scale / NoiseScale::MULTIPLE).max(1);
    loop {
        let noise = NoiseScale::from_units(multiple * NoiseScale::MULTIPLE).ok()?;
        let within = |(unit, sensitivity, units): &(PrivacyUnit, Sensitivity, u64)| {
            unit.charge_of_kind(kind, *sensitivity, (noise, honest)).is_ok_and(|charge| charge <= *units)
        };
        if prices.iter().all(within) {
            return Some(noise);
        }
        // The step is larger than rounding needs. If even the least charge of a draw is too much, the loop soon reaches the
        // greatest scale.
        multiple += 1 + multiple / 4096;
    }
}

#[cfg(test)]
#[path = "tests/allotment.rs"]
mod tests;
