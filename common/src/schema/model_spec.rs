//! The model that a job specifies, and the columns that it needs.

use std::collections::BTreeMap;

use super::column::{CategoricalFeature, ColumnSpec};
use super::design::{Auxiliary, Design, Offset};
use super::regression::Regression;
use super::survival::{LifeTable, PiecewiseExponential};
use crate::parameter::{Constraint, Prior};

/// `[model]`.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelSpec {
    /// A regression of an outcome on predictors.
    Regression(Regression),
    /// Probability of a binary outcome.
    Bernoulli {
        /// Binary column.
        outcome: String,
    },
    /// Mean of a count.
    PoissonMean {
        /// Numeric column without negative values.
        outcome: String,
    },
    /// Probabilities of a categorical outcome.
    Multinomial {
        /// Column with levels.
        outcome: String,
        /// Its levels: `p[level]` is the probability of one.
        levels: Vec<String>,
    },
    /// A class, and features that are independent given it.
    NaiveBayes {
        /// Column of the class, with levels or binary.
        outcome: String,
        /// Its levels, at least two: `outcome[class]` is the probability of one.
        classes: Vec<String>,
        /// The features, at least one.
        features: Vec<CategoricalFeature>,
    },
    /// A mixture of two normal distributions.
    GaussianMixture {
        /// Numeric column.
        outcome: String,
        /// Known standard deviation of a component, in the data's units.
        sd: f64,
        /// Known weight of the first component, strictly between 0 and 1.
        weight: f64,
    },
    /// Weibull survival times with right censoring.
    Weibull {
        /// Numeric column of times, above 0.
        outcome: String,
        /// Binary column: 1 if the time is that of the event, 0 if it is that of the last observation.
        event: String,
    },
    /// Survival times with a piecewise constant hazard, on predictors.
    PiecewiseExponential(PiecewiseExponential),
    /// Probabilities of an event in each of several intervals of time.
    LifeTable(LifeTable),
    /// The banana, a benchmark of samplers.
    Banana {
        /// Numeric column of the first outcome.
        outcome: String,
        /// Numeric column of the second outcome.
        second_outcome: String,
        /// The coefficient of the first outcome's square in the second mean, in the data's units.
        bend: f64,
        /// Known precision (1 / variance) of each outcome, in the data's units.
        precision: [f64; 2],
    },
    /// Mean of a normal outcome with known standard deviation.
    GaussianMean {
        /// Numeric column.
        outcome: String,
        /// Known standard deviation, in the data's units.
        sd: f64,
    },
}

/// The names of all implemented models.
pub const BUILT: &[&str] = &[
    "logistic",
    "linear",
    "poisson",
    "negative_binomial",
    "student_t",
    "gaussian_mean",
    "bernoulli",
    "poisson_mean",
    "multinomial",
    "naive_bayes",
    "gaussian_mixture",
    "weibull",
    "piecewise_exponential",
    "life_table",
    "banana",
];

impl ModelSpec {
    /// Returns the name used in job files and policies.
    pub fn kind(&self) -> &'static str {
        match self {
            ModelSpec::Regression(regression) => regression.family.kind(),
            ModelSpec::Bernoulli { .. } => "bernoulli",
            ModelSpec::PoissonMean { .. } => "poisson_mean",
            ModelSpec::GaussianMean { .. } => "gaussian_mean",
            ModelSpec::Multinomial { .. } => "multinomial",
            ModelSpec::NaiveBayes { .. } => "naive_bayes",
            ModelSpec::GaussianMixture { .. } => "gaussian_mixture",
            ModelSpec::Weibull { .. } => "weibull",
            ModelSpec::PiecewiseExponential(_) => "piecewise_exponential",
            ModelSpec::LifeTable(_) => "life_table",
            ModelSpec::Banana { .. } => "banana",
        }
    }

    /// Returns the outcome column.
    pub fn outcome(&self) -> &str {
        match self {
            ModelSpec::Regression(Regression { outcome, .. })
            | ModelSpec::PiecewiseExponential(PiecewiseExponential { outcome, .. })
            | ModelSpec::LifeTable(LifeTable { outcome, .. })
            | ModelSpec::Bernoulli { outcome }
            | ModelSpec::PoissonMean { outcome }
            | ModelSpec::Multinomial { outcome, .. }
            | ModelSpec::NaiveBayes { outcome, .. }
            | ModelSpec::GaussianMixture { outcome, .. }
            | ModelSpec::Weibull { outcome, .. }
            | ModelSpec::Banana { outcome, .. }
            | ModelSpec::GaussianMean { outcome, .. } => outcome,
        }
    }

    /// Returns the event of a survival model, and the time from which its records are observed.
    pub fn event_and_entry(&self) -> (Option<&str>, Option<&str>) {
        match self {
            ModelSpec::PiecewiseExponential(survival) => (Some(&survival.event), survival.entry.as_deref()),
            ModelSpec::LifeTable(table) => (Some(&table.event), None),
            ModelSpec::Weibull { event, .. } => (Some(event), None),
            _ => (None, None),
        }
    }

    /// Returns the linear predictor, if the model has one.
    pub fn design(&self) -> Option<&Design> {
        match self {
            ModelSpec::Regression(regression) => Some(&regression.design),
            ModelSpec::PiecewiseExponential(survival) => Some(&survival.design),
            _ => None,
        }
    }

    /// Returns the formula, if the job writes the model as one.
    pub fn formula(&self) -> Option<&str> {
        match self {
            ModelSpec::Regression(regression) => regression.formula.as_deref(),
            _ => None,
        }
    }

    /// Returns the columns with another role in the model, in the order of [`conclave_privacy::pass::ModelData::auxiliary`].
    pub fn auxiliary(&self) -> Vec<Auxiliary<'_>> {
        match self {
            ModelSpec::Regression(regression) => match &regression.design.offset {
                Some(Offset::Value(column)) => vec![Auxiliary::Natural(column)],
                Some(Offset::Exposure(column)) => vec![Auxiliary::Log(column)],
                None => Vec::new(),
            },
            ModelSpec::Weibull { event: column, .. } | ModelSpec::Banana { second_outcome: column, .. } => {
                vec![Auxiliary::Scaled(column)]
            }
            ModelSpec::PiecewiseExponential(PiecewiseExponential { event, entry, .. }) => {
                std::iter::once(Auxiliary::Scaled(event)).chain(entry.as_deref().map(Auxiliary::Natural)).collect()
            }
            ModelSpec::LifeTable(LifeTable { event, by, .. }) => {
                std::iter::once(event).chain(by.as_ref().map(|by| &by.column)).map(|column| Auxiliary::Scaled(column)).collect()
            }
            ModelSpec::NaiveBayes { features, .. } => features.iter().map(|feature| Auxiliary::Scaled(&feature.column)).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns every declared column that the model reads, each once, with the outcome first.
    pub fn columns(&self) -> Vec<&str> {
        let mut columns = vec![self.outcome()];
        let predictors = self.design().into_iter().flat_map(Design::sources);
        let auxiliary = self.auxiliary();
        for column in predictors.chain(auxiliary.iter().map(|a| match *a {
            Auxiliary::Scaled(column) | Auxiliary::Natural(column) | Auxiliary::Log(column) => column,
        })) {
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        columns
    }

    /// Returns the parameter names, in the order of theta.
    pub fn parameter_names(&self) -> Vec<String> {
        match self {
            ModelSpec::Regression(Regression { family, design, .. }) => {
                let own = family.own_parameter().map(str::to_owned);
                design.parameter_names().into_iter().chain(own).collect()
            }
            ModelSpec::Bernoulli { .. } => vec!["p".to_owned()],
            ModelSpec::PoissonMean { .. } => vec!["rate".to_owned()],
            ModelSpec::GaussianMean { .. } => vec!["mean".to_owned()],
            ModelSpec::Multinomial { levels, .. } => levels.iter().map(|level| format!("p[{level}]")).collect(),
            ModelSpec::NaiveBayes { outcome, classes, features } => naive_bayes_names(outcome, classes, features),
            ModelSpec::GaussianMixture { .. } | ModelSpec::Banana { .. } => vec!["theta_1".to_owned(), "theta_2".to_owned()],
            ModelSpec::Weibull { .. } => vec!["shape".to_owned(), "scale".to_owned()],
            ModelSpec::LifeTable(table) => table.parameter_names(),
            ModelSpec::PiecewiseExponential(survival) => {
                survival.log_hazards().chain(survival.design.parameter_names()).collect()
            }
        }
    }

    /// Returns the constraint of each parameter, in the order of theta. A simplex of K parameters has K consecutive entries.
    pub fn constraints(&self) -> Vec<Constraint> {
        match self {
            ModelSpec::Regression(Regression { family, design, .. }) => {
                let coefficients = usize::from(design.intercept) + design.features.len();
                let own = family.own_parameter().map(|_| Constraint::Positive);
                std::iter::repeat_n(Constraint::Real, coefficients).chain(own).collect()
            }
            ModelSpec::Bernoulli { .. } => vec![Constraint::UnitInterval],
            ModelSpec::PoissonMean { .. } => vec![Constraint::Positive],
            ModelSpec::GaussianMean { .. } => vec![Constraint::Real],
            ModelSpec::Multinomial { levels, .. } => vec![Constraint::Simplex { size: levels.len() }; levels.len()],
            ModelSpec::NaiveBayes { classes, features, .. } => {
                let simplex = |size: usize| std::iter::repeat_n(Constraint::Simplex { size }, size);
                let given = |feature: &CategoricalFeature| {
                    let size = feature.levels.len();
                    (0..classes.len()).flat_map(move |_| simplex(size))
                };
                simplex(classes.len()).chain(features.iter().flat_map(given)).collect()
            }
            ModelSpec::GaussianMixture { .. } | ModelSpec::Banana { .. } => vec![Constraint::Real; 2],
            ModelSpec::LifeTable(table) => vec![Constraint::UnitInterval; table.groups() * table.intervals()],
            ModelSpec::Weibull { .. } => vec![Constraint::Positive; 2],
            ModelSpec::PiecewiseExponential(survival) => {
                vec![Constraint::Real; survival.intervals() + survival.design.features.len()]
            }
        }
    }

    /// Returns the unit of each parameter on the scale of its prior. Default priors and boxes are proportional to it.
    ///
    /// It is 1 for parameters without a unit and for parameters in half widths of a column's bounds. For a parameter in the
    /// data's units it is the largest declared magnitude of the column.
    pub fn units(&self, columns: &BTreeMap<String, ColumnSpec>) -> Vec<f64> {
        let greatest = |column: &str| match columns.get(column) {
            Some(ColumnSpec::Numeric { min, max }) => min.abs().max(max.abs()),
            _ => 1.0,
        };
        match self {
            ModelSpec::PoissonMean { outcome } => vec![greatest(outcome)],
            ModelSpec::Banana { outcome, second_outcome, .. } => vec![greatest(outcome), greatest(second_outcome)],
            _ => vec![1.0; self.parameter_names().len()],
        }
    }

    /// Returns the default prior of a parameter with this constraint and unit. A probability of a life table has a half prior event:
    /// flat ones would add an event to each of its intervals.
    pub fn weak_prior(&self, constraint: Constraint, unit: f64) -> Prior {
        match self {
            ModelSpec::LifeTable(table) => table.weak_prior(),
            _ => Prior::weak(constraint, unit),
        }
    }

    /// Returns the default concentration of each component of a simplex: 1, or 2 for naive Bayes, whose many probabilities it
    /// keeps away from 0 (Ju et al. 2022, section 4).
    pub fn default_concentration(&self) -> f64 {
        if matches!(self, ModelSpec::NaiveBayes { .. }) { 2.0 } else { 1.0 }
    }

    /// Returns whether the posterior is curved, so that a normal approximation by mean and precision describes it poorly.
    pub fn is_bent(&self) -> bool {
        matches!(self, ModelSpec::Banana { .. })
    }

    /// Returns a short description of the model for the owner who approves the job.
    pub fn describe(&self) -> String {
        match self {
            ModelSpec::Regression(regression) => regression.describe(),
            ModelSpec::Bernoulli { outcome } => format!("probability of {outcome}"),
            ModelSpec::PoissonMean { outcome } => format!("mean of the count {outcome} (Poisson)"),
            ModelSpec::GaussianMean { outcome, sd } => format!("mean of {outcome}, standard deviation known to be {sd}"),
            ModelSpec::Multinomial { outcome, .. } => format!("probabilities of the levels of {outcome}"),
            ModelSpec::NaiveBayes { outcome, features, .. } => {
                let features: Vec<&str> = features.iter().map(|feature| feature.column.as_str()).collect();
                format!("naive Bayes of the class {outcome} and {} given it", features.join(", "))
            }
            ModelSpec::GaussianMixture { outcome, sd, .. } => {
                format!("mixture of two normal distributions of {outcome}, their standard deviation known to be {sd}")
            }
            ModelSpec::Weibull { outcome, event } => format!("Weibull survival over {outcome}, censored where {event} is 0"),
            ModelSpec::PiecewiseExponential(survival) => survival.describe(),
            ModelSpec::LifeTable(table) => table.describe(),
            ModelSpec::Banana { outcome, second_outcome, .. } => {
                format!("banana of {outcome} and {second_outcome}, a benchmark of samplers")
            }
        }
    }
}

/// Returns `class[a]` for each class, then `x[b|a]`, the probability of level b in class a, for each feature and class.
fn naive_bayes_names(outcome: &str, classes: &[String], features: &[CategoricalFeature]) -> Vec<String> {
    let of_classes = classes.iter().map(|class| format!("{outcome}[{class}]"));
    let given = features.iter().flat_map(|CategoricalFeature { column, levels }| {
        classes.iter().flat_map(move |class| levels.iter().map(move |level| format!("{column}[{level}|{class}]")))
    });
    of_classes.chain(given).collect()
}
