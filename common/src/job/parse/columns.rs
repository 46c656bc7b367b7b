//! `[columns]`: the public bounds of each column.

use std::collections::BTreeMap;

use super::checks::short;
use crate::job::error::JobError;
use crate::job::limits::{MAX_BOUND, MAX_COLUMNS};
use crate::schema::ColumnSpec;
use crate::settings::{Fault, Keys, Setting, Value};

pub(super) fn check_names(columns: &BTreeMap<String, ColumnSpec>) -> Result<(), JobError> {
    if columns.len() > MAX_COLUMNS {
        return Err(JobError::new("columns", format!("{} are declared; at most {MAX_COLUMNS}", columns.len())));
    }
    columns.keys().try_for_each(|name| short("columns", name))
}

crate::settings! {
    struct Column { min: Option<f64>, max: Option<f64>, binary: bool = false, levels: Option<Vec<Level>> }
}

/// A level in the file: a text, or a number that is read as its text.
struct Level(String);

impl Setting for Level {
    fn read(value: &Value) -> Result<Self, Fault> {
        Ok(Self(match value {
            Value::Integer(whole) => whole.to_string(),
            Value::Float(number) => number.to_string(),
            other => String::read(other)?,
        }))
    }
}

impl Setting for ColumnSpec {
    const KEYS: Keys = Column::KEYS;

    fn read(value: &Value) -> Result<Self, Fault> {
        match Column::read(value)? {
            Column { min: None, max: None, binary: false, levels: Some(texts) } => levels(texts),
            Column { min: None, max: None, binary: true, levels: None } => Ok(ColumnSpec::Binary),
            Column { min: Some(min), max: Some(max), binary: false, levels: None } => {
                if min.abs() <= MAX_BOUND && max.abs() <= MAX_BOUND && max - min >= MAX_BOUND.recip() {
                    return Ok(ColumnSpec::Numeric { min, max });
                }
                let limits = format!("within ±{MAX_BOUND:e}, and with min < max");
                Err(Fault::of(format!("bounds must be finite, {limits}, not min = {min}, max = {max}")))
            }
            _ => Err(Fault::of("declare either { min = …, max = … }, { binary = true } or { levels = […] }")),
        }
    }
}

/// Maximum number of levels of a column; each but the first is a parameter.
const MAX_LEVELS: usize = 256;

fn levels(texts: Vec<Level>) -> Result<ColumnSpec, Fault> {
    let texts: Vec<String> = texts.into_iter().map(|Level(text)| text).collect();
    if !(2..=MAX_LEVELS).contains(&texts.len()) {
        return Err(Fault::of(format!("needs 2 to {MAX_LEVELS} levels, not {}", texts.len())));
    }
    for (at, text) in texts.iter().enumerate() {
        short("levels", text).map_err(|error| Fault::of(error.message))?;
        if text.is_empty() || text.trim() != text || text.chars().any(char::is_control) {
            return Err(Fault::of(format!(
                "the level {text:?} is empty, has surrounding blanks, or contains control characters"
            )));
        }
        let before = ColumnSpec::Levels(texts[..at].to_vec());
        if !before.level_of(text).is_nan() {
            return Err(Fault::of(format!("the level {text:?} is named twice")));
        }
    }
    Ok(ColumnSpec::Levels(texts))
}
