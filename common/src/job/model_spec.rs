//! Which model a job asks for, and the columns it needs.

/// `[model]`.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelSpec {
    /// Logistic regression of a 0/1 outcome.
    Logistic {
        /// Binary column.
        outcome: String,
        /// Predictor columns, in order.
        predictors: Vec<String>,
        /// Whether there is an intercept, the first parameter then.
        intercept: bool,
    },
    /// Probability of a binary outcome.
    Bernoulli {
        /// Binary column.
        outcome: String,
    },
    /// Mean of a count.
    PoissonMean {
        /// Numeric column that is nowhere negative.
        outcome: String,
    },
    /// Mean of a normal outcome whose standard deviation is known.
    GaussianMean {
        /// Numeric column.
        outcome: String,
        /// Known standard deviation, in the data's units.
        sd: f64,
    },
}

/// What values a parameter may take at all, before any box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constraint {
    /// Any real number.
    Real,
    /// Above 0.
    Positive,
    /// Strictly between 0 and 1.
    UnitInterval,
    /// One of `size` consecutive parameters that are positive and add up to 1.
    Simplex {
        /// Number of parameters that add up to 1, at least 2.
        size: usize,
    },
}

/// Kinds that can be run.
pub(super) const BUILT: &[&str] = &["logistic", "gaussian_mean", "bernoulli", "poisson_mean"];
/// Kinds that are known by name and can't be run yet.
pub(super) const NOT_BUILT: &[&str] =
    &["multinomial", "linear", "poisson", "negative_binomial", "student_t", "gaussian_mixture", "weibull"];

impl ModelSpec {
    /// The name in job files and policies.
    pub fn kind(&self) -> &'static str {
        match self {
            ModelSpec::Logistic { .. } => "logistic",
            ModelSpec::Bernoulli { .. } => "bernoulli",
            ModelSpec::PoissonMean { .. } => "poisson_mean",
            ModelSpec::GaussianMean { .. } => "gaussian_mean",
        }
    }

    /// The outcome column.
    pub fn outcome(&self) -> &str {
        match self {
            ModelSpec::Logistic { outcome, .. }
            | ModelSpec::Bernoulli { outcome }
            | ModelSpec::PoissonMean { outcome }
            | ModelSpec::GaussianMean { outcome, .. } => outcome,
        }
    }

    /// The predictor columns, in order.
    pub fn predictors(&self) -> &[String] {
        match self {
            ModelSpec::Logistic { predictors, .. } => predictors,
            ModelSpec::Bernoulli { .. } | ModelSpec::PoissonMean { .. } | ModelSpec::GaussianMean { .. } => &[],
        }
    }

    /// Every column that the model reads, the outcome first.
    pub fn columns(&self) -> Vec<&str> {
        std::iter::once(self.outcome()).chain(self.predictors().iter().map(String::as_str)).collect()
    }

    /// Parameter names, in the order of every theta.
    pub fn parameter_names(&self) -> Vec<String> {
        match self {
            ModelSpec::Logistic { predictors, intercept, .. } => {
                let first = intercept.then(|| "intercept".to_owned());
                first.into_iter().chain(predictors.iter().cloned()).collect()
            }
            ModelSpec::Bernoulli { .. } => vec!["p".to_owned()],
            ModelSpec::PoissonMean { .. } => vec!["rate".to_owned()],
            ModelSpec::GaussianMean { .. } => vec!["mean".to_owned()],
        }
    }

    /// The constraint of each parameter, in the order of every theta. A simplex takes as many consecutive entries as it has parameters.
    pub fn constraints(&self) -> Vec<Constraint> {
        match self {
            ModelSpec::Logistic { .. } | ModelSpec::GaussianMean { .. } => vec![Constraint::Real; self.parameter_names().len()],
            ModelSpec::Bernoulli { .. } => vec![Constraint::UnitInterval],
            ModelSpec::PoissonMean { .. } => vec![Constraint::Positive],
        }
    }

    /// The model in a few words, for those who decide on it.
    pub fn describe(&self) -> String {
        match self {
            ModelSpec::Logistic { outcome, predictors, intercept } => {
                let with = if *intercept { ", with an intercept" } else { "" };
                format!("logistic regression of {outcome} on {}{with}", predictors.join(", "))
            }
            ModelSpec::Bernoulli { outcome } => format!("probability of {outcome}"),
            ModelSpec::PoissonMean { outcome } => format!("mean of the count {outcome} (Poisson)"),
            ModelSpec::GaussianMean { outcome, sd } => format!("mean of {outcome}, standard deviation known to be {sd}"),
        }
    }
}
