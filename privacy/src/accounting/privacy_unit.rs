//! The privacy unit that a guarantee protects, one row or one person, and the price of a release for it.

use std::fmt;

use super::adjacency::Adjacency;
use super::bounded_range;
use super::charge::{LEAST_CHARGE_UNITS, charge_of};
use super::error::AccountingError;
use super::honest::Honest;
use crate::mechanism::{MechanismError, NoiseScale, QueryKind, Sensitivity};

/// The largest permitted number of records per person.
pub const MAX_RECORDS_PER_PERSON: u32 = 1 << 16;

/// The unit that one party's guarantee protects. It is public, since it prices every query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PrivacyUnit {
    /// Which data sets are neighbours.
    pub adjacency: Adjacency,
    /// The largest number of records per person; 0 where the unit is a row. See [`PrivacyUnit::person`].
    records_per_person: u32,
}

impl PrivacyUnit {
    /// Creates the unit of one row.
    #[must_use]
    pub fn row(adjacency: Adjacency) -> Self {
        Self { adjacency, records_per_person: 0 }
    }

    /// Creates the unit of one person with at most `records` records, from 1 to [`MAX_RECORDS_PER_PERSON`]; `None` outside.
    #[must_use]
    pub fn person(adjacency: Adjacency, records: u32) -> Option<Self> {
        (1..=MAX_RECORDS_PER_PERSON).contains(&records).then_some(Self { adjacency, records_per_person: records })
    }

    /// Returns the largest number of records per person, if persons are protected.
    #[must_use]
    pub fn records_per_person(self) -> Option<u32> {
        (self.records_per_person > 0).then_some(self.records_per_person)
    }

    /// Returns the largest contribution of one unit to a lattice sum, where one record contributes at most `per_record`: by the
    /// triangle inequality, `per_record` times the number of its records.
    ///
    /// Proof: `docs/explanation/proofs.md`, section 1.
    ///
    /// # Errors
    /// [`MechanismError::TooWide`] beyond 2^50 lattice units.
    pub fn sensitivity(self, per_record: Sensitivity) -> Result<Sensitivity, MechanismError> {
        Sensitivity::from_units(per_record.units().saturating_mul(u64::from(self.records_per_person.max(1))))
    }

    /// Returns the charge of a ratio protected by its own party's noise only, in units of 2^-48 of mu^2, rounded up. `k_t`
    /// bounds one unit's contribution; see [`PrivacyUnit::sensitivity`].
    ///
    /// # Errors
    /// [`AccountingError::ChargeOverflow`] when it exceeds 64 bits.
    #[cfg(any(test, feature = "test-util"))]
    pub fn charge_units(self, k_t: Sensitivity, s: NoiseScale) -> Result<u64, AccountingError> {
        charge_of(self.adjacency.factor(), 1, k_t, (s, Honest::ALONE))
    }

    /// Returns the charge of a release of any kind, in units of 2^-48 of mu^2, rounded up. Each party adds noise of scale `s`, and
    /// the noise of `honest` parties protects the opened value.
    ///
    /// For a ratio, a remainder and a gradient, `sensitivity` bounds one unit's contribution, which counts twice under
    /// replacement. For a choice, it bounds one unit's contribution to each candidate's log weight;
    /// [`PrivacyUnit::range_of_choice`] prices it. For every other kind, it already bounds the distance between the sums of
    /// neighbours.
    ///
    /// # Errors
    /// [`AccountingError::ChargeOverflow`] when it exceeds 64 bits. [`AccountingError::Choice`] for a choice at another noise
    /// scale than [`NoiseScale::OF_A_CHOICE`], or with several honest parties.
    pub fn charge_of_kind(
        self,
        kind: QueryKind,
        sensitivity: Sensitivity,
        noise: (NoiseScale, Honest),
    ) -> Result<u64, AccountingError> {
        self.charge_of_release(kind, u32::try_from(kind.length()).unwrap_or(u32::MAX), sensitivity, noise)
    }

    /// Returns the charge of a release of `components` integers; see [`PrivacyUnit::charge_of_kind`]. `sensitivity` bounds the
    /// whole vector in L2.
    ///
    /// # Errors
    /// [`AccountingError::ChargeOverflow`] when it exceeds 64 bits. [`AccountingError::Choice`] for a choice at another noise
    /// scale than [`NoiseScale::OF_A_CHOICE`], or with several honest parties.
    pub fn charge_of_release(
        self,
        kind: QueryKind,
        components: u32,
        sensitivity: Sensitivity,
        noise: (NoiseScale, Honest),
    ) -> Result<u64, AccountingError> {
        if kind.candidates().is_some() {
            return self.charge_of_choice(sensitivity, noise);
        }
        charge_of(kind.moves(self.adjacency.factor()), components, sensitivity, noise)
    }

    /// Returns the range of a choice's log probabilities between neighbours, in log-likelihood units.
    ///
    /// `sensitivity` bounds one unit's contribution to each candidate's log weight. Each weight moves by a contribution of either
    /// sign, once under add-remove and twice under replacement.
    #[must_use]
    pub fn range_of_choice(self, sensitivity: Sensitivity) -> f64 {
        2.0 * self.adjacency.factor() as f64 * sensitivity.log_units()
    }

    /// Returns the charge of a choice, see [`bounded_range`], and at least the price of a noise draw.
    ///
    /// # Errors
    /// [`AccountingError::Choice`] for any noise scale except [`NoiseScale::OF_A_CHOICE`], or for more than one honest party.
    /// [`AccountingError::ChargeOverflow`] when the charge exceeds 64 bits.
    fn charge_of_choice(self, sensitivity: Sensitivity, (s, honest): (NoiseScale, Honest)) -> Result<u64, AccountingError> {
        if s != NoiseScale::OF_A_CHOICE || honest != Honest::ALONE {
            return Err(AccountingError::Choice { scale: NoiseScale::OF_A_CHOICE.units() });
        }
        let overflow = AccountingError::ChargeOverflow { sensitivity: sensitivity.units(), noise: s.units() };
        bounded_range::units(self.range_of_choice(sensitivity)).map(|units| units.max(LEAST_CHARGE_UNITS)).ok_or(overflow)
    }

    /// Returns the distance that a sum of clamped records moves between neighbours, in multiples of one record's largest
    /// contribution.
    #[must_use]
    pub fn factor(self) -> u64 {
        self.adjacency.factor() * u64::from(self.records_per_person.max(1))
    }
}

/// Writes the unit as a ledger stores it: `row, replace` or `person of at most 5 records, add-remove`.
impl fmt::Display for PrivacyUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.records_per_person {
            0 => write!(f, "row, {}", self.adjacency.as_str()),
            k => write!(f, "person of at most {k} records, {}", self.adjacency.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn units_say_what_they_protect() {
        assert_eq!(PrivacyUnit::default().to_string(), "row, replace");
        let person = PrivacyUnit::person(Adjacency::AddRemove, 5).unwrap();
        assert_eq!(person.to_string(), "person of at most 5 records, add-remove");
        assert_eq!((person.records_per_person(), PrivacyUnit::default().records_per_person()), (Some(5), None));
        assert!(PrivacyUnit::person(Adjacency::Replace, 0).is_none());
        assert!(PrivacyUnit::person(Adjacency::Replace, MAX_RECORDS_PER_PERSON + 1).is_none());
    }

    /// Returns the price of the draw itself.
    fn least(s: NoiseScale) -> u64 {
        crate::accounting::LEAST_CHARGE_UNITS.max(crate::accounting::slack::price(s, Honest::ALONE))
    }

    proptest! {
        #[test]
        fn a_charge_is_its_sensitivity_over_its_noise_squared(k in 1_u64..1 << 34, j in 16_u64..1 << 30, persons in 1_u32..40) {
            let (k_t, s) = (Sensitivity::from_units(k).unwrap(), NoiseScale::from_units(j << 16).unwrap());
            for adjacency in [Adjacency::Replace, Adjacency::AddRemove] {
                let unit = PrivacyUnit::person(adjacency, persons).unwrap();
                let wide = unit.sensitivity(k_t).unwrap();
                prop_assert_eq!(wide.units(), k * u64::from(persons));
                // Against exact rational arithmetic: charge = ceil(delta^2 2^48 / s^2), delta = factor * K.
                let delta = u128::from(adjacency.factor()) * u128::from(wide.units());
                let Ok(charge) = unit.charge_units(wide, s) else { continue };
                let (charge, j) = (u128::from(charge), u128::from(j));
                let needed = delta.checked_mul(delta).and_then(|d| d.checked_mul(1 << 16));
                if let (Some(needed), Some(paid)) = (needed, charge.checked_mul(j * j)) {
                    prop_assert!(paid >= needed);
                    prop_assert!(paid - needed < j * j || charge == u128::from(least(s)));
                }
            }
        }

        #[test]
        fn a_kind_decides_what_moves(k in 1_u64..1 << 30, j in 16_u64..1 << 30, persons in 1_u32..40) {
            let (k_t, s) = (Sensitivity::from_units(k).unwrap(), NoiseScale::from_units(j << 16).unwrap());
            let doubled = Sensitivity::from_units(2 * k).unwrap();
            for adjacency in [Adjacency::Replace, Adjacency::AddRemove] {
                let unit = PrivacyUnit::person(adjacency, persons).unwrap();
                prop_assert_eq!(unit.charge_of_kind(QueryKind::Ratio, k_t, (s, Honest::ALONE)), unit.charge_units(k_t, s));
                for kind in [QueryKind::ClipCount, QueryKind::Statistic { component: 1 }] {
                    let noise = (s, Honest::ALONE);
                    let (once, twice) = (unit.charge_of_kind(kind, k_t, noise), unit.charge_of_kind(kind, doubled, noise));
                    prop_assert_eq!(once, PrivacyUnit::row(Adjacency::AddRemove).charge_units(k_t, s));
                    prop_assert_eq!(twice, PrivacyUnit::row(Adjacency::Replace).charge_units(k_t, s));
                }
            }
        }

        /// The components of a vector share one charge; each has its own draw and slack.
        #[test]
        fn a_vectors_cost_is_one_charge_and_a_draw_for_each_component(k in 1_u64..1 << 30, j in 16_u64..1 << 30, d in 2_u32..5_000) {
            let (k_t, s) = (Sensitivity::from_units(k).unwrap(), NoiseScale::from_units(j << 16).unwrap());
            let one = crate::accounting::Priced::new(QueryKind::Ratio, k_t, s, Honest::ALONE);
            let unit = PrivacyUnit::default();
            let (single, vector) = (one.cost(unit).unwrap(), one.of_components_for_test(d).cost(unit).unwrap());
            prop_assert_eq!((single.draws, single.slack_units), (1, crate::accounting::slack_units_of_draw(s, Honest::ALONE)));
            prop_assert_eq!((vector.draws, vector.slack_units), (u64::from(d), u64::from(d) * single.slack_units));
            // Neither draws nor slack run out before the budget.
            prop_assert_eq!(single.units, unit.charge_units(k_t, s).unwrap());
            prop_assert_eq!(vector.units, single.units.max(u64::from(d) * least(s)));
        }

        /// A choice is priced by its range: 4 K g under replacement, 2 K g under add-remove.
        #[test]
        fn a_choice_costs_what_its_range_does(k in 1_u64..1 << 36, persons in 1_u32..40) {
            let (k_t, kind) = (Sensitivity::from_units(k).unwrap(), QueryKind::Choice { candidates: 7 });
            let noise = (NoiseScale::OF_A_CHOICE, Honest::ALONE);
            for adjacency in [Adjacency::Replace, Adjacency::AddRemove] {
                let unit = PrivacyUnit::person(adjacency, persons).unwrap();
                let wide = unit.sensitivity(k_t).unwrap();
                let range = 2.0 * adjacency.factor() as f64 * k_t.log_units() * f64::from(persons);
                prop_assert_eq!(unit.range_of_choice(wide), range);
                let cost = crate::accounting::Priced::new(kind, wide, noise.0, noise.1).cost(unit).unwrap();
                let mu = bounded_range::mu(range);
                let exact = mu * mu * (1_u64 << 48) as f64;
                prop_assert!(cost.units as f64 >= exact * (1.0 - 1e-15) && cost.units >= LEAST_CHARGE_UNITS);
                prop_assert!((cost.units as f64) < exact * (1.0 + 1e-10) + 1.0 || cost.units == LEAST_CHARGE_UNITS);
                prop_assert_eq!((cost.slack_units, cost.draws), (1, 1));
                // Under any other noise scale, and with a second honest party, it has no price.
                let others = (NoiseScale::from_units(1 << 40).unwrap(), Honest::ALONE);
                prop_assert!(unit.charge_of_kind(kind, wide, others).is_err());
                prop_assert!(unit.charge_of_kind(kind, wide, (noise.0, Honest::new(2).unwrap())).is_err());
            }
        }

        #[test]
        fn removing_costs_a_quarter_of_replacing(k in 1_u64..1 << 40, j in 16_u64..1 << 30) {
            let (k_t, s) = (Sensitivity::from_units(k).unwrap(), NoiseScale::from_units(j << 16).unwrap());
            let price = |adjacency| PrivacyUnit::row(adjacency).charge_units(k_t, s);
            if let (Ok(replace), Ok(remove)) = (price(Adjacency::Replace), price(Adjacency::AddRemove)) {
                prop_assert!(remove <= replace && 4 * u128::from(remove) >= u128::from(replace));
                prop_assert!(4 * u128::from(remove) < u128::from(replace) + 4 || remove == least(s));
                prop_assert_eq!(replace, crate::accounting::charge_units(k_t, s).unwrap());
            }
        }
    }
}
