//! The registry of statistical models.

use std::collections::BTreeMap;

use super::banana::Banana;
use super::banana_law::BananaLaw;
use super::bernoulli::Bernoulli;
use super::combinations::Combinations;
use super::gaussian_mean::GaussianMean;
use super::gaussian_mixture::GaussianMixture;
use super::inert::Inert;
use super::interface::Model;
use super::life_table::LifeTable;
use super::likelihood::Likelihood;
use super::line::LineModel;
use super::linear::Linear;
use super::linear_predictor::LinearPredictor;
use super::linear_statistic::LinearStatistic;
use super::logistic::Logistic;
use super::multinomial::Multinomial;
use super::naive_bayes::NaiveBayes;
use super::negative_binomial::NegativeBinomial;
use super::poisson::Poisson;
use super::poisson_mean::PoissonMean;
use super::regression::Regression;
use super::student_t::StudentT;
use super::survival::PiecewiseModel;
use super::tempered::Tempered;
use super::weibull::Weibull;
use crate::schema::{self, ColumnSpec, Family, ModelSpec};

/// The declaration assumed for an undeclared column. Only a job built in code can have one, and its ratios are clamped like all
/// others.
pub(super) const UNDECLARED: ColumnSpec = ColumnSpec::Numeric { min: -1.0, max: 1.0 };

/// The settings of a job that its model's kernels and bounds depend on.
#[derive(Debug, Clone, Copy)]
pub struct BuildOptions {
    /// The power of the likelihood.
    pub power: f64,
    /// Any column may make a record inert, and the charged sensitivity leaves room for it; see [`Inert`].
    pub incomplete_rows: bool,
    /// The job clips each record's log ratio explicitly.
    pub clipped: bool,
    /// The second moments of a linear regression over categories are those of the combinations of levels.
    pub by_cells: bool,
    /// The job imputes whole records from sums of products, which a regression without a sufficient statistic then has.
    pub imputes_records: bool,
}

/// Builds the model of this specification over the declared columns.
#[must_use]
pub fn build(spec: &ModelSpec, columns: &BTreeMap<String, ColumnSpec>, options: BuildOptions) -> Box<dyn Model> {
    let BuildOptions { power, incomplete_rows, clipped, .. } = options;
    let column = |name: &str| columns.get(name).cloned().unwrap_or(UNDECLARED);
    let names = spec.parameter_names();
    let model: Box<dyn Model> = match spec {
        ModelSpec::Regression(regression) => self::regression(names, regression, options, &column),
        ModelSpec::Multinomial { .. } => Box::new(Multinomial::new(names)),
        ModelSpec::NaiveBayes { classes, features, .. } => {
            Box::new(NaiveBayes::new(names, classes.len(), features.iter().map(|feature| feature.levels.len()).collect()))
        }
        ModelSpec::GaussianMixture { outcome, sd, weight } => {
            Box::new(GaussianMixture::new(names, &column(outcome), *sd, *weight))
        }
        ModelSpec::Weibull { outcome, .. } => Box::new(Weibull::new(names, &column(outcome))),
        ModelSpec::Banana { outcome, second_outcome, bend, precision } => {
            Box::new(Banana::new(names, BananaLaw::new([&column(outcome), &column(second_outcome)], *bend, *precision), clipped))
        }
        ModelSpec::PiecewiseExponential(spec) => Box::new(PiecewiseModel::new(names, spec, incomplete_rows, &column)),
        ModelSpec::LifeTable(table) => Box::new(LifeTable::new(names, table, &column(&table.outcome))),
        ModelSpec::Bernoulli { .. } => Box::new(LineModel::new(names, Bernoulli)),
        ModelSpec::PoissonMean { outcome } => Box::new(LineModel::new(names, PoissonMean::new(&column(outcome)))),
        ModelSpec::GaussianMean { outcome, sd } => Box::new(LineModel::new(names, GaussianMean::new(&column(outcome), *sd))),
    };
    let counts_inert = matches!(
        spec,
        ModelSpec::Regression(_)
            | ModelSpec::Multinomial { .. }
            | ModelSpec::NaiveBayes { .. }
            | ModelSpec::PiecewiseExponential(_)
            | ModelSpec::LifeTable(_)
    );
    let model = if incomplete_rows && !counts_inert { Box::new(Inert::new(model)) } else { model };
    if power == 1.0 { model } else { Box::new(Tempered::new(model, power)) }
}

/// Builds the regression of a job. `names` has one name per parameter, `column` returns the declared columns.
fn regression(
    names: Vec<String>,
    spec: &schema::Regression,
    options: BuildOptions,
    column: &dyn Fn(&str) -> ColumnSpec,
) -> Box<dyn Model> {
    let outcome = column(&spec.outcome);
    let predictor = |unit: f64| LinearPredictor::new(&spec.design, unit, column).sparing_inert(options.incomplete_rows);
    let of_link = predictor(1.0);
    match spec.family {
        Family::Logistic => {
            let statistic = options.imputes_records.then(|| LinearStatistic::of_binary_outcome(of_link.clone(), outcome.range()));
            Box::new(Regression::new(names, of_link, Logistic::new(&outcome)).with_statistic(statistic))
        }
        Family::Linear { sd } => {
            let predictor = predictor(outcome.half_width());
            let statistic = match sd.map(|sd| sd / outcome.half_width()) {
                Some(sd) => Some(LinearStatistic::new(predictor.clone(), outcome.range(), sd * sd)),
                None => options.imputes_records.then(|| LinearStatistic::with_square(predictor.clone(), outcome.range())),
            };
            let cells = options.by_cells.then(|| Combinations::of(&predictor, Combinations::MOST as f64)).flatten();
            Box::new(Regression::new(names, predictor, Linear::new(&outcome, sd)).with_statistic(statistic).by_cells(cells))
        }
        Family::Poisson => boxed(names, of_link, Poisson::new(&outcome)),
        Family::NegativeBinomial => boxed(names, of_link, NegativeBinomial::new(&outcome)),
        Family::StudentT { df } => boxed(names, predictor(outcome.half_width()), StudentT::new(&outcome, df)),
    }
}

fn boxed<L: Likelihood + 'static>(names: Vec<String>, predictor: LinearPredictor, likelihood: L) -> Box<dyn Model> {
    Box::new(Regression::new(names, predictor, likelihood))
}
