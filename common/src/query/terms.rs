//! The terms of a query: the public constants that price it at one party and define its sum.

use conclave_privacy::mechanism::{NoiseScale, QueryKind, Sensitivity};
use conclave_privacy::pass::StatisticGrid;

/// The largest distance of a release from its sum, in noise scales. A discrete Gaussian exceeds it less than once in e^2000
/// draws.
const NOISE_SCALES: u128 = 64;
/// An upper limit of every lattice sum; see [`conclave_privacy::mechanism::sum_fits`].
const SUMS_BELOW: u128 = 1 << 62;

/// The public constants of one query at one party. Both sides compute them with this code.
///
/// For a ratio over all units, `sensitivity`, `clamp`, `greatest` and `summed` are the same number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueryTerms {
    pub(super) kind: QueryKind,
    pub(super) sensitivity: Sensitivity,
    /// The clamp on one unit's log ratio, for a kind that sums the ratios or a function of them; for other kinds, the sensitivity.
    pub(super) clamp: Sensitivity,
    pub(super) centre: f64,
    /// The lattice of a statistic.
    pub(super) grid: Option<StatisticGrid>,
    /// The size of the admissible set: the bound of a trace, or the number of tables; 0 for others.
    pub(super) size: u64,
    /// The largest magnitude of a component of one unit's contribution, in lattice units.
    pub(super) greatest: u64,
    /// The largest magnitude that is summed on the way; at least `greatest`.
    pub(super) summed: u64,
}

impl QueryTerms {
    /// The terms of a kind whose sensitivity is also the largest contribution of a unit.
    pub(super) fn of(kind: QueryKind, sensitivity: Sensitivity) -> Self {
        let greatest = sensitivity.units();
        Self { kind, sensitivity, clamp: sensitivity, centre: 0.0, grid: None, size: 0, greatest, summed: greatest }
    }

    /// Returns whether the sum over `units` units of privacy fits a lattice sum. Both are public.
    #[must_use]
    pub fn sum_fits(&self, units: u64) -> bool {
        u128::from(units) * u128::from(self.summed) < SUMS_BELOW
    }

    /// Returns the largest possible magnitude of a release, in lattice units, at a party of `units` units of privacy. If their
    /// number is not public, assumes the largest that a lattice sum permits. A larger release violates the protocol.
    #[must_use]
    pub fn greatest_release(&self, units: Option<u64>, noise: NoiseScale) -> u64 {
        Self::greatest_sum([(*self, units)], noise)
    }

    /// Returns the largest possible magnitude of the sum of all parties' releases, their noise included. Each party is given by
    /// its terms and its number of units, as in [`Self::greatest_release`].
    #[must_use]
    pub fn greatest_sum(parties: impl IntoIterator<Item = (Self, Option<u64>)>, noise: NoiseScale) -> u64 {
        let (mut sum, mut count) = (0_u128, 0_u128);
        for (terms, units) in parties {
            if let Some(candidates) = terms.kind.candidates() {
                // The release is the number of a candidate.
                return u64::from(candidates) - 1;
            }
            (sum, count) = (sum + terms.greatest_part(units), count + 1);
        }
        // The noise of n parties has a scale of sqrt n times one party's, rounded up here. No sum over 2^64 parties overflows.
        let scales = count.isqrt() + u128::from(count.isqrt().pow(2) < count);
        u64::try_from(sum + NOISE_SCALES * scales * u128::from(noise.units())).unwrap_or(u64::MAX)
    }

    /// Returns the largest magnitude of one party's sum without noise, at most 2^62.
    fn greatest_part(&self, units: Option<u64>) -> u128 {
        units.map_or(SUMS_BELOW, |units| (u128::from(units) * u128::from(self.greatest)).min(SUMS_BELOW))
    }

    /// Returns the number of integers in the answer; see [`QueryKind::length`].
    #[must_use]
    pub fn length(&self) -> usize {
        self.kind.length()
    }

    /// Returns whether this sensitivity is the query's.
    pub(super) fn is_charged(&self, charged: Sensitivity) -> bool {
        self.sensitivity == charged
    }

    /// Returns the kind of the query.
    #[must_use]
    pub fn kind(&self) -> QueryKind {
        self.kind
    }

    /// Returns the sensitivity by which the query is charged; see [`PrivacyUnit::charge_of_kind`].
    #[must_use]
    pub fn sensitivity(&self) -> Sensitivity {
        self.sensitivity
    }

    /// Returns the constant subtracted from each record's log ratio; see [`super::Contribution`].
    #[must_use]
    pub fn centre(&self) -> f64 {
        self.centre
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::job::{Algorithm, JobSpec};
    use crate::model::Summand;
    use crate::query::QueryError;
    use conclave_privacy::accounting::PrivacyUnit;
    use conclave_privacy::pass::{ModelData, Persons, Summed};

    fn spec(clip: &str) -> JobSpec {
        JobSpec::parse(&format!(
            "name = \"t\"\nparties = [\"a\"]\n[model]\nkind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 1.0\n[columns]\n\
             y = {{ min = -10, max = 10 }}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n{clip}"
        ))
        .unwrap()
    }

    #[test]
    fn a_query_must_belong_to_the_job() {
        let (auto, clipped) = (spec(""), spec("clip = 0.5"));
        let model = auto.build_model();
        let ask = |spec: &JobSpec, kind, from: &[f64], to: &[f64]| {
            QueryTerms::new(model.as_ref(), spec, PrivacyUnit::default(), kind, (from, to))
        };
        let statistic = QueryKind::Statistic { component: 0 };
        assert!(ask(&auto, QueryKind::Ratio, &[0.0], &[0.1]).is_ok());
        assert_eq!(ask(&auto, QueryKind::Ratio, &[], &[]), Err(QueryError::Points));
        assert_eq!(ask(&auto, QueryKind::ClipCount, &[0.0], &[0.1]), Err(QueryError::NoClip));
        assert_eq!(ask(&auto, statistic, &[], &[]), Err(QueryError::Kind(statistic)));
        let count = ask(&clipped, QueryKind::ClipCount, &[0.0], &[0.1]).unwrap();
        let ratio = ask(&clipped, QueryKind::Ratio, &[0.0], &[0.1]).unwrap();
        assert_eq!((count.sensitivity.units(), count.clamp, count.centre), (1 << 20, ratio.sensitivity, ratio.centre));
    }

    #[test]
    fn releases_have_a_greatest_magnitude() {
        let (spec, noise) = (spec("clip = 0.5"), NoiseScale::from_units(1 << 20).unwrap());
        let model = spec.build_model();
        let ask = |kind| {
            let terms = QueryTerms::new(model.as_ref(), &spec, PrivacyUnit::default(), kind, (&[0.0], &[0.3])).unwrap();
            [Some(0), Some(1000), Some(u64::MAX), None].map(|units| terms.greatest_release(units, noise))
        };
        let (beyond, whole) = (64 << 20, (1 << 62) + (64 << 20));
        assert_eq!(ask(QueryKind::Ratio), [beyond, 1000 * (1 << 31) + beyond, whole, whole]);
        assert_eq!(ask(QueryKind::ClipCount), [beyond, 1000 * (1 << 20) + beyond, whole, whole]);
        // Of several parties' sum: all their units, and the noise of five as three parties' at most.
        let terms = QueryTerms::new(model.as_ref(), &spec, PrivacyUnit::default(), QueryKind::Ratio, (&[0.0], &[0.3])).unwrap();
        let sum = |units: &[u64]| QueryTerms::greatest_sum(units.iter().map(|units| (terms, Some(*units))), noise);
        assert_eq!(sum(&[1, 2, 3, 4]), 10 * (1 << 31) + 2 * beyond);
        assert_eq!(sum(&[1, 2, 3, 4, 5]), 15 * (1 << 31) + 3 * beyond);
        assert_eq!(sum(&[]), 0);
    }

    /// The count against the ratios of single records: a record is clipped when its own contribution is the clamp.
    #[test]
    fn counts_are_of_the_units_that_the_clamp_cuts() {
        let spec = spec("clip = 0.5");
        let model = spec.build_model();
        let outcome: Vec<f64> = (0..2000).map(|i| f64::from(i) / 1000.0 - 1.0).chain([f64::NAN]).collect();
        let count = |data: &ModelData, from: f64, to: f64| {
            let (from, to) = ([from], [to]);
            let terms =
                QueryTerms::new(model.as_ref(), &spec, PrivacyUnit::default(), QueryKind::ClipCount, (&from, &to)).unwrap();
            let Ok(Summand::Step(step)) = terms.summand(&from, &to, terms.sensitivity()) else { panic!("no step") };
            assert_eq!((step.clamp, step.centre, step.of), (terms.clamp, terms.centre, Summed::Clipped));
            model.lattice_sums(data, &[step]).remove(0).open_for_test()
        };
        let expected = |from: f64, to: f64| {
            let (points, kind) = (([from], [to]), QueryKind::ClipCount);
            let terms = QueryTerms::new(model.as_ref(), &spec, PrivacyUnit::default(), kind, (&points.0, &points.1)).unwrap();
            let ratio = |y: f64| -50.0 * ((y - to).powi(2) - (y - from).powi(2)) - terms.centre;
            // What is not a number adds nothing, and is not clipped either.
            outcome.iter().filter(|y| ratio(**y).abs() > 0.5).count() as i64
        };
        let rows = ModelData { outcome: outcome.clone(), ..ModelData::default() };
        for (from, to) in [(0.0, 0.0001), (0.0, 0.0101), (0.3, -0.2003), (0.0, 0.0081)] {
            let (found, expected) = (count(&rows, from, to), expected(from, to));
            assert_eq!((found % (1 << 20), found >> 20), (0, expected), "{from} to {to}");
            assert_eq!(found, count(&rows, to, from));
        }
        // Persons of three records each: one counts once.
        let ends = (1..=667).map(|p| p * 3).collect();
        let persons = ModelData { persons: Persons::new(ends, 3), ..rows };
        let all = count(&persons, 0.3, -0.2) >> 20;
        assert!(all <= 667 && all * 3 >= expected(0.3, -0.2) && all > 600, "{all}");
    }

    /// Whatever the terms say, a unit contributes no more to a ratio than was charged; other kinds have no sum under another
    /// charge.
    #[test]
    fn what_clamps_is_what_was_charged() {
        let (clipped, points) = (spec("clip = 0.5"), ([0.0], [0.3]));
        let statistics = JobSpec { algorithm: Algorithm::PenaltyExpFamily, ..spec("") };
        let model = clipped.build_model();
        let ask = |spec: &JobSpec, kind, (from, to): (&[f64], &[f64])| {
            QueryTerms::new(model.as_ref(), spec, PrivacyUnit::default(), kind, (from, to)).unwrap()
        };
        let step = (points.0.as_slice(), points.1.as_slice());
        let ratio = ask(&clipped, QueryKind::Ratio, step);
        let far = ModelData { outcome: vec![1e9], ..ModelData::default() };
        let sum = |summand| crate::model::sums(model.as_ref(), &far, &[summand]).remove(0).open_for_test();
        for charged in [1, 1000, ratio.sensitivity.units(), 2 * ratio.sensitivity.units()] {
            let summand = ratio.summand(step.0, step.1, Sensitivity::from_units(charged).unwrap()).unwrap();
            assert_eq!(sum(summand), charged as i64, "the outcome is far beyond any clamp");
        }
        let count = ask(&clipped, QueryKind::ClipCount, step);
        let statistic = ask(&statistics, QueryKind::Statistic { component: 0 }, (&[], &[]));
        for terms in [count, statistic] {
            let (from, to) = if terms.kind == QueryKind::ClipCount { step } else { (&[][..], &[][..]) };
            assert!(terms.summand(from, to, terms.sensitivity).is_ok());
            for other in [1, terms.sensitivity.units() - 1, terms.sensitivity.units() + 1] {
                let summand = terms.summand(from, to, Sensitivity::from_units(other).unwrap());
                assert!(matches!(summand, Err(QueryError::Charged)), "{other}");
            }
        }
    }
}
