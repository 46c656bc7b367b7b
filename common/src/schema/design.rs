//! The linear predictor of a regression: which columns it is made of, and how categorical columns and
//! interactions become numbers.

/// The right-hand side of a regression: `eta = offset + intercept + sum_j theta_j x_j`.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    /// Whether there is an intercept, the first parameter then.
    pub intercept: bool,
    /// The predictors as the job names them: a column, or columns joined by `:`.
    pub terms: Vec<String>,
    /// The numbers `x_j` that they become, in the order of the parameters.
    pub features: Vec<Feature>,
    /// What enters with a coefficient of 1.
    pub offset: Option<Offset>,
}

/// One number `x_j` of a record: a product of scaled columns and indicators of levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// The parameter's name: `age`, `ward[b]`, `age:ward[b]`.
    pub name: String,
    /// The number of its term among [`Design::terms`]. At most one feature of a term with levels is not 0.
    pub term: usize,
    /// What is multiplied, one to [`MAX_FACTORS`] factors of different columns.
    pub factors: Vec<Factor>,
}

/// The most columns of one interaction. With no more, a product of scaled values stays far from
/// subnormal numbers.
pub const MAX_FACTORS: usize = 3;

/// One factor of a feature.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Factor {
    /// The column.
    pub column: String,
    /// The number of the level whose indicator (0 or 1) it is; the scaled value of the column where
    /// there is none.
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
    /// The column.
    pub fn column(&self) -> &str {
        match self {
            Offset::Value(column) | Offset::Exposure(column) => column,
        }
    }
}

/// A column of another part in a model, and on which scale a record holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auxiliary<'a> {
    /// Scaled as declared.
    Scaled(&'a str),
    /// In the data's units, clamped to the declared bounds.
    Natural(&'a str),
    /// The logarithm of it in the data's units, clamped to the declared bounds.
    Log(&'a str),
}

impl Auxiliary<'_> {
    /// The column.
    pub fn column(&self) -> &str {
        match self {
            Auxiliary::Scaled(column) | Auxiliary::Natural(column) | Auxiliary::Log(column) => column,
        }
    }
}

impl Design {
    /// Parameter names: the intercept, then one per feature.
    pub fn parameter_names(&self) -> Vec<String> {
        let first = self.intercept.then(|| "intercept".to_owned());
        first.into_iter().chain(self.features.iter().map(|f| f.name.clone())).collect()
    }

    /// The columns it reads; one may come several times.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        let factors = self.features.iter().flat_map(|f| f.factors.iter().map(|factor| factor.column.as_str()));
        factors.chain(self.offset.iter().map(Offset::column))
    }
}
