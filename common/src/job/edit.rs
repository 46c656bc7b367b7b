//! Edits of a job file's keys.

use toml::{Table, Value};

use super::error::JobError;

/// Reads the file as a table.
///
/// # Errors
/// A file that is not TOML.
pub(super) fn read(text: &str) -> Result<Table, JobError> {
    text.parse().map_err(|e: toml::de::Error| JobError::new("job", e.to_string()))
}

/// Writes a table as text.
///
/// # Errors
/// A value that TOML cannot represent.
pub(super) fn written(file: &Table) -> Result<String, JobError> {
    toml::to_string(file).map_err(|e| JobError::new("job", e.to_string()))
}

/// Returns the table under a key, creating an empty one if there is none.
///
/// # Errors
/// A value under the key that is not a table.
pub(super) fn table<'a>(parent: &'a mut Table, key: &str) -> Result<&'a mut Table, JobError> {
    let value = parent.entry(key).or_insert_with(|| Value::Table(Table::new()));
    value.as_table_mut().ok_or_else(|| JobError::new(key, "is not a table"))
}

/// Returns an integer as a TOML value.
///
/// # Errors
/// An integer beyond TOML's range.
pub(super) fn whole(key: &str, value: u64) -> Result<Value, JobError> {
    i64::try_from(value).map(Value::Integer).map_err(|_| JobError::new(key, format!("{value} is too large")))
}
