//! Statistical models: the kernels that turn a shard into a lattice sum, and the public bounds that their privacy needs.
//!
//! One file per model. A model sees values on the scale that priors are declared on: numeric columns scaled to `[-1, 1]` by their
//! public bounds, binary columns 0 or 1.

mod assemble;
mod banana;
mod bernoulli;
mod blocks;
mod contribution;
mod elementary;
mod envelope;
mod exponential_family;
mod fused;
mod gaussian_mean;
mod gaussian_mixture;
mod line;
mod linear;
mod linear_predictor;
mod linear_statistic;
mod logistic;
mod multinomial;
mod negative_binomial;
mod pass;
mod persons;
mod poisson;
mod poisson_mean;
mod question;
mod ratio_range;
mod regression;
mod softplus;
mod source;
mod statistic_grid;
mod student_t;
mod summand;
mod tempered;
#[cfg(test)]
mod tests;
mod weibull;
mod weighted;

pub use assemble::assemble;
pub use blocks::vectorises;
pub use contribution::{Contribution, contribution, is_centred};
pub use exponential_family::ExponentialFamily;
pub use pass::Threads;
pub use persons::Persons;
pub use question::{Question, QuestionError};
pub use ratio_range::RatioRange;
pub use source::{Block, BlockError, Blocks, Number};
pub use statistic_grid::StatisticGrid;
pub use summand::{Summand, block_sums, sums};

use crate::job::{ColumnSpec, JobSpec, ModelSpec};
use crate::mechanism::{LatticeSum, Sensitivity};

/// The rows of one shard as a model needs them: one `Vec` per column, clamped and scaled to the declared bounds. Numbers may be held as
/// `f32`, which halves the memory; arithmetic on them is in `f64` all the same.
#[derive(Clone, Default)]
pub struct ModelData<T = f64> {
    /// The outcome, one value per record.
    pub outcome: Vec<T>,
    /// One `Vec` per feature of the design, in the parameters' order, each as long as `outcome`. The intercept is not stored.
    pub predictors: Vec<Vec<T>>,
    /// Columns of another part in the model, in the order that the model's document gives: an offset, a censoring indicator.
    pub auxiliary: Vec<Vec<T>>,
    /// Who the records belong to, where a person is the unit of privacy.
    pub persons: Option<Persons>,
}

impl<T> ModelData<T> {
    /// The number of records.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.outcome.len() as u64
    }

    /// The number of units of privacy: persons, or records.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.persons.as_ref().map_or(self.records(), Persons::count)
    }

    /// The same columns without a record.
    #[must_use]
    pub fn emptied(&self) -> ModelData {
        let none = |columns: &[Vec<T>]| vec![Vec::new(); columns.len()];
        ModelData { outcome: Vec::new(), predictors: none(&self.predictors), auxiliary: none(&self.auxiliary), persons: None }
    }
}

/// A step of one chain, and the public constants of what a unit of privacy contributes to its sum.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// theta, one value per parameter.
    pub from: &'a [f64],
    /// theta'.
    pub to: &'a [f64],
    /// The most that one unit of privacy contributes.
    pub sensitivity: Sensitivity,
    /// What is taken off each record's log ratio before it is rounded and clamped; 0 where the model gives no centre.
    pub centre: f64,
    /// Instead of the ratios, count the units of privacy at which the clamp bites, each as 2^20 lattice units
    /// ([`crate::mechanism::QueryKind::COUNT_UNIT`]).
    pub count_clipped: bool,
    /// What each record's log ratio is multiplied by before that: the likelihood's power. 1 but for a tempered model, which sets it.
    pub power: f64,
}

impl<'a> Step<'a> {
    /// A step whose ratios are not centred.
    #[must_use]
    pub fn new(from: &'a [f64], to: &'a [f64], sensitivity: Sensitivity) -> Self {
        Self { from, to, sensitivity, centre: 0.0, count_clipped: false, power: 1.0 }
    }
}

/// A statistical model whose log likelihood ratios can be summed on the lattice.
pub trait Model: Send + Sync {
    /// Parameter names in the order of every `theta`.
    fn parameter_names(&self) -> &[String];

    /// What one record's log ratio can be over the declared column bounds; swapping the arguments negates it bit for bit.
    fn ratios(&self, from: &[f64], to: &[f64]) -> RatioRange;

    /// The public bound on one record's `|log p(y | to) - log p(y | from)|` over the declared column bounds, in log-likelihood units.
    ///
    /// Rounded outward, and symmetric in its arguments bit for bit. `+inf` where there is none.
    fn bound(&self, from: &[f64], to: &[f64]) -> f64 {
        self.ratios(from, to).bound()
    }

    /// The public centre of one record's log ratio, in log-likelihood units; 0 where there is no bound.
    ///
    /// Antisymmetric bit for bit: swapping the arguments negates it.
    fn centre(&self, from: &[f64], to: &[f64]) -> f64 {
        self.ratios(from, to).centre()
    }

    /// The public bound on one record's `|log p(y | to) - log p(y | from) - centre|`; as [`Model::bound`].
    fn half_range(&self, from: &[f64], to: &[f64]) -> f64 {
        self.ratios(from, to).half_range()
    }

    /// The model as an exponential family, where it is one (Algorithm 3).
    fn exponential_family(&self) -> Option<&dyn ExponentialFamily> {
        None
    }

    /// Per parameter, the largest Fisher information that one record can carry within the declared column bounds about the parameter on
    /// its unconstrained scale: the parameter itself where it is real, its log where it is positive, its log odds where it is a
    /// probability, a log ratio where it is part of a simplex (see [`crate::job::Constraint`]).
    ///
    /// It sizes the search for the mode. Where there is no supremum it is a generous figure, which the model's document gives.
    fn information_bound(&self) -> Vec<f64>;

    /// The lattice sums of several steps over one block of a shard, in one pass over it.
    ///
    /// A step's sensitivity clamps each record's lattice value. Where the data have persons, it clamps each person's sum instead, and a
    /// record's value is clamped to its share of it, the sensitivity over the most records of a person.
    ///
    /// Each unit's contribution is odd in the step: swapping `from` and `to` negates it exactly.
    ///
    /// # Panics
    /// When the data do not have the model's columns, or [`crate::mechanism::sum_fits`] does not hold. Both are checked by callers, the
    /// second for the shard that the block is of, and depend on public values only.
    fn block_sums(&self, block: &Block<'_>, steps: &[Step<'_>]) -> Vec<LatticeSum>;

    /// The lattice sums of several steps over a shard in memory; see [`Model::block_sums`].
    fn lattice_sums(&self, data: &ModelData, steps: &[Step<'_>]) -> Vec<LatticeSum> {
        if let Some(persons) = &data.persons {
            assert_eq!(persons.records(), data.outcome.len(), "every record is some person's");
        }
        self.block_sums(&Block::lent(data), steps)
    }

    /// The lattice sum of one step; see [`Model::lattice_sums`].
    fn lattice_sum(&self, data: &ModelData, from: &[f64], to: &[f64], k_t: Sensitivity) -> LatticeSum {
        let mut sums = self.lattice_sums(data, &[Step::new(from, to, k_t)]);
        sums.pop().unwrap_or_else(|| unreachable!("one step gives one sum"))
    }

    /// The log likelihood of a shard in plain floating point, for references that need no privacy.
    fn log_likelihood(&self, data: &ModelData, theta: &[f64]) -> f64;

    /// A draw mapped from the scale of the priors to the data's own units.
    fn to_original(&self, theta: &[f64]) -> Vec<f64>;
}

/// The model of a job.
#[must_use]
pub fn build(spec: &JobSpec) -> Box<dyn Model> {
    let column = |name: &str| spec.columns.get(name).cloned().unwrap_or(UNDECLARED);
    let names = spec.model.parameter_names();
    let model: Box<dyn Model> = match &spec.model {
        ModelSpec::Regression(regression) => regression::build(names, regression, &column),
        ModelSpec::Multinomial { .. } => Box::new(multinomial::Multinomial::new(names)),
        ModelSpec::GaussianMixture { outcome, sd, weight } => {
            Box::new(gaussian_mixture::GaussianMixture::new(names, &column(outcome), *sd, *weight))
        }
        ModelSpec::Weibull { outcome, .. } => Box::new(weibull::Weibull::new(names, &column(outcome))),
        ModelSpec::Banana { outcome, second_outcome, bend, precision } => {
            Box::new(banana::Banana::new(names, [&column(outcome), &column(second_outcome)], *bend, *precision))
        }
        ModelSpec::Bernoulli { .. } => Box::new(bernoulli::Bernoulli::new(names)),
        ModelSpec::PoissonMean { outcome } => Box::new(poisson_mean::PoissonMean::new(names, &column(outcome))),
        ModelSpec::GaussianMean { outcome, sd } => Box::new(gaussian_mean::GaussianMean::new(names, &column(outcome), *sd)),
    };
    if spec.power == 1.0 { model } else { Box::new(tempered::Tempered::new(model, spec.power)) }
}

/// Draws mapped to the data's own units, `[parameter][chain][draw]` as they came.
///
/// Chains are of one length.
#[must_use]
pub fn in_original_units(model: &dyn Model, samples: &[Vec<&[f64]>]) -> Vec<Vec<Vec<f64>>> {
    let chains = samples.first().map_or(0, Vec::len);
    let mut mapped = vec![vec![Vec::new(); chains]; samples.len()];
    let mut theta = vec![0.0; samples.len()];
    for chain in 0..chains {
        for draw in 0..samples[0][chain].len() {
            theta.iter_mut().zip(samples).for_each(|(t, parameter)| *t = parameter[chain][draw]);
            for (values, value) in mapped.iter_mut().zip(model.to_original(&theta)) {
                values[chain].push(value);
            }
        }
    }
    mapped
}

/// What an undeclared column is read as. Only a job that was built by hand gets here, and its ratios are clamped all the same.
const UNDECLARED: ColumnSpec = ColumnSpec::Numeric { min: -1.0, max: 1.0 };

/// Rounds a bound outward by more than the error of computing it, the same for a step and its reverse.
fn outward(bound: f64) -> f64 {
    bound * (1.0 + 1e-12)
}
