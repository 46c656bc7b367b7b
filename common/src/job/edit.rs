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

/// Returns the text of a job file with lines added under a table's header, which is appended if the text has none. The rest of the
/// text stays as it is, comments included. The result may not parse, for example if the table is written inline.
#[must_use]
pub fn with_lines(text: &str, table: &str, added: &[impl AsRef<str>]) -> String {
    let header = format!("[{table}]");
    let mut lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.trim_start().starts_with(&header)).unwrap_or_else(|| {
        lines.push(&header);
        lines.len() - 1
    });
    lines.splice(at + 1..at + 1, added.iter().map(AsRef::as_ref));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_under_their_header() {
        let text = "a = 1\n [prior] # mine\nb = 2";
        assert_eq!(with_lines(text, "prior", &["c = 3", "d = 4"]), "a = 1\n [prior] # mine\nc = 3\nd = 4\nb = 2\n");
        assert_eq!(with_lines(text, "release", &["c = 3"]), "a = 1\n [prior] # mine\nb = 2\n[release]\nc = 3\n");
    }
}
