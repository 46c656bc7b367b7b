//! Rows of covariates, and their assembly into the model's features.

use std::fmt;

use conclave_common::job::JobSpec;
use conclave_common::model::{Assembly, Scaling};
use conclave_common::schema::{CategoricalFeature, ColumnSpec, Design, ModelSpec, Offset};

use crate::error::PredictError;
use crate::table::{Clamped, Reader, Table, TableRow, places};

/// Rows of covariates within the declared bounds, by column.
#[derive(Debug, Clone, PartialEq)]
pub struct Covariates {
    columns: Vec<Covariate>,
    /// For each row, true if it states no exposure: its prediction is per unit.
    per_unit: Vec<bool>,
}

/// One column: numbers, 0 or 1, or the numbers of levels.
#[derive(Debug, Clone, PartialEq)]
struct Covariate {
    name: String,
    values: Vec<f64>,
}

/// A covariate's value in a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number, in the data's units.
    Number(f64),
    /// The name of a level.
    Level(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => write!(f, "{number}"),
            Value::Level(level) => f.write_str(level),
        }
    }
}

/// A row as the model has it: the features on the scale of the priors, and the offset in its own units.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub(crate) features: Vec<f64>,
    pub(crate) offset: f64,
}

impl Covariates {
    /// Returns the columns that a row states, in the model's order, each once. The exposure may be left out.
    #[must_use]
    pub fn needed(spec: &JobSpec) -> Vec<&str> {
        let mut needed = Vec::new();
        let classifying = categories(&spec.model);
        let regression = spec.model.design().into_iter().flat_map(Design::sources);
        for column in regression.chain(classifying.iter().map(|feature| feature.column.as_str())) {
            if !needed.contains(&column) {
                needed.push(column);
            }
        }
        needed
    }

    /// Returns the one row of a model without predictors, per unit of its exposure; `None` if rows must state predictors.
    #[must_use]
    pub fn without_rows(spec: &JobSpec) -> Option<Self> {
        let needed = Self::needed(spec);
        let exposure = exposure(spec);
        let centre = |name: &str| spec.columns.get(name).map_or(0.0, ColumnSpec::centre);
        let column = |name: &&str| Covariate { name: (*name).to_owned(), values: vec![centre(name)] };
        let open = needed.iter().all(|name| exposure == Some(*name));
        open.then(|| Self { columns: needed.iter().map(column).collect(), per_unit: vec![!needed.is_empty()] })
    }

    /// Reads the rows of several tables, with the values that the bounds replace.
    ///
    /// # Errors
    /// Columns that are missing, unknown or repeated; a text that is no number or no level; no row.
    pub fn read(spec: &JobSpec, tables: &[Table]) -> Result<(Self, Vec<Clamped>), PredictError> {
        let needed = Self::needed(spec);
        if needed.is_empty() {
            return Err(PredictError::new("the model has no predictors: predict without rows of covariates"));
        }
        let exposure = exposure(spec);
        let mut covariates = Self {
            columns: needed.iter().map(|name| Covariate { name: (*name).to_owned(), values: Vec::new() }).collect(),
            per_unit: Vec::new(),
        };
        let mut clamped = Vec::new();
        for table in tables {
            let places = places(table, &needed, exposure)?;
            for (at, (column, place)) in covariates.columns.iter_mut().zip(&places).enumerate() {
                let Some(bounds) = spec.columns.get(needed[at]) else {
                    return Err(PredictError::new(format!("column `{}` is not declared", column.name)));
                };
                let reader = Reader { column: &column.name, bounds };
                for TableRow { place: row, texts } in &table.rows {
                    let text = place.and_then(|place| texts.get(place));
                    let value = text.map(|text| reader.read(text.trim(), &format!("{}{row}", table.place), &mut clamped));
                    // An exposure that is not stated: `rows` leaves it out, since 1 need not lie within its bounds.
                    column.values.push(value.transpose()?.unwrap_or_else(|| bounds.centre()));
                }
            }
            let has_exposure = exposure.and_then(|name| needed.iter().position(|column| *column == name)).map(|at| places[at]);
            covariates.per_unit.extend(table.rows.iter().map(|_| has_exposure == Some(None)));
        }
        if covariates.per_unit.is_empty() {
            return Err(PredictError::new("there are no rows to predict at"));
        }
        Ok((covariates, clamped))
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn count(&self) -> usize {
        self.per_unit.len()
    }

    /// Returns each column with its value in a row. An exposure that a row does not state is left out.
    #[must_use]
    pub fn row(&self, spec: &JobSpec, row: usize) -> Vec<(&str, Value)> {
        let stated = |column: &&Covariate| !(self.per_unit[row] && exposure(spec) == Some(column.name.as_str()));
        let value = |column: &Covariate| match spec.columns.get(&column.name) {
            Some(ColumnSpec::Levels(levels)) => {
                Value::Level(levels.get(column.values[row] as usize).cloned().unwrap_or_default())
            }
            _ => Value::Number(column.values[row]),
        };
        self.columns.iter().filter(stated).map(|column| (column.name.as_str(), value(column))).collect()
    }

    /// Returns the values of a column.
    pub(crate) fn column(&self, name: &str) -> Option<&[f64]> {
        self.columns.iter().find(|column| column.name == name).map(|column| column.values.as_slice())
    }

    /// Returns whether every row states the exposure, or the model has none.
    pub(crate) fn states_exposure(&self) -> bool {
        !self.per_unit.contains(&true)
    }

    /// Returns the same rows with other values in one column.
    pub(crate) fn with_column(&self, name: &str, values: Vec<f64>) -> Self {
        let mut with = self.clone();
        if let Some(column) = with.columns.iter_mut().find(|column| column.name == name) {
            column.values = values;
        }
        with
    }

    /// Assembles the rows as a party assembles its records.
    pub(crate) fn rows(&self, spec: &JobSpec) -> Result<Vec<Row>, PredictError> {
        // The outcome and other columns of records do not enter a prediction: their values are on the model's scale, and 0.
        let scaling = |name: &str, bounds: &ColumnSpec| {
            Some(match (self.column(name), bounds) {
                (None, _) => Scaling::Done,
                (_, ColumnSpec::Levels(levels)) => Scaling::of_words(bounds, levels),
                _ => Scaling::of_numbers(bounds),
            })
        };
        let assembly = Assembly::new(&spec.model, &spec.columns, scaling)
            .map_err(|column| PredictError::new(format!("column `{column}` is not declared")))?;
        let zeros = vec![0.0; self.count()];
        let values: Vec<&[f64]> = assembly.columns().iter().map(|name| self.column(name).unwrap_or(&zeros)).collect();
        let data = assembly.data(&values, None);
        let has_offset = spec.model.design().is_some_and(|design| design.offset.is_some());
        let offset = |row: usize| match data.auxiliary.first() {
            Some(offset) if has_offset && !self.per_unit[row] => offset[row],
            _ => 0.0,
        };
        // Categories stand beside the outcome, as numbers of levels: last among the other columns.
        let of_categories = data.auxiliary.len().saturating_sub(categories(&spec.model).len());
        let features = if spec.model.design().is_some() { &data.predictors } else { &data.auxiliary[of_categories..] };
        let row = |row: usize| Row { features: features.iter().map(|feature| feature[row]).collect(), offset: offset(row) };
        Ok((0..self.count()).map(row).collect())
    }
}

/// Returns the categories that a model without a linear predictor distinguishes: the features of naive Bayes, the groups of a life table.
fn categories(model: &ModelSpec) -> &[CategoricalFeature] {
    match model {
        ModelSpec::NaiveBayes { features, .. } => features,
        ModelSpec::LifeTable(table) => table.by.as_slice(),
        _ => &[],
    }
}

/// Returns the column of the exposure, which a row may leave out, unless it is a predictor too.
fn exposure(spec: &JobSpec) -> Option<&str> {
    let design = spec.model.design()?;
    let Some(Offset::Exposure(column)) = &design.offset else { return None };
    let mut factors = design.features.iter().flat_map(|feature| &feature.factors).map(|factor| &factor.column);
    let mut of_derived = design.derived.iter().flat_map(|derived| &derived.columns);
    (!factors.any(|name| name == column) && !of_derived.any(|name| name == column)).then_some(column)
}
