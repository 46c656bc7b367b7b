//! Tables of covariates as texts, and the reading of a column by its declaration.

use conclave_common::schema::ColumnSpec;
use conclave_common::spelling::nearest;

use crate::error::PredictError;

/// A table of covariates as texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its source, for messages.
    pub place: String,
    /// The columns' names.
    pub names: Vec<String>,
    /// The rows.
    pub rows: Vec<TableRow>,
    /// True if every column must be one of the model; further columns of a file are ignored.
    pub only_columns: bool,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRow {
    /// Its place in the table's source.
    pub place: String,
    /// A text per column.
    pub texts: Vec<String>,
}

/// A value outside its column's bounds, which the model and the prediction replace by the nearest one.
#[derive(Debug, Clone, PartialEq)]
pub struct Clamped {
    /// The column.
    pub column: String,
    /// The first such value.
    pub value: f64,
    /// The value in its place.
    pub used: f64,
    /// The declared bounds, as in `20 to 80`.
    pub bounds: String,
    /// The place of the first row.
    pub place: String,
    /// The number of rows with such a value.
    pub rows: usize,
}

/// Returns the place of each needed column in a table; `None` for an exposure that is left out.
pub(crate) fn places(table: &Table, needed: &[&str], exposure: Option<&str>) -> Result<Vec<Option<usize>>, PredictError> {
    let place = &table.place;
    let matters = |name: &String| table.only_columns || needed.contains(&name.as_str());
    let repeated = |(at, name): &(usize, &String)| table.names[..*at].contains(name) && matters(name);
    if let Some((_, name)) = table.names.iter().enumerate().find(repeated) {
        return Err(PredictError::new(format!("{place}: column `{name}` stands twice")));
    }
    if let Some(name) = table.names.iter().find(|name| table.only_columns && !needed.contains(&name.as_str())) {
        let suggestion = nearest(name, needed.iter().copied()).map(|near| format!(" (did you mean `{near}`?)"));
        let message = format!(
            "{place}: `{name}` is not a predictor{}; the model has {}",
            suggestion.unwrap_or_default(),
            needed.join(", ")
        );
        return Err(PredictError::new(message));
    }
    let found: Vec<Option<usize>> = needed.iter().map(|name| table.names.iter().position(|column| column == name)).collect();
    let missing = needed.iter().zip(&found).filter(|(name, found)| found.is_none() && exposure != Some(**name));
    let missing: Vec<&str> = missing.map(|(name, _)| *name).collect();
    if missing.is_empty() {
        return Ok(found);
    }
    Err(PredictError::new(format!("{place}: no value for {}; a row states every predictor", missing.join(", "))))
}

/// A column being read.
pub(crate) struct Reader<'a> {
    pub(crate) column: &'a str,
    pub(crate) bounds: &'a ColumnSpec,
}

impl Reader<'_> {
    /// Reads one text, and notes a value that the bounds replace.
    pub(crate) fn read(&self, text: &str, place: &str, clamped: &mut Vec<Clamped>) -> Result<f64, PredictError> {
        let Self { column, bounds } = *self;
        if let ColumnSpec::Levels(levels) = bounds {
            let level = bounds.level_of(text);
            let message = || format!("{place}: {column} = {text:?} is not a level; it has {}", levels.join(", "));
            return if level.is_nan() { Err(PredictError::new(message())) } else { Ok(level) };
        }
        let value: f64 = text.parse().unwrap_or(f64::NAN);
        if !value.is_finite() {
            return Err(PredictError::new(format!("{place}: {column} = {text:?} is not a number")));
        }
        let used = match *bounds {
            ColumnSpec::Numeric { min, max } => value.clamp(min, max),
            _ => bounds.scale(value),
        };
        if used != value {
            self.note(value, used, place, clamped);
        }
        Ok(used)
    }

    fn note(&self, value: f64, used: f64, place: &str, clamped: &mut Vec<Clamped>) {
        if let Some(known) = clamped.iter_mut().find(|known| known.column == self.column) {
            known.rows += 1;
            return;
        }
        let bounds = match self.bounds {
            ColumnSpec::Numeric { min, max } => format!("{min} to {max}"),
            _ => "0 or 1".to_owned(),
        };
        clamped.push(Clamped { column: self.column.to_owned(), value, used, bounds, place: place.to_owned(), rows: 1 });
    }
}
