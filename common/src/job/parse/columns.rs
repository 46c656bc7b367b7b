//! `[columns]`: the public bounds of each column.

use std::collections::BTreeMap;

use super::checks::short;
use crate::job::error::JobError;
use crate::job::limits::{MAX_BOUND, MAX_COLUMNS};
use crate::job::raw::{RawColumn, RawLevel};
use crate::schema::{ColumnSpec, Levels};

pub(super) fn columns(raw: &BTreeMap<String, RawColumn>) -> Result<BTreeMap<String, ColumnSpec>, JobError> {
    if raw.len() > MAX_COLUMNS {
        return Err(JobError::new("columns", format!("{} are declared; at most {MAX_COLUMNS}", raw.len())));
    }
    raw.iter().map(|(name, c)| short("columns", name).and_then(|()| Ok((name.clone(), column(name, c)?)))).collect()
}

fn column(name: &str, raw: &RawColumn) -> Result<ColumnSpec, JobError> {
    let key = format!("columns.{name}");
    match (raw.min, raw.max, raw.binary, &raw.levels) {
        (None, None, None | Some(false), Some(written)) => levels(key, written),
        (None, None, Some(true), None) => Ok(ColumnSpec::Binary),
        (Some(min), Some(max), None | Some(false), None) => {
            let sound = min.abs() <= MAX_BOUND && max.abs() <= MAX_BOUND && max - min >= MAX_BOUND.recip();
            if sound {
                Ok(ColumnSpec::Numeric { min, max })
            } else {
                let limits = format!("within ±{MAX_BOUND:e}, and with min < max");
                Err(JobError::new(key, format!("bounds must be finite, {limits}, not min = {min}, max = {max}")))
            }
        }
        _ => Err(JobError::new(key, "declare either { min = …, max = … }, { binary = true } or { levels = […] }")),
    }
}

/// Maximum number of levels of a column; each but the first is a parameter.
const MAX_LEVELS: usize = 256;

fn levels(key: String, written: &[RawLevel]) -> Result<ColumnSpec, JobError> {
    let texts: Vec<String> = written.iter().map(RawLevel::text).collect();
    if !(2..=MAX_LEVELS).contains(&texts.len()) {
        return Err(JobError::new(key, format!("needs 2 to {MAX_LEVELS} levels, not {}", texts.len())));
    }
    for text in &texts {
        short(&key, text)?;
        if text.is_empty() || text.trim() != text || text.chars().any(char::is_control) {
            return Err(JobError::new(
                key,
                format!("the level {text:?} is empty, has surrounding blanks, or contains control characters"),
            ));
        }
    }
    let levels = Levels::new(texts.into_iter().zip(written.iter().map(RawLevel::is_number)));
    if let Some(level) = levels.repeated() {
        return Err(JobError::new(key, format!("the level {level:?} is named twice")));
    }
    Ok(ColumnSpec::Levels(levels))
}
