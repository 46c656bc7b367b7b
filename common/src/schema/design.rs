//! The linear predictor of a regression: its columns, and the numeric coding of categorical columns and interactions.

use super::derived::Derived;

/// The right-hand side of a regression: `eta = offset + intercept + sum_j theta_j x_j`.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    /// True if there is an intercept, which is then the first parameter.
    pub intercept: bool,
    /// The predictors as the job names them: a column, or columns joined by `:`.
    pub terms: Vec<String>,
    /// The numeric features `x_j` of the terms, in the order of the parameters.
    pub features: Vec<Feature>,
    /// The term with a fixed coefficient of 1.
    pub offset: Option<Offset>,
    /// The columns that are computed from declared ones. Factors name them as they name declared columns.
    pub derived: Vec<Derived>,
}

/// One number `x_j` of a record: a product of scaled columns and indicators of levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// The parameter's name: `age`, `ward[b]`, `age:ward[b]`.
    pub name: String,
    /// The number of its term in [`Design::terms`]. At most one feature of a term with levels is nonzero.
    pub term: usize,
    /// The factors of the product: one to [`MAX_FACTORS`], of different columns.
    pub factors: Vec<Factor>,
}

/// The maximum number of columns in one interaction. It keeps a product of scaled values far from subnormal numbers.
pub const MAX_FACTORS: usize = 3;

/// One factor of a feature.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Factor {
    /// The column.
    pub column: String,
    /// The number of the level whose indicator (0 or 1) is the factor; `None` for the scaled value of the column.
    pub level: Option<usize>,
}

/// A column that enters the linear predictor with a coefficient of 1, in the data's own units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offset {
    /// Its value: on the scale of the link, or in the outcome's units for linear and student_t.
    Value(String),
    /// The logarithm of its value, which is positive.
    Exposure(String),
}

impl Offset {
    /// Returns the column.
    pub fn column(&self) -> &str {
        match self {
            Offset::Value(column) | Offset::Exposure(column) => column,
        }
    }
}

/// A column with another role in a model, and the scale on which a record holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auxiliary<'a> {
    /// Scaled as declared.
    Scaled(&'a str),
    /// In the data's units, clamped to the declared bounds.
    Natural(&'a str),
    /// The logarithm of the value in the data's units, clamped to the declared bounds.
    Log(&'a str),
}

impl Auxiliary<'_> {
    /// Returns the column.
    pub fn column(&self) -> &str {
        match self {
            Auxiliary::Scaled(column) | Auxiliary::Natural(column) | Auxiliary::Log(column) => column,
        }
    }
}

impl Design {
    /// Returns the parameter names: the intercept, then one per feature.
    pub fn parameter_names(&self) -> Vec<String> {
        let first = self.intercept.then(|| "intercept".to_owned());
        first.into_iter().chain(self.features.iter().map(|f| f.name.clone())).collect()
    }

    /// Yields the declared columns that the linear predictor is computed from; a column may occur several times.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        self.columns().flat_map(|name| {
            let derived = self.derived.iter().find(|derived| derived.name == name);
            let (own, sources) = (derived.is_none().then_some(name), derived.map(|derived| derived.columns.as_slice()));
            own.into_iter().chain(sources.unwrap_or_default().iter().map(String::as_str))
        })
    }

    /// Yields the columns of the linear predictor, declared and derived; a column may occur several times.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        let factors = self.features.iter().flat_map(|f| f.factors.iter().map(|factor| factor.column.as_str()));
        factors.chain(self.offset.iter().map(Offset::column))
    }
}
