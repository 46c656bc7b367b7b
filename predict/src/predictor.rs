//! The expected outcome of a model at a row of covariates.

use std::borrow::Cow;

use conclave_common::job::JobSpec;
use conclave_common::schema::{
    CategoricalFeature, ColumnSpec, Family, LifeTable, ModelSpec, Offset, PiecewiseExponential, Regression,
};

use crate::covariates::{Covariates, Row};
use crate::error::PredictError;
use crate::interval::Level;
use crate::law::Law;
use crate::posterior::Posterior;
use crate::summary::Summary;

/// A quantity that is predicted.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantity {
    /// Its key: `probability`, `mean`, `rate`, `p[level]`, `survival[2]`, `median_time`.
    pub name: String,
    /// Its description.
    pub words: String,
    pub(crate) figure: Figure,
}

/// A figure of an outcome's distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Figure {
    Expected,
    Probability(usize),
    Survival(f64),
    MedianTime,
}

impl Figure {
    fn of(self, law: &Law<'_>) -> f64 {
        match self {
            Figure::Expected => law.expected(),
            Figure::Probability(level) => law.probability(level),
            Figure::Survival(time) => law.survival(time),
            Figure::MedianTime => law.median_time(),
        }
    }
}

/// The predictions of a job's model.
#[derive(Debug)]
pub struct Predictor<'a> {
    pub(crate) spec: &'a JobSpec,
    quantities: Vec<Quantity>,
}

impl<'a> Predictor<'a> {
    /// Prepares the predictions of a job. `times` are those at which survival is predicted, in the data's units.
    ///
    /// # Errors
    /// A model without predictions; times for a model that is not one of survival, or that are not positive.
    pub fn new(spec: &'a JobSpec, times: &[f64]) -> Result<Self, PredictError> {
        let quantities = quantities(&spec.model, times)?;
        let has_times =
            matches!(spec.model, ModelSpec::Weibull { .. } | ModelSpec::PiecewiseExponential(_) | ModelSpec::LifeTable(_));
        if !times.is_empty() && !has_times {
            let kind = spec.model.kind();
            return Err(PredictError::new(format!(
                "a {kind} model has no survival: times are for weibull, piecewise_exponential and life_table"
            )));
        }
        if matches!(spec.model, ModelSpec::PiecewiseExponential(_) | ModelSpec::LifeTable(_)) {
            let outcome = spec.model.outcome();
            let longest = longest(spec.columns.get(outcome));
            if let Some(time) = times.iter().find(|time| **time > longest) {
                return Err(PredictError::new(format!("time = {time} is beyond {longest}, the declared maximum of {outcome}")));
            }
        }
        if let Some(time) = times.iter().find(|time| !(**time > 0.0 && time.is_finite())) {
            return Err(PredictError::new(format!("time = {time} is not positive: survival is predicted at times above 0")));
        }
        Ok(Self { spec, quantities })
    }

    /// Returns the predicted quantities; a regression has one.
    #[must_use]
    pub fn quantities(&self) -> &[Quantity] {
        &self.quantities
    }

    /// Predicts each quantity at each row, `[row][quantity]`.
    #[must_use]
    pub fn expected(&self, posterior: &Posterior, rows: &[Row], level: Level) -> Vec<Vec<Summary>> {
        let at_row = |row: &Row| {
            let each = self.quantities.iter();
            each.map(|quantity| Summary::new(self.values(posterior, row, quantity.figure), level)).collect()
        };
        rows.iter().map(at_row).collect()
    }

    /// Returns a figure at a row for each draw.
    pub(crate) fn values(&self, posterior: &Posterior, row: &Row, figure: Figure) -> Vec<f64> {
        posterior.draws().iter().map(|theta| figure.of(&self.law(theta, row))).collect()
    }

    /// Returns the outcome's distribution at a row, given the parameters on the scale of the priors. A family is one arm.
    pub(crate) fn law<'t>(&self, theta: &'t [f64], row: &Row) -> Law<'t> {
        let column = |name: &str| self.spec.columns.get(name);
        match &self.spec.model {
            ModelSpec::Regression(regression) => regression_law(regression, column(&regression.outcome), theta, row),
            ModelSpec::Bernoulli { .. } => Law::Binary(theta[0]),
            ModelSpec::PoissonMean { .. } => Law::Poisson(theta[0]),
            ModelSpec::GaussianMean { outcome, sd } => {
                let (centre, half_width) = scale(column(outcome));
                Law::Normal { mean: centre + half_width * theta[0], sd: *sd }
            }
            ModelSpec::Multinomial { .. } => Law::Levels(Cow::Borrowed(theta)),
            ModelSpec::NaiveBayes { classes, features, .. } => {
                Law::Levels(class_probabilities(classes.len(), features, theta, row))
            }
            ModelSpec::Weibull { outcome, .. } => {
                // A scale is in units of the declared maximum.
                Law::Weibull { shape: theta[0], scale: longest(column(outcome)) * theta[1] }
            }
            ModelSpec::PiecewiseExponential(survival) => {
                let (longest, (log_hazards, coefficients)) =
                    (longest(column(&survival.outcome)), theta.split_at(survival.intervals()));
                let eta: f64 = coefficients.iter().zip(&row.features).map(|(theta, x)| theta * x).sum();
                let hazards = log_hazards.iter().map(|log| libm::exp(log + eta) / longest).collect();
                Law::Piecewise { hazards, starts: std::iter::once(0.0).chain(survival.cuts.iter().copied()).collect(), longest }
            }
            ModelSpec::LifeTable(table) => {
                let longest = longest(column(&table.outcome));
                let group = row.features.first().map_or(0, |level| *level as usize);
                let probabilities = theta.iter().skip(group * table.intervals()).take(table.intervals());
                let starts: Vec<f64> = std::iter::once(0.0).chain(table.cuts.iter().copied()).collect();
                let ends = table.cuts.iter().copied().chain([longest]);
                // The constant hazard at which an interval is passed with its probability.
                let rate = |((h, start), end): ((&f64, &f64), f64)| -libm::log1p(-h) / (end - start);
                Law::Piecewise { hazards: probabilities.zip(&starts).zip(ends).map(rate).collect(), starts, longest }
            }
            // `quantities` refuses them.
            ModelSpec::GaussianMixture { .. } | ModelSpec::Banana { .. } => Law::Binary(f64::NAN),
        }
    }

    /// Returns the linear predictor on the scale of the link at a row, and the name of the ratio that its differences make; `None`
    /// without a logit or log link.
    pub(crate) fn link(&self, theta: &[f64], row: &Row) -> Option<f64> {
        match &self.spec.model {
            ModelSpec::Regression(regression) => {
                // A rate is per unit of the exposure, whatever the row's own is.
                let is_exposure = matches!(regression.design.offset, Some(Offset::Exposure(_)));
                let row = Row { offset: if is_exposure { 0.0 } else { row.offset }, ..row.clone() };
                self.ratio().map(|_| linear_predictor(regression, theta, &row, 1.0))
            }
            ModelSpec::PiecewiseExponential(survival) => {
                Some(theta[survival.intervals()..].iter().zip(&row.features).map(|(theta, x)| theta * x).sum())
            }
            _ => None,
        }
    }

    /// Returns the name of the ratio of two rows: of odds, of rates or of hazards; `None` without a logit or log link.
    pub(crate) fn ratio(&self) -> Option<&'static str> {
        let ModelSpec::Regression(regression) = &self.spec.model else {
            return matches!(self.spec.model, ModelSpec::PiecewiseExponential(_)).then_some("hazard_ratio");
        };
        match regression.family {
            Family::Logistic => Some("odds_ratio"),
            Family::Poisson | Family::NegativeBinomial => Some("rate_ratio"),
            Family::Linear { .. } | Family::StudentT { .. } => None,
        }
    }

    /// Converts covariates to rows of the model data.
    ///
    /// # Errors
    /// A column that the job does not declare.
    pub fn rows(&self, covariates: &Covariates) -> Result<Vec<Row>, PredictError> {
        covariates.rows(self.spec)
    }
}

/// Returns the quantities of a model.
fn quantities(model: &ModelSpec, times: &[f64]) -> Result<Vec<Quantity>, PredictError> {
    let one = |name: &str, words: String| vec![Quantity { name: name.to_owned(), words, figure: Figure::Expected }];
    Ok(match model {
        ModelSpec::Regression(regression) => {
            let (name, words) = regression_quantity(regression);
            one(name, words)
        }
        ModelSpec::Bernoulli { outcome } => one("probability", format!("probability of {outcome} = 1")),
        ModelSpec::PoissonMean { outcome } => one("rate", format!("mean of {outcome}")),
        ModelSpec::GaussianMean { outcome, .. } => one("mean", format!("mean of {outcome}")),
        ModelSpec::Multinomial { outcome, levels } | ModelSpec::NaiveBayes { outcome, classes: levels, .. } => {
            let level = |(at, level): (usize, &String)| Quantity {
                name: format!("p[{level}]"),
                words: format!("probability of {outcome} = {level}"),
                figure: Figure::Probability(at),
            };
            levels.iter().enumerate().map(level).collect()
        }
        ModelSpec::PiecewiseExponential(PiecewiseExponential { outcome, .. })
        | ModelSpec::LifeTable(LifeTable { outcome, .. }) => {
            let at = |time: &f64| Quantity {
                name: format!("survival[{time}]"),
                words: format!("probability that {outcome} exceeds {time}"),
                figure: Figure::Survival(*time),
            };
            let words = format!("mean of {outcome} up to its declared maximum");
            times.iter().map(at).chain(one("restricted_mean_time", words)).collect()
        }
        ModelSpec::Weibull { outcome, .. } => {
            let survival = |time: &f64| Quantity {
                name: format!("survival[{time}]"),
                words: format!("probability that {outcome} exceeds {time}"),
                figure: Figure::Survival(*time),
            };
            let (name, words) = ("median_time".to_owned(), format!("median of {outcome}"));
            times.iter().map(survival).chain([Quantity { name, words, figure: Figure::MedianTime }]).collect()
        }
        ModelSpec::GaussianMixture { .. } | ModelSpec::Banana { .. } => {
            return Err(PredictError::new(format!(
                "a {} model has no predictions here; fetch its draws with `conclave draws`",
                model.kind()
            )));
        }
    })
}

/// Returns the name and the description of a regression's expected outcome.
fn regression_quantity(regression: &Regression) -> (&'static str, String) {
    let Regression { family, outcome, design, .. } = regression;
    match family {
        Family::Logistic => ("probability", format!("probability of {outcome} = 1")),
        Family::Linear { .. } => ("mean", format!("mean of {outcome}")),
        // Without a mean, the location is the median.
        Family::StudentT { df } if *df <= 1.0 => ("median", format!("median of {outcome}")),
        Family::StudentT { .. } => ("mean", format!("mean of {outcome}")),
        Family::Poisson | Family::NegativeBinomial => match &design.offset {
            Some(Offset::Exposure(column)) => {
                ("rate", format!("mean of {outcome} over a row's {column}, or per unit of {column} where a row states none"))
            }
            _ => ("mean", format!("mean of {outcome}")),
        },
    }
}

/// Returns the outcome's distribution at a row of a regression.
fn regression_law(regression: &Regression, outcome: Option<&ColumnSpec>, theta: &[f64], row: &Row) -> Law<'static> {
    let own = theta.last().copied().unwrap_or(f64::NAN);
    let eta = |unit: f64| linear_predictor(regression, theta, row, unit);
    match regression.family {
        Family::Logistic => Law::Binary(inverse_logit(eta(1.0))),
        Family::Poisson => Law::Poisson(libm::exp(eta(1.0))),
        Family::NegativeBinomial => Law::NegativeBinomial { mean: libm::exp(eta(1.0)), dispersion: own },
        Family::Linear { sd } => {
            let (centre, half_width) = scale(outcome);
            Law::Normal { mean: centre + half_width * eta(half_width), sd: sd.unwrap_or(half_width * own) }
        }
        Family::StudentT { df } => {
            let (centre, half_width) = scale(outcome);
            Law::StudentT { location: centre + half_width * eta(half_width), scale: half_width * own, df }
        }
    }
}

/// Returns `offset / unit + intercept + sum_j theta_j x_j`; `unit` is the size of one unit of the result in the offset's units.
fn linear_predictor(regression: &Regression, theta: &[f64], row: &Row, unit: f64) -> f64 {
    let first = usize::from(regression.design.intercept);
    let intercept = if first == 1 { theta[0] } else { 0.0 };
    let sum: f64 = theta[first..].iter().zip(&row.features).map(|(theta, x)| theta * x).sum();
    row.offset / unit + intercept + sum
}

/// Returns the probability of each class given a row's levels, by Bayes' rule. `theta` has the classes' probabilities, then for each
/// feature and class those of the feature's levels.
fn class_probabilities<'t>(classes: usize, features: &[CategoricalFeature], theta: &[f64], row: &Row) -> Cow<'t, [f64]> {
    let (priors, mut rest) = theta.split_at(classes.min(theta.len()));
    let mut logs: Vec<f64> = priors.iter().map(|p| libm::log(*p)).collect();
    for (feature, level) in features.iter().zip(&row.features) {
        let levels = feature.levels.len();
        let given = |class: usize| rest.get(class * levels + *level as usize).copied().unwrap_or(f64::NAN);
        logs.iter_mut().enumerate().for_each(|(class, log)| *log += libm::log(given(class)));
        rest = rest.get(classes * levels..).unwrap_or_default();
    }
    let greatest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.iter().map(|log| libm::exp(log - greatest)).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

/// Returns the declared maximum of a column of times.
fn longest(outcome: Option<&ColumnSpec>) -> f64 {
    if let Some(ColumnSpec::Numeric { max, .. }) = outcome { *max } else { 1.0 }
}

/// Returns centre and half width of an outcome, which a shard holds as `(y - centre) / half_width`.
fn scale(outcome: Option<&ColumnSpec>) -> (f64, f64) {
    outcome.map_or((0.0, 1.0), |column| (column.centre(), column.half_width()))
}

/// Accurate in both tails.
fn inverse_logit(eta: f64) -> f64 {
    if eta >= 0.0 { 1.0 / (1.0 + libm::exp(-eta)) } else { libm::exp(eta) / (1.0 + libm::exp(eta)) }
}
