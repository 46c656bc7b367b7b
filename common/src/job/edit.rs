//! Keys of a job file that are set anew.

use toml::{Table, Value};

use super::error::JobError;

/// The file as a table.
///
/// # Errors
/// A file that is no TOML.
pub(super) fn read(text: &str) -> Result<Table, JobError> {
    text.parse().map_err(|e: toml::de::Error| JobError::new("job", e.to_string()))
}

/// The text of a table.
///
/// # Errors
/// A value that TOML has no form for.
pub(super) fn written(file: &Table) -> Result<String, JobError> {
    toml::to_string(file).map_err(|e| JobError::new("job", e.to_string()))
}

/// The table under a key, an empty one where there is none.
///
/// # Errors
/// Another value there.
pub(super) fn table<'a>(parent: &'a mut Table, key: &str) -> Result<&'a mut Table, JobError> {
    let value = parent.entry(key).or_insert_with(|| Value::Table(Table::new()));
    value.as_table_mut().ok_or_else(|| JobError::new(key, "is not a table"))
}

/// A whole number.
///
/// # Errors
/// One that TOML's integers don't hold.
pub(super) fn whole(key: &str, value: u64) -> Result<Value, JobError> {
    i64::try_from(value).map(Value::Integer).map_err(|_| JobError::new(key, format!("{value} is too great")))
}
