//! Regressions: the distribution of an outcome given a linear predictor.

use super::design::{Design, Offset};

/// A regression: the distribution of the outcome given a linear predictor.
#[derive(Debug, Clone, PartialEq)]
pub struct Regression {
    /// The outcome's distribution.
    pub family: Family,
    /// The outcome column.
    pub outcome: String,
    /// The linear predictor.
    pub design: Design,
    /// The formula that the job writes instead of a list of predictors, on one line.
    pub formula: Option<String>,
}

/// The outcome's distribution in a regression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Family {
    /// A 0/1 outcome; logit link.
    Logistic,
    /// A normal outcome.
    Linear {
        /// The known standard deviation in the data's units; if `None`, `sigma` is a parameter.
        sd: Option<f64>,
    },
    /// A count; log link.
    Poisson,
    /// A count with variance `mu + dispersion mu^2`; log link.
    NegativeBinomial,
    /// An outcome with heavy tails, of scale `sigma`.
    StudentT {
        /// Degrees of freedom.
        df: f64,
    },
}

impl Family {
    /// Returns the name used in job files and policies.
    pub fn kind(&self) -> &'static str {
        match self {
            Family::Logistic => "logistic",
            Family::Linear { .. } => "linear",
            Family::Poisson => "poisson",
            Family::NegativeBinomial => "negative_binomial",
            Family::StudentT { .. } => "student_t",
        }
    }

    /// Returns whether the outcome is a count, whose exposure makes it a rate.
    fn is_count(&self) -> bool {
        matches!(self, Family::Poisson | Family::NegativeBinomial)
    }

    /// Returns the family's own parameter besides the linear predictor, if it has one. It is positive and the last of all
    /// parameters.
    pub fn own_parameter(&self) -> Option<&'static str> {
        match self {
            Family::Logistic | Family::Linear { sd: Some(_) } | Family::Poisson => None,
            Family::Linear { sd: None } | Family::StudentT { .. } => Some("sigma"),
            Family::NegativeBinomial => Some("dispersion"),
        }
    }
}

impl Regression {
    /// Returns a short description of the regression for the owner who approves the job.
    pub(super) fn describe(&self) -> String {
        let Regression { family, outcome, design, formula } = self;
        let kind = match family {
            Family::Logistic => "logistic regression".to_owned(),
            Family::Linear { sd: Some(sd) } => format!("linear regression (standard deviation known to be {sd})"),
            Family::Linear { sd: None } => "linear regression".to_owned(),
            Family::Poisson => "Poisson regression".to_owned(),
            Family::NegativeBinomial => "negative binomial regression".to_owned(),
            Family::StudentT { df } => format!("regression with Student's t errors of {df} degrees of freedom"),
        };
        let on = if design.terms.is_empty() { String::new() } else { format!(" on {}", design.terms.join(", ")) };
        let with = if design.intercept { ", with an intercept" } else { "" };
        let offset = match &design.offset {
            Some(Offset::Value(column)) => format!(", with offset {column}"),
            Some(Offset::Exposure(column)) if family.is_count() => format!(", per unit of {column}"),
            Some(Offset::Exposure(column)) => format!(", with offset log({column})"),
            None => String::new(),
        };
        let written = formula.as_ref().map(|formula| format!("; by the formula {formula}")).unwrap_or_default();
        format!("{kind} of {outcome}{on}{with}{offset}{written}")
    }
}
