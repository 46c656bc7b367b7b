//! The terms of a query: the public constants that price it at one party and define its sum.

use super::candidates::Candidates;
use super::contribution::{contribution, record_bound, sampled_contribution};
use super::error::QueryError;
use super::vector;
use crate::job::{Algorithm, JobSpec};
use crate::model::{Model, Summand};
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::{NoiseScale, Points, QueryKind, Sensitivity, sum_fits};
use conclave_privacy::pass::{StatisticGrid, Step, Summed};

/// The largest distance of a release from its sum, in noise scales. A discrete Gaussian exceeds it less than once in e^2000
/// draws.
const NOISE_SCALES: u128 = 64;
/// An upper limit of every lattice sum; see [`sum_fits`].
const SUMS_BELOW: u128 = 1 << 62;

/// The public constants of one query at one party. Both sides compute them with this code.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueryTerms {
    kind: QueryKind,
    sensitivity: Sensitivity,
    /// The clamp on one unit's contribution to a ratio; for a statistic, the sensitivity.
    clamp: Sensitivity,
    centre: f64,
    grid: Option<StatisticGrid>,
    /// For moments and curvature: the largest magnitude of a component of one unit's contribution, in lattice units.
    greatest: Option<u64>,
    /// The size of a vector's admissible set; see [`vector::Price::size`].
    size: u64,
}

impl QueryTerms {
    /// Computes the terms of a query of this kind for the step `from` to `to`, at a party that protects `unit`. A statistic has
    /// no step.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn new(
        model: &dyn Model,
        spec: &JobSpec,
        unit: PrivacyUnit,
        kind: QueryKind,
        (from, to): (&[f64], &[f64]),
    ) -> Result<Self, QueryError> {
        if !spec.asks(kind) {
            return Err(QueryError::Kind(kind));
        }
        if let QueryKind::Choice { candidates } = kind {
            let candidates = Candidates::new(candidates, from, to).ok_or(QueryError::Vector(kind))?;
            let sensitivity = candidates.sensitivity(model, spec, unit)?;
            return Ok(Self::held(kind, sensitivity));
        }
        if kind.points() != Points::Two && !matches!(kind, QueryKind::Statistic { .. }) {
            // A job that releases once may query only what its owner was shown.
            let of_table = matches!(kind, QueryKind::Table { .. });
            if spec.algorithm == Algorithm::NoisyStatistics && of_table != spec.outcome_table(model).is_some() {
                return Err(QueryError::Kind(kind));
            }
            let price = vector::price(model, unit, kind, (from, to))?;
            let vector::Price { sensitivity, greatest, size } = price.ok_or(QueryError::Vector(kind))?;
            return Ok(Self { greatest: Some(greatest), size, ..Self::held(kind, sensitivity) });
        }
        if let QueryKind::Statistic { component } = kind {
            // A `noisy-statistics` job that uses scores may query nothing else, since the owner was shown only scores.
            if spec.algorithm == Algorithm::NoisyStatistics && model.scores().is_some() {
                return Err(QueryError::Kind(kind));
            }
            if !(from.is_empty() && to.is_empty()) {
                return Err(QueryError::Points);
            }
            if unit != PrivacyUnit::row(Adjacency::Replace) {
                return Err(QueryError::Unit(unit));
            }
            let family = model.exponential_family().ok_or(QueryError::Kind(kind))?;
            let range = family.ranges().get(component as usize).copied().ok_or(QueryError::Component(component))?;
            let grid = StatisticGrid::new(range)?;
            return Ok(Self { grid: Some(grid), ..Self::held(kind, grid.sensitivity()) });
        }
        if from.is_empty() || to.is_empty() {
            return Err(QueryError::Points);
        }
        if kind == QueryKind::SampledRatio {
            let part = sampled_contribution(model, &spec.privacy, unit, from, to)?;
            let [clamp, sensitivity] = part.ok_or(QueryError::NoSampleClip)?;
            return Ok(Self { clamp, ..Self::held(kind, sensitivity) });
        }
        if kind == QueryKind::SecondMoment {
            let clamp = unit.sensitivity(record_bound(model, &spec.privacy, from, to)?)?;
            // Squares lie between 0 and their largest value, so one unit moves their sum by at most that, under either adjacency.
            return Ok(Self { clamp, ..Self::held(kind, Sensitivity::from_units(QueryKind::SQUARE_UNITS)?) });
        }
        let part = contribution(model, &spec.privacy, unit, from, to)?;
        let sensitivity = match kind {
            QueryKind::ClipCount if spec.privacy.clip.is_none() => return Err(QueryError::NoClip),
            QueryKind::ClipCount => Sensitivity::from_units(QueryKind::COUNT_UNIT)?,
            _ => part.sensitivity,
        };
        Ok(Self { clamp: part.sensitivity, centre: part.centre, ..Self::held(kind, sensitivity) })
    }

    /// The terms of a kind whose sensitivity bounds a unit's contribution.
    fn held(kind: QueryKind, sensitivity: Sensitivity) -> Self {
        Self { kind, sensitivity, clamp: sensitivity, centre: 0.0, grid: None, greatest: None, size: 0 }
    }

    /// Returns whether the sum over `units` units of privacy fits a lattice sum. Both are public.
    #[must_use]
    pub fn sum_fits(&self, units: u64) -> bool {
        let unvectored = || sum_fits(units, self.sensitivity) && sum_fits(units, self.clamp);
        match (self.grid, self.greatest) {
            (Some(grid), _) => grid.sum_fits(units),
            (None, Some(greatest)) => u128::from(units) * u128::from(greatest) < SUMS_BELOW,
            (None, None) => unvectored(),
        }
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
            if let QueryKind::Choice { candidates } = terms.kind {
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
        let per_unit = match (self.grid, self.greatest, self.kind) {
            (Some(grid), ..) => grid.limits.0.unsigned_abs().max(grid.limits.1.unsigned_abs()),
            (None, Some(greatest), _) => greatest,
            (None, None, QueryKind::ClipCount | QueryKind::SecondMoment) => self.sensitivity.units(),
            (None, None, _) => self.clamp.units(),
        };
        units.map_or(SUMS_BELOW, |units| (u128::from(units) * u128::from(per_unit)).min(SUMS_BELOW))
    }

    /// Returns the number of integers in the answer; see [`QueryKind::length`].
    #[must_use]
    pub fn length(&self) -> usize {
        self.kind.length()
    }

    /// Returns the sum that the query requests over the units of a shard, for the step `from` to `to`, with its clamp. It holds
    /// for every kind.
    ///
    /// The clamp is the charged sensitivity, so no fault in these terms lets a unit contribute more than was charged. A ratio is
    /// clamped at `charged`; over a sample, also at the step's own bound. The lattice of a statistic and a clip count have fixed
    /// sensitivities, which must equal the charged one. A clip count counts the units that the ratio's clamp cuts.
    ///
    /// # Errors
    /// [`QueryError::Charged`].
    pub fn summand<'a>(&self, from: &'a [f64], to: &'a [f64], charged: Sensitivity) -> Result<Summand<'a>, QueryError> {
        let step = |clamp| Step { centre: self.centre, ..Step::new(from, to, clamp) };
        match (self.kind, self.grid) {
            (QueryKind::Ratio, None) => Ok(Summand::Step(step(charged))),
            (QueryKind::SampledRatio, None) => Ok(Summand::Step(step(self.clamp.min(charged)))),
            (QueryKind::ClipCount, None) if self.sensitivity == charged => {
                Ok(Summand::Step(Step { of: Summed::Clipped, ..step(self.clamp) }))
            }
            (QueryKind::SecondMoment, None) if self.sensitivity == charged => {
                Ok(Summand::Step(Step { of: Summed::Squares, ..step(self.clamp) }))
            }
            (QueryKind::Statistic { component }, Some(grid)) if grid.sensitivity() == charged => {
                Ok(Summand::Statistic { component: component as usize, grid })
            }
            // A choice has one step per candidate instead.
            (QueryKind::Choice { .. }, _) => Err(QueryError::Charged),
            (kind, None) if self.sensitivity == charged => {
                vector::summand(kind, (from, to), charged, self.size).ok_or(QueryError::Charged)
            }
            _ => Err(QueryError::Charged),
        }
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
    use conclave_privacy::pass::{ModelData, Persons};

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
