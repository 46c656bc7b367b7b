//! The candidates of a choice: their points, and the public part of each log weight.

use super::contribution::contribution;
use super::error::QueryError;
use crate::job::JobSpec;
use crate::model::Model;
use conclave_privacy::accounting::{Honest, PrivacyFilter, PrivacyUnit, units_under_noise};
use conclave_privacy::mechanism::{MAX_SENSITIVITY, NoiseScale, QueryKind, Sensitivity};
use conclave_privacy::pass::Step;

/// The candidates of a query, decoded from its numbers: theta_m of all candidates, one after the other, then one integer each,
/// the public part of the log weight in lattice units.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidates<'a> {
    from: &'a [f64],
    points: Vec<&'a [f64]>,
    public: Vec<i64>,
}

impl<'a> Candidates<'a> {
    /// The largest magnitude of the public part of a log weight, in lattice units. A float holds all integers up to it.
    pub const MOST_PUBLIC: f64 = 9_007_199_254_740_992.0;

    /// Decodes the candidates of a choice, from theta_0. Returns `None` if the numbers do not encode `candidates` candidates.
    #[must_use]
    pub fn new(candidates: u32, from: &'a [f64], numbers: &'a [f64]) -> Option<Self> {
        let (count, dimension) = (candidates as usize, from.len());
        if dimension == 0 || count == 0 || numbers.len() != count.checked_mul(dimension + 1)? {
            return None;
        }
        let (points, public) = numbers.split_at(count * dimension);
        let whole = |x: &f64| (x.fract() == 0.0 && x.abs() <= Self::MOST_PUBLIC).then_some(*x as i64);
        let public = public.iter().map(whole).collect::<Option<Vec<i64>>>()?;
        Some(Self { from, points: points.chunks_exact(dimension).collect(), public })
    }

    /// Encodes candidates as the numbers of a query; see [`Candidates::new`].
    #[must_use]
    pub fn numbers(points: &[Vec<f64>], public: &[f64]) -> Vec<f64> {
        points.iter().flatten().chain(public).copied().collect()
    }

    /// Returns the public part of each log weight, in lattice units.
    #[must_use]
    pub fn public(&self) -> &[i64] {
        &self.public
    }

    /// Returns the sensitivity by which a choice is charged: the largest contribution of one unit of privacy to any candidate's
    /// log weight.
    ///
    /// # Errors
    /// [`QueryError::Outside`] for a candidate outside the parameter box; otherwise as [`contribution`].
    pub(super) fn sensitivity(&self, model: &dyn Model, spec: &JobSpec, unit: PrivacyUnit) -> Result<Sensitivity, QueryError> {
        let most = self.widest(model, spec, unit)?;
        Ok(most_of_a_start(spec, unit).map_or(most, |limit| most.min(limit)))
    }

    /// Returns the power of the likelihood in the log weights: 1 where the choice is a draw of the job. For the draw at which chains
    /// start it is `min(1, limit / sensitivity)`, with which the draw costs no more than its share of the budget (Wang, Fienberg &
    /// Smola 2015, Algorithms 1 and 3).
    ///
    /// # Errors
    /// As [`Self::sensitivity`].
    pub fn power(&self, model: &dyn Model, spec: &JobSpec, unit: PrivacyUnit) -> Result<f64, QueryError> {
        let Some(limit) = most_of_a_start(spec, unit) else { return Ok(1.0) };
        Ok((limit.units() as f64 / self.widest(model, spec, unit)?.units() as f64).min(1.0))
    }

    /// Returns the largest contribution of one unit of privacy to any candidate's log weight at power 1. Errors: as
    /// [`Self::sensitivity`].
    fn widest(&self, model: &dyn Model, spec: &JobSpec, unit: PrivacyUnit) -> Result<Sensitivity, QueryError> {
        let mut most = Sensitivity::from_units(1)?;
        for to in &self.points {
            if !spec.in_support(to) {
                return Err(QueryError::Outside);
            }
            most = most.max(contribution(model, &spec.privacy, unit, self.from, to)?.sensitivity);
        }
        Ok(most)
    }

    /// Returns the steps from theta_0 to each candidate, at a party that protects `unit`. Their log ratios are the log weights. A
    /// unit's contribution is clamped to the step's own bound, and never exceeds the charged sensitivity.
    ///
    /// # Errors
    /// As [`contribution`].
    pub fn steps(
        &self,
        model: &dyn Model,
        spec: &JobSpec,
        unit: PrivacyUnit,
        charged: Sensitivity,
    ) -> Result<Vec<Step<'a>>, QueryError> {
        let power = self.power(model, spec, unit)?;
        let step = |to: &&'a [f64]| {
            let part = contribution(model, &spec.privacy, unit, self.from, to)?;
            let clamp = match power < 1.0 {
                true => Sensitivity::from_units(((power * part.sensitivity.units() as f64).ceil() as u64).max(1))?,
                false => part.sensitivity,
            };
            Ok(Step { centre: power * part.centre, power, ..Step::new(self.from, to, clamp.min(charged)) })
        };
        self.points.iter().map(step).collect()
    }
}

/// Returns the largest sensitivity whose charge is within the share of the budget for the draw at which a job's chains start; `None`
/// for a job whose choices are its draws, each at the price of its candidates. At least one lattice unit.
fn most_of_a_start(spec: &JobSpec, unit: PrivacyUnit) -> Option<Sensitivity> {
    let share = spec.start_share()?;
    let limit = PrivacyFilter::new(&spec.privacy.budget.of(unit)).map_or(0, |filter| filter.limit_units());
    let most = ((share * limit as f64) as u64).min(units_under_noise(spec.privacy.noise_multiplier));
    // A charge does not depend on the number of candidates.
    let (kind, noise) = (QueryKind::Choice { candidates: 2 }, (NoiseScale::OF_A_CHOICE, Honest::ALONE));
    let affordable = |sensitivity| unit.charge_of_kind(kind, sensitivity, noise).is_ok_and(|units| units <= most);
    let (mut under, mut over) = (1, MAX_SENSITIVITY);
    while over - under > 1 {
        let middle = under + (over - under) / 2;
        if Sensitivity::from_units(middle).is_ok_and(affordable) { under = middle } else { over = middle }
    }
    Sensitivity::from_units(under).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::query::QueryTerms;
    use conclave_privacy::accounting::Adjacency;
    use conclave_privacy::mechanism::QueryKind;

    fn spec(more: &str) -> JobSpec {
        JobSpec::parse(&format!(
            "name = \"t\"\nparties = [\"a\"]\nalgorithm = \"ops\"\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [\"x\"]\n\
             [columns]\ny = {{ binary = true }}\nx = {{ min = 0, max = 9 }}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n{more}"
        ))
        .unwrap()
    }

    #[test]
    fn numbers_are_places_and_whole_weights() {
        let from = [0.1, 0.2];
        let numbers = Candidates::numbers(&[vec![1.0, 2.0], vec![3.0, 4.0], vec![5.0, 6.0]], &[-1.0, 0.0, 9.0]);
        let candidates = Candidates::new(3, &from, &numbers).unwrap();
        assert_eq!((candidates.public(), candidates.points[1]), (&[-1, 0, 9][..], &[3.0, 4.0][..]));
        assert!(Candidates::new(2, &from, &numbers).is_none() && Candidates::new(3, &from, &numbers[1..]).is_none());
        for wrong in [0.5, f64::NAN, f64::INFINITY, 2.0 * Candidates::MOST_PUBLIC] {
            let mut numbers = numbers.clone();
            numbers[8] = wrong;
            assert!(Candidates::new(3, &from, &numbers).is_none(), "{wrong}");
        }
        assert!(Candidates::new(0, &from, &[]).is_none() && Candidates::new(u32::MAX, &from, &numbers).is_none());
        assert_eq!([1, 3, 10, 1 << 20].map(QueryKind::most_candidates), [65_536, 65_536, 23_831, 0]);
    }

    /// The most_expensive candidate prices them all, and none contributes more than it would alone.
    #[test]
    fn a_choice_is_charged_by_its_most_expensive_candidate() {
        let (auto, clipped) = (spec(""), spec("clip = 0.05\n"));
        let model = auto.build_model();
        let from = [0.0, 0.0];
        let points = [vec![0.1, 0.0], vec![0.0, -0.3], vec![0.0, 0.0]];
        let numbers = Candidates::numbers(&points, &[0.0; 3]);
        let kind = QueryKind::Choice { candidates: 3 };
        for unit in [PrivacyUnit::default(), PrivacyUnit::person(Adjacency::AddRemove, 3).unwrap()] {
            for spec in [&auto, &clipped] {
                let price = |to: &[f64]| contribution(model.as_ref(), &spec.privacy, unit, &from, to).unwrap().sensitivity;
                let each: Vec<Sensitivity> = points.iter().map(|to| price(to)).collect();
                let terms = QueryTerms::new(model.as_ref(), spec, unit, kind, (&from, &numbers)).unwrap();
                assert_eq!(terms.sensitivity(), *each.iter().max().unwrap());
                assert_eq!(
                    (terms.length(), terms.greatest_release(None, conclave_privacy::mechanism::NoiseScale::OF_A_CHOICE)),
                    (1, 2)
                );
                let candidates = Candidates::new(3, &from, &numbers).unwrap();
                let clamps = |charged| -> Vec<Sensitivity> {
                    let steps = candidates.steps(model.as_ref(), spec, unit, charged).unwrap();
                    steps.iter().map(|step| step.clamp).collect()
                };
                assert_eq!(clamps(terms.sensitivity()), each);
                let less = Sensitivity::from_units(1000).unwrap();
                assert!(clamps(less).iter().all(|clamp| *clamp <= less));
            }
        }
        let outside = Candidates::numbers(&[vec![1e9, 0.0]], &[0.0]);
        let one = QueryKind::Choice { candidates: 1 };
        let unit = PrivacyUnit::default();
        assert_eq!(QueryTerms::new(model.as_ref(), &auto, unit, one, (&from, &outside)), Err(QueryError::Outside));
        let vector = QueryTerms::new(model.as_ref(), &auto, unit, kind, (&from, &numbers[1..]));
        assert_eq!(vector, Err(QueryError::Vector(kind)));
        let ratio = QueryTerms::new(model.as_ref(), &auto, unit, QueryKind::Ratio, (&from, &points[0]));
        assert!(ratio.is_ok(), "a search goes first");
    }

    /// The draw at which chains start costs its share of the budget at most: where its range is larger, every log ratio has the same
    /// power, and no candidate's clamp exceeds the charge.
    #[test]
    fn a_start_costs_its_share_at_most() {
        let of = |more: &str| {
            let text = format!(
                "name = \"t\"\nparties = [\"a\"]\nalgorithm = \"sgld\"\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [\"x\"]\n\
                 [columns]\ny = {{ binary = true }}\nx = {{ min = 0, max = 9 }}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n[sampler]\nstart = \"ops\"\n{more}"
            );
            JobSpec::parse(&text).unwrap()
        };
        let (from, kind) = ([0.0, 0.0], QueryKind::Choice { candidates: 2 });
        for unit in [PrivacyUnit::default(), PrivacyUnit::person(Adjacency::AddRemove, 3).unwrap()] {
            for (share, at, tempered) in [(0.5, 1e-3, false), (0.5, 1.0, true), (0.1, 1.0, true)] {
                let spec = of(&format!("start_share = {share}\n"));
                let model = spec.build_model();
                let numbers = Candidates::numbers(&[vec![at, 0.0], vec![0.0, -0.3 * at]], &[0.0; 2]);
                let candidates = Candidates::new(2, &from, &numbers).unwrap();
                let terms = QueryTerms::new(model.as_ref(), &spec, unit, kind, (&from, &numbers)).unwrap();
                let power = candidates.power(model.as_ref(), &spec, unit).unwrap();
                let limit = PrivacyFilter::new(&spec.privacy.budget.of(unit)).unwrap().limit_units() as f64;
                let charge =
                    unit.charge_of_kind(kind, terms.sensitivity(), (NoiseScale::OF_A_CHOICE, Honest::ALONE)).unwrap() as f64;
                assert_eq!(power < 1.0, tempered, "{power}");
                assert!(charge <= share * limit && (!tempered || charge > 0.999 * share * limit), "{charge} of {limit}");
                let steps = candidates.steps(model.as_ref(), &spec, unit, terms.sensitivity()).unwrap();
                for step in steps {
                    let part = contribution(model.as_ref(), &spec.privacy, unit, step.from, step.to).unwrap();
                    assert_eq!((step.power, step.centre), (power, power * part.centre));
                    let clamp = step.clamp.units() as f64 / part.sensitivity.units() as f64;
                    assert!(step.clamp <= terms.sensitivity() && (clamp / power - 1.0).abs() < 1e-6, "{clamp} {power}");
                }
            }
        }
    }

    /// A party answers no choice among more candidates than its owner approved: it would take longer than the delay of the job.
    #[test]
    fn a_choice_has_the_jobs_candidates_at_most() {
        let text = "name = \"t\"\nparties = [\"a\"]\nalgorithm = \"ops\"\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [\"x\"]\n\
                    [columns]\ny = { binary = true }\nx = { min = 0, max = 9 }\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n[sampler]\ncandidates = 2\n";
        let spec = JobSpec::parse(text).unwrap();
        let model = spec.build_model();
        let (from, at) = ([0.0, 0.0], [vec![0.1, 0.0], vec![0.0, -0.1], vec![0.1, 0.1]]);
        let priced = |count: usize| {
            let numbers = Candidates::numbers(&at[..count], &vec![0.0; count]);
            let kind = QueryKind::Choice { candidates: count as u32 };
            QueryTerms::new(model.as_ref(), &spec, PrivacyUnit::default(), kind, (&from, &numbers)).is_ok()
        };
        assert_eq!((priced(2), priced(3)), (true, false));
    }
}
