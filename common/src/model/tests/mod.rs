//! Properties that every model must satisfy, and one file per model with its density written out plainly.
//!
//! A new model needs a [`Case`] in [`cases`]: the tests of bounds, sums, persons and exponential families then run on it.

#![allow(clippy::unwrap_used)]

mod banana;
mod bernoulli;
mod bounds;
mod centres;
mod exponential_family;
mod gaussian_mean;
mod gaussian_mixture;
mod kernels;
mod linear;
mod logistic;
mod multinomial;
mod naive_bayes;
mod negative_binomial;
mod passes;
mod persons;
mod poisson;
mod poisson_mean;
mod privacy;
mod ratios;
mod reach;
mod remainders;
mod sampled;
mod scores;
mod shard;
mod speed;
mod student_t;
mod table;
mod tempered;
mod weibull;

use conclave_privacy::pass::{
    Block, BlockError, Blocks, Frame, HiddenSample, Hold, ModelData, Persons, PoissonSampling, StatisticGrid, Step, Threads,
};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::*;
use crate::job::JobSpec;
use crate::parameter::Constraint;
use crate::query::{Contribution, contribution};
use crate::schema::ColumnSpec;
use conclave_privacy::mechanism::Sensitivity;
use conclave_privacy::pass::LatticeSum;

/// One record on the model's scale, as in a shard.
#[derive(Debug, Clone, Default)]
struct Record {
    outcome: f64,
    predictors: Vec<f64>,
    auxiliary: Vec<f64>,
}

/// A model under test.
struct Case {
    name: &'static str,
    spec: JobSpec,
    model: Box<dyn Model>,
    /// The log density of one record, up to a constant in theta, as in the model's documentation and with the standard library.
    density: fn(&Record, &[f64]) -> f64,
    /// Half widths of the thetas that tests draw, on the unconstrained scale.
    scales: [f64; 4],
    /// Parameters along which the bound is close to the supremum; for the others the bound is only valid.
    tight: std::ops::Range<usize>,
}

/// Returns all models under test.
fn cases() -> Vec<Case> {
    let first = vec![gaussian_mean::case(), bernoulli::case(), poisson_mean::case(), logistic::case()];
    let survival = [
        weibull::case(),
        gaussian_mixture::case(),
        gaussian_mixture::narrow(),
        multinomial::case(),
        naive_bayes::case(),
        banana::case(),
    ];
    let tempered = [tempered::case(), tempered::logistic()];
    let counts = [poisson::case(), negative_binomial::case(), student_t::case()];
    let regressions = logistic::wide().into_iter().chain(linear::cases()).chain(counts);
    first.into_iter().chain(regressions).chain(survival).chain(tempered).chain([logistic::by_formula()]).collect()
}

impl Case {
    /// Creates a case; `model` and `columns` are the lines of those tables of a job file.
    fn new(name: &'static str, model: &str, columns: &str, density: fn(&Record, &[f64]) -> f64) -> Self {
        Self::with(name, model, columns, "", density)
    }

    /// Creates a case as [`Case::new`] does, with more lines of `[privacy]`.
    fn with(name: &'static str, model: &str, columns: &str, privacy: &str, density: fn(&Record, &[f64]) -> f64) -> Self {
        let spec = job(model, columns, privacy);
        let built = spec.build_model();
        let tight = 0..built.parameter_names().len();
        Self { name, spec, model: built, density, scales: [0.1, 1.0, 3.0, 20.0], tight }
    }

    /// Returns the log ratio of one record from the plain density.
    fn ratio(&self, record: &Record, from: &[f64], to: &[f64]) -> f64 {
        (self.density)(record, to) - (self.density)(record, from)
    }

    /// Returns the possible rounding error of the plain ratio.
    fn rounding(&self, record: &Record, from: &[f64], to: &[f64]) -> f64 {
        1e-13 * (1.0 + (self.density)(record, to).abs() + (self.density)(record, from).abs())
    }

    /// Draws a record within the declared bounds, at their ends half of the time.
    fn record(&self, rng: &mut ChaCha20Rng) -> Record {
        self.each_field(&mut |field| match field {
            ColumnSpec::Numeric { .. } => match rng.random_range(0..4) {
                0 => -1.0,
                1 => 1.0,
                _ => rng.random_range(-1.0..=1.0),
            },
            whole => rng.random_range(whole.range().0 as u32..=whole.range().1 as u32).into(),
        })
    }

    /// Returns records that include the extreme ratios: every corner of the columns, and a grid of the outcome where it is
    /// numeric.
    fn corners(&self) -> Vec<Record> {
        let outcome = self.spec.model.outcome();
        let mut corners: Vec<Vec<f64>> = vec![Vec::new()];
        for name in self.spec.model.columns() {
            let (low, high) = self.column(name).range();
            let values: Vec<f64> = match self.column(name) {
                ColumnSpec::Numeric { .. } if name == outcome => (0..=400).map(|i| -1.0 + f64::from(i) / 200.0).collect(),
                ColumnSpec::Numeric { .. } => vec![-1.0, 1.0],
                _ => (low as u32..=high as u32).map(f64::from).collect(),
            };
            let longer = |corner: &Vec<f64>, value: f64| corner.iter().copied().chain([value]).collect();
            corners = corners.iter().flat_map(|corner| values.iter().map(move |value| longer(corner, *value))).collect();
        }
        corners.iter().map(|corner| self.assembled(corner)).collect()
    }

    fn column(&self, name: &str) -> &ColumnSpec {
        &self.spec.columns[name]
    }

    fn each_field(&self, value: &mut dyn FnMut(&ColumnSpec) -> f64) -> Record {
        let values: Vec<f64> = self.spec.model.columns().iter().map(|name| value(self.column(name))).collect();
        self.assembled(&values)
    }

    /// Returns the record with these values of the model's columns.
    fn assembled(&self, values: &[f64]) -> Record {
        let mut values = values.iter();
        let data = assemble(&self.spec.model, &self.spec.columns, None, |_, _| values.next().map(|value| vec![*value])).unwrap();
        let first = |columns: &[Vec<f64>]| columns.iter().map(|column| column[0]).collect();
        Record { outcome: data.outcome[0], predictors: first(&data.predictors), auxiliary: first(&data.auxiliary) }
    }

    /// Maps a point on the unconstrained scale to a parameter value.
    fn constrain(&self, z: &[f64]) -> Vec<f64> {
        let constraints = self.spec.model.constraints();
        let (mut theta, mut z) = (Vec::new(), z);
        while let Some((first, rest)) = z.split_first() {
            match constraints[theta.len()] {
                Constraint::Real => theta.push(*first),
                Constraint::Positive => theta.push(first.exp()),
                Constraint::UnitInterval => theta.push(1.0 / (1.0 + (-first).exp())),
                Constraint::Simplex { size } => {
                    let total: f64 = z[..size].iter().map(|z| z.exp()).sum();
                    theta.extend(z[..size].iter().map(|z| z.exp() / total));
                    z = &z[size..];
                    continue;
                }
            }
            z = rest;
        }
        theta
    }

    /// Draws a point on the unconstrained scale.
    fn point(&self, rng: &mut ChaCha20Rng, scale: f64) -> Vec<f64> {
        self.model.parameter_names().iter().map(|_| rng.random_range(-scale..scale)).collect()
    }

    fn theta(&self, rng: &mut ChaCha20Rng, scale: f64) -> Vec<f64> {
        self.constrain(&self.point(rng, scale))
    }

    /// Draws a step of a random size, in one coordinate half of the time.
    fn step(&self, rng: &mut ChaCha20Rng) -> (Vec<f64>, Vec<f64>) {
        let scale = self.scales[rng.random_range(0..4)];
        let size = [1e-7, 1e-3, 0.1, 2.0][rng.random_range(0..4)];
        let from = self.point(rng, scale);
        let mut to = from.clone();
        let coordinate = rng.random_bool(0.5).then(|| rng.random_range(0..to.len()));
        for (j, t) in to.iter_mut().enumerate() {
            if coordinate.is_none_or(|c| c == j) {
                *t += rng.random_range(-size..size);
            }
        }
        (self.constrain(&from), self.constrain(&to))
    }

    /// Draws any record, with or without regard to bounds: the clamp must hold without them.
    fn any_record(&self, rng: &mut ChaCha20Rng) -> Record {
        let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1e300, 1e300, 1e9, -3.0, -0.0, 5e-324, 0.5, 1.0, 7.0];
        self.filled(&mut || values[rng.random_range(0..values.len())])
    }

    /// Builds a record with these values in every field of a shard, including fields derived from columns.
    fn filled(&self, value: &mut dyn FnMut() -> f64) -> Record {
        let mut record = self.each_field(&mut |_| 0.0);
        for field in record.predictors.iter_mut().chain(&mut record.auxiliary).chain([&mut record.outcome]) {
            *field = value();
        }
        record
    }
}

/// Creates a job with this model and these lines of `[privacy]`, and defaults elsewhere.
fn job(model: &str, columns: &str, privacy: &str) -> JobSpec {
    let text = format!(
        "name = \"case\"\nparties = [\"a\"]\n[model]\n{model}\n[columns]\n{columns}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n{privacy}\n"
    );
    JobSpec::parse(&text).unwrap_or_else(|e| panic!("{e} in {text}"))
}

fn shard(records: &[Record]) -> ModelData {
    let columns = |of: fn(&Record) -> &Vec<f64>| -> Vec<Vec<f64>> {
        let width = records.first().map_or(0, |r| of(r).len());
        (0..width).map(|j| records.iter().map(|r| of(r)[j]).collect()).collect()
    };
    ModelData {
        outcome: records.iter().map(|r| r.outcome).collect(),
        predictors: columns(|r| &r.predictors),
        auxiliary: columns(|r| &r.auxiliary),
        persons: None,
    }
}

/// Returns a shard without records, with the columns of a case.
fn empty(case: &Case) -> ModelData {
    let columns = |n: usize| vec![Vec::new(); n];
    let shape = case.each_field(&mut |_| 0.0);
    ModelData { predictors: columns(shape.predictors.len()), auxiliary: columns(shape.auxiliary.len()), ..ModelData::default() }
}

fn reveal(sum: LatticeSum) -> i64 {
    sum.open_for_test()
}
