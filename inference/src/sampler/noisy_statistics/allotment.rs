//! The budget of a job that releases once, in the integer units that every party's filter counts in.

use crate::sampler::error::SamplerError;
use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_common::query::PartyMetadata;
use conclave_common::query::QueryTerms;
use conclave_privacy::accounting::{Honest, PrivacyFilter, PrivacyUnit, mu_squared, units_under_noise};
use conclave_privacy::mechanism::{NoiseScale, QueryKind, STEP, Sensitivity};
use conclave_privacy::pass::GRADIENT_SCALE;

/// What is left of a job's cap at each party, in units of 2^-48 of mu^2.
#[derive(Debug, Clone)]
pub(crate) struct Allotment {
    parties: Vec<(PrivacyUnit, u64)>,
    /// Of the least of the parties' caps at the start.
    whole: u64,
    /// What one vector or remainder may cost.
    most: u64,
    honest: Honest,
}

impl Allotment {
    /// The job's cap at every party, untouched.
    pub(crate) fn new(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Self, SamplerError> {
        let cap = |party: &PartyMetadata| {
            let filter = PrivacyFilter::new(&spec.privacy.budget.of(party.unit()))?;
            Ok::<_, SamplerError>((party.unit(), filter.limit_units()))
        };
        let parties = parties.iter().map(cap).collect::<Result<Vec<_>, _>>()?;
        let whole = parties.iter().map(|(_, units)| *units).min().unwrap_or(0);
        Ok(Self { parties, whole, most: units_under_noise(spec.privacy.noise_multiplier), honest: spec.honest() })
    }

    /// The share of the cap that is left at the party that has least left.
    pub(crate) fn left(&self) -> f64 {
        self.parties.iter().map(|(_, units)| *units).min().unwrap_or(0) as f64 / self.whole.max(1) as f64
    }

    /// Takes a share of the whole off every party, as an allotment of its own.
    pub(crate) fn split_off(&mut self, share: f64) -> Self {
        let parties = self.parties.clone();
        let mut part = Self { parties, whole: (share * self.whole as f64) as u64, ..*self };
        for ((_, left), (_, taken)) in self.parties.iter_mut().zip(&mut part.parties) {
            *taken = ((share * *taken as f64) as u64).min(*left);
            *left -= *taken;
        }
        part
    }

    /// The share of the least cap that a query comes to at the party where it costs most, where one record contributes so much.
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

    /// The share of the least cap that so many units come to.
    pub(crate) fn share_of_units(&self, units: u64) -> f64 {
        units as f64 / self.whole.max(1) as f64
    }

    /// Whether a share of the least cap is no more than one vector may cost ([`conclave_common::job::PrivacySpec::noise_multiplier`]).
    pub(crate) fn admits(&self, share: f64) -> bool {
        share * self.whole as f64 <= self.most as f64
    }

    /// What one query of this kind may cost of so much.
    fn within(&self, kind: QueryKind, units: u64) -> u64 {
        if kind.has_minimum_noise() { units } else { units.min(self.most) }
    }

    /// Takes the price of a query off every party; false, and nothing taken, where one of them does not hold it.
    ///
    /// # Errors
    /// As [`Allotment::share_of`].
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

    /// What a query at these points comes to at every party, in the party's units, under this noise.
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

    /// The share of the least cap that a query at these points comes to under this noise, at the party where it costs most.
    ///
    /// # Errors
    /// A query without a price.
    pub(crate) fn price(
        &self,
        spec: &JobSpec,
        model: &dyn Model,
        asked: (QueryKind, NoiseScale),
        points: (&[f64], &[f64]),
    ) -> Result<f64, SamplerError> {
        let most = self.prices((spec, model), asked, points)?.into_iter().max().unwrap_or(0);
        Ok(most as f64 / self.whole.max(1) as f64)
    }

    /// Takes the price of a query at these points off every party; false, and nothing taken, where one of them does not hold it.
    ///
    /// # Errors
    /// A query without a price.
    pub(crate) fn pay(
        &mut self,
        spec: &JobSpec,
        model: &dyn Model,
        asked: (QueryKind, NoiseScale),
        points: (&[f64], &[f64]),
    ) -> Result<bool, SamplerError> {
        let prices = self.prices((spec, model), asked, points)?;
        let left =
            self.parties.iter().zip(prices).map(|((_, left), price)| left.checked_sub(price)).collect::<Option<Vec<u64>>>();
        let Some(left) = left else { return Ok(false) };
        self.parties.iter_mut().zip(left).for_each(|((_, before), left)| *before = left);
        Ok(true)
    }

    /// The sensitivity over one party's noise at which a query costs so much.
    fn mu(&self, units: u64) -> f64 {
        (mu_squared(units) * f64::from(self.honest.get())).sqrt()
    }

    /// The standard deviation that one component of a query's noise would have at a party, in units of a product of two
    /// numbers of magnitude 1, were the whole cap spent on it.
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

    /// The standard deviation, over all parties, that one component of a gradient's noise would have, in units of what a record
    /// contributes at most, were the whole cap spent on it.
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

    /// Takes a share of the whole off for one query, or all that is left or one may cost where that is less, and gives the
    /// least noise at which no party is charged more than that.
    ///
    /// # Errors
    /// [`SamplerError::TooSmallABudget`] where even the greatest noise costs more.
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
            // Noise at which the charge, before it is rounded up, is what there is.
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

/// The least noise scale from about `scale` on that costs no party more than it has for it.
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
        // A step more than rounding needs; where the least charge of a draw is too much, the end of scales is soon met.
        multiple += 1 + multiple / 4096;
    }
}

#[cfg(test)]
#[path = "tests/allotment.rs"]
mod tests;
