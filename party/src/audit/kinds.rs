//! Measures, for every kind of release, the contribution of one unit to the last lattice unit.
//!
//! Neighbouring shards receive the same query under one and the same noise, so their releases differ by the unit alone. Records
//! are random, at every corner of their bounds, and beyond them; steps, points and frames are random. A release that moves by
//! more than is charged is a finding. No experiment behind fresh noise would distinguish a length of `K` from `K + 1`.

use conclave_common::job::JobSpec;
use conclave_common::model::{Leverage, Model, SlopeTable};
use conclave_common::query::{Candidates, QueryError, QueryTerms};
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::{GRADIENT_UNITS, NoiseScale, QueryKind, Sensitivity};
use conclave_privacy::pass::{ModelData, Persons};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::forms::{EDGES, Form, OfInfluence, PARAMETERS, after, job_of};
use super::known_noise::Asked;

/// Queries of each kind.
const QUERIES: u64 = 8;
/// Random units tried at each query.
const UNITS: usize = 32;
/// R of bounded influence and of leverage weights.
const TRACE: f64 = 1.5;
/// Values that no loader admits.
const WILD: [f64; 6] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300, 1e-310];

/// Returns a table of expectations of 0, with slopes by the number of the node.
fn table(slope: impl Fn(usize) -> f64) -> Vec<f64> {
    let slopes = (0..SlopeTable::NODES).map(slope);
    [-3.0, 3.0].into_iter().chain(std::iter::repeat_n(0.0, SlopeTable::NODES)).chain(slopes).collect()
}

/// The greatest movement of a form's releases, as a share of the charged one.
#[derive(Debug)]
pub(super) struct Reached {
    pub(super) form: Form,
    pub(super) share: f64,
    /// True if it exceeds the charged one, by a comparison of whole numbers.
    exceeds: bool,
}

impl Reached {
    /// Takes in the square of a movement, and the charged movement.
    fn take(&mut self, square: u128, most: u64) {
        let most = u128::from(most);
        self.exceeds |= square > most * most;
        self.share = self.share.max((square as f64).sqrt() / most as f64);
    }
}

/// Checks every kind that jobs on this unit may ask. `charged` returns the movement in lattice units that a sensitivity stands for.
///
/// # Errors
/// A sentence: a job of the audit is not accepted, or a query has no sum.
pub(super) fn check(unit: PrivacyUnit, charged: impl Fn(Sensitivity) -> u64) -> Result<(Vec<Reached>, Vec<String>), String> {
    let (mut reached, mut findings) = (Vec::new(), Vec::new());
    for form in std::iter::successors(after(None), |form| after(Some(*form))) {
        let Some(greatest) = Case::new(form, unit)?.greatest(&charged)? else { continue };
        if greatest.exceeds {
            let percent = 100.0 * greatest.share;
            let Form { kind, influence } = greatest.form;
            let of = influence.words();
            findings.push(format!("one unit moves a release of the kind {kind}{of} by {percent:.6} % of the charged distance"));
        }
        reached.push(greatest);
    }
    Ok((reached, findings))
}

/// One form on its job.
struct Case {
    form: Form,
    kind: QueryKind,
    spec: JobSpec,
    model: Box<dyn Model>,
    unit: PrivacyUnit,
    generator: ChaCha8Rng,
}

/// The numbers of a record on the model's scale: the outcome, then the predictors, then the event of a survival time.
type Record = Vec<f64>;

impl Case {
    fn new(form: Form, unit: PrivacyUnit) -> Result<Self, String> {
        let kind = form.kind;
        let (algorithm, model, privacy) = job_of(form);
        let text = format!(
            "name = \"audit\"\nalgorithm = \"{algorithm}\"\nparties = [\"rehearsal\"]\n[model]\n{model}\n[columns]\n\
             x = {{ min = -1, max = 1 }}\ny = {{ binary = true }}\na = {{ min = -1, max = 1 }}\nb = {{ min = -1, max = 1 }}\n\
             c = {{ binary = true }}\nk = {{ min = 0, max = 9 }}\n[privacy]\nepsilon = 8.0\ndelta = 1e-6\n{privacy}"
        );
        let mut spec = JobSpec::parse(&text).map_err(|e| format!("the audit's job of the kind {kind}: {e}"))?;
        if kind.is_sampled() || kind == QueryKind::SecondMoment {
            // Every unit is in the sample below; the job only has to be one that samples.
            spec.privacy.blocks = Some(1);
        }
        let model = spec.build_model();
        // The seed is not secret: records and queries are made up.
        Ok(Self { form, kind, spec, model, unit, generator: ChaCha8Rng::seed_from_u64(u64::from(kind.code())) })
    }

    /// Returns the greatest share of the charged movement that any tried neighbours reach; `None` for a kind that no job may ask on
    /// this unit of privacy.
    fn greatest(&mut self, charged: &impl Fn(Sensitivity) -> u64) -> Result<Option<Reached>, String> {
        let mut greatest = Reached { form: self.form, share: 0.0, exceeds: false };
        let replaced = self.unit.adjacency == Adjacency::Replace;
        let noise = NoiseScale::from_units(1 << 40).map_err(|e| self.because(&e))?;
        for number in 0..QUERIES {
            let (from, to) = self.points(2.0_f64.powi(number as i32 - 4));
            let terms = match QueryTerms::new(self.model.as_ref(), &self.spec, self.unit, self.kind, (&from, &to)) {
                Err(QueryError::Unit(_)) => return Ok(None),
                terms => terms.map_err(|e| self.because(&e))?,
            };
            let others: Vec<Record> = (0..3).map(|_| self.any()).collect();
            let mut units: Vec<Record> = (0..UNITS).map(|_| self.any()).collect();
            units.extend(self.corners());
            units.extend(self.wild());
            let (unit, kind, numbers) = (self.unit, self.kind, (from.as_slice(), to.as_slice()));
            let asked = Asked { model: self.model.as_ref(), spec: &self.spec, unit, kind, numbers, noise };
            let released = |units: &[Record]| asked.released(&terms, &self.data(units));
            let (most, without) = (charged(terms.sensitivity()), released(&others)?);
            let with = |unit: &Record| released(&others.iter().chain([unit]).cloned().collect::<Vec<_>>());
            let sums = units.iter().map(with).collect::<Result<Vec<_>, _>>()?;
            // Where the sensitivity bounds a contribution, replacement moves a sum by twice as much.
            let contributes = self.kind.moves(2) == 2 || self.kind.candidates().is_some();
            for (at, sum) in sums.iter().enumerate() {
                if contributes || !replaced {
                    greatest.take(self.squared_distance(sum, &without), most);
                }
                for other in sums[..at].iter().filter(|_| replaced) {
                    greatest.take(self.squared_distance(sum, other), if contributes { 2 * most } else { most });
                }
            }
        }
        Ok(Some(greatest))
    }

    /// Returns the square of the distance of two releases: of a choice the largest of any log weight, and the Euclidean one of others.
    fn squared_distance(&self, a: &[i64], b: &[i64]) -> u128 {
        let squares = a.iter().zip(b).map(|(a, b)| u128::from(a.abs_diff(*b))).map(|x| x.saturating_mul(x));
        match self.kind.candidates() {
            Some(_) => squares.max().unwrap_or(0),
            None => squares.fold(0, u128::saturating_add),
        }
    }

    fn because(&self, why: &dyn std::fmt::Display) -> String {
        format!("the audit's query of the kind {}: {why}", self.kind)
    }

    fn even(&mut self, most: f64) -> f64 {
        most * (2.0 * self.generator.random::<f64>() - 1.0)
    }

    /// Returns the numbers of a query: points about the origin, and a step or a frame of this scale.
    fn points(&mut self, scale: f64) -> (Vec<f64>, Vec<f64>) {
        let dimension = PARAMETERS as usize;
        let mut point = |most: f64| (0..dimension).map(|_| self.even(most)).collect::<Vec<f64>>();
        let (from, to, entries) = (point(1.0), point(scale), [point(scale), point(scale), point(scale)].concat());
        let to: Vec<f64> = from.iter().zip(&to).map(|(from, step)| from + step).collect();
        // The frame of bounded influence, and its limits.
        let influence = [entries.clone(), vec![0.0; dimension], vec![2.0, TRACE]].concat();
        // The last parameter of the weighted job of a numeric outcome is a sigma, of a count a dispersion.
        let is_bounded = self.form.influence == OfInfluence::Bounded;
        let is_weighed = self.form.influence == OfInfluence::Leverage;
        let from = if self.form.influence.has_own_parameter() { [&from[..dimension - 1], &[0.5]].concat() } else { from };
        match self.kind {
            QueryKind::Table { .. } if is_bounded && scale > 1.0 => (from, EDGES.to_vec()),
            QueryKind::Table { .. } if is_bounded => (from, [influence, EDGES.to_vec()].concat()),
            _ if is_bounded => (from, influence),
            _ if self.form.influence == OfInfluence::Count => {
                let influence = [entries, vec![0.0; dimension], vec![1.0, 1.5], table(|_| 1.0)].concat();
                // Half way the counts are larger by more than the limit.
                let further = [&[from[0] + 1.0], &from[1..]].concat();
                let point = if self.kind == (QueryKind::Curvature { parameters: PARAMETERS }) { further } else { Vec::new() };
                (from, [influence, point].concat())
            }
            _ if self.form.influence == OfInfluence::Dispersion => {
                let mut frame = vec![0.0; dimension * dimension + dimension];
                frame[dimension * dimension - 1] = 1.0;
                (from, [frame, vec![0.05, 1.0], table(|node| f64::from(u8::from(node < SlopeTable::NODES / 2)))].concat())
            }
            // Half way the outcome is even, and the information of a record that was far from it has its limit.
            _ if self.form.influence == OfInfluence::HalfWay => {
                (from.iter().map(|x| 2.0 * x).collect(), [influence, vec![0.0; dimension]].concat())
            }
            QueryKind::Ratio if is_weighed => {
                // A frame nearly of the intercept alone, and a step along its first row: images of all records are then on the ball, in
                // the direction of the step.
                let entry = |(at, entry): (usize, &f64)| 0.02 * entry.clamp(-1.0, 1.0) + if at == 0 { 1.2 } else { 0.0 };
                let rows: Vec<f64> = entries.iter().enumerate().map(entry).collect();
                let to = from.iter().zip(&rows).map(|(from, along)| from + scale * along);
                let weights = rows.iter().copied().chain(vec![0.0; dimension]).chain([TRACE]);
                (from.clone(), to.chain(weights).collect())
            }
            QueryKind::Ratio | QueryKind::ClipCount | QueryKind::SampledRatio | QueryKind::SecondMoment => (from, to),
            QueryKind::Statistic { .. } | QueryKind::Moments { .. } | QueryKind::Table { .. } => (Vec::new(), Vec::new()),
            QueryKind::Gradient { .. } if is_weighed => {
                let most = Leverage::MOST_ENTRY;
                // Half of the frames are nearly of the intercept alone: images of all records are then on the ball, in one direction.
                let entry = |(at, entry): (usize, &f64)| match scale > 1.0 {
                    true => entry.clamp(-most, most),
                    false => 0.02 * entry + if at == 0 { 1.2 } else { 0.0 },
                };
                let rows: Vec<f64> = entries.iter().enumerate().map(entry).collect();
                (from.iter().map(|x| 8.0 * x).collect(), [rows, vec![0.0; dimension], vec![TRACE]].concat())
            }
            // With a shift that is longer than a vector may be, in half of the frames.
            QueryKind::Gradient { .. } if self.form.influence == OfInfluence::FollowUp && scale > 1.0 => {
                (from, [entries, vec![1.2; dimension]].concat())
            }
            QueryKind::Gradient { .. } | QueryKind::SampledGradient { .. } => (from, [entries, vec![0.0; dimension]].concat()),
            QueryKind::Curvature { .. } => (from, vec![scale, 1.0]),
            QueryKind::Remainder { .. } => {
                let middle: Vec<f64> = from.iter().zip(&to).map(|(from, to)| 0.5 * (from + to)).collect();
                // A frame of unit rows, by which no record's vector is shortened, and the step in its units.
                let unit = if is_weighed { 1.5 } else { 0.25 };
                let row = |at: usize| if at / dimension == at % dimension { unit } else { 0.0 };
                let frame = (0..dimension * dimension).map(row).chain(vec![0.0; dimension]);
                let weights = from.iter().zip(&to).map(|(from, to)| (to - from) / (unit * GRADIENT_UNITS as f64));
                let numbers = frame.chain(weights).chain([0.0]).chain(is_weighed.then_some(TRACE)).collect();
                ([from, middle, to].concat(), numbers)
            }
            QueryKind::Choice { candidates } => {
                let far = |m: u32| from.iter().zip(&to).map(move |(from, to)| from + f64::from(m) / 4.0 * (to - from)).collect();
                let places: Vec<Vec<f64>> = (0..candidates).map(far).collect();
                let public = vec![0.0; places.len()];
                (from.clone(), Candidates::numbers(&places, &public))
            }
        }
    }

    /// Returns a random record within its bounds.
    fn any(&mut self) -> Record {
        let ([outcome, predictor], predictors) = (self.ends(), self.predictors());
        let mut value = |ends: &'static [f64]| match ends {
            [0.0, 1.0] => f64::from(self.generator.random_range(0..2_u32)),
            _ => self.even(1.0),
        };
        let outcome = value(outcome);
        let mut record: Record = std::iter::once(outcome).chain((0..predictors).map(|_| value(predictor))).collect();
        record.extend((0..self.events()).map(|_| f64::from(self.generator.random_range(0..2_u32))));
        record
    }

    /// Returns the ends of the outcome and of a predictor: of a binary column its two values.
    fn ends(&self) -> [&'static [f64]; 2] {
        const BINARY: &[f64] = &[0.0, 1.0];
        const NUMBER: &[f64] = &[-1.0, 1.0];
        match self.kind {
            _ if self.form.influence.has_own_parameter() || self.form.influence == OfInfluence::FollowUp => [NUMBER, NUMBER],
            QueryKind::Statistic { .. } | QueryKind::Moments { .. } => [NUMBER, NUMBER],
            QueryKind::Table { .. } => [BINARY, BINARY],
            _ => [BINARY, NUMBER],
        }
    }

    /// Returns the records at the corners of their bounds.
    fn corners(&self) -> Vec<Record> {
        let ([outcomes, ends], predictors) = (self.ends(), self.predictors());
        let corner = |bits: usize| {
            let predictor = |j: usize| ends[bits >> (1 + j) & 1];
            let event = |j: usize| (bits >> (1 + predictors + j) & 1) as f64;
            let others = (0..predictors).map(predictor).chain((0..self.events()).map(event));
            std::iter::once(outcomes[bits & 1]).chain(others).collect()
        };
        (0..2_usize << (predictors + self.events())).map(corner).collect()
    }

    /// Returns records with one value that no loader admits.
    fn wild(&mut self) -> Vec<Record> {
        let numbers = 1 + self.predictors() + self.events();
        (0..numbers * WILD.len())
            .map(|at| {
                let mut record = self.any();
                record[at % numbers] = WILD[at / numbers];
                record
            })
            .collect()
    }

    fn predictors(&self) -> usize {
        self.spec.model.design().map_or(0, |design| design.features.len())
    }

    fn events(&self) -> usize {
        usize::from(self.form.influence == OfInfluence::FollowUp)
    }

    /// Returns these units on the model's scale, each with its maximum number of equal records.
    fn data(&self, units: &[Record]) -> ModelData {
        let each = self.unit.records_per_person().unwrap_or(1) as usize;
        let column = |j: usize| units.iter().flat_map(|unit| std::iter::repeat_n(unit[j], each)).collect::<Vec<f64>>();
        let ends = (1..=units.len()).map(|person| person * each).collect();
        let persons = self.unit.records_per_person().and_then(|limit| Persons::new(ends, limit));
        let (predictors, events) = (self.predictors(), self.events());
        ModelData {
            outcome: column(0),
            predictors: (1..=predictors).map(column).collect(),
            auxiliary: (1 + predictors..1 + predictors + events).map(column).collect(),
            persons,
        }
    }
}

#[cfg(test)]
#[path = "tests/kinds.rs"]
mod tests;
