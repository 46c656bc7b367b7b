//! The rows of covariates, from the command line and from a file.

use std::path::Path;

use conclave_predict::{Table, TableRow, parse_at};
use conclave_proto::error::{ErrorCode, Fault};

use crate::faults::input;

/// Reads the rows of `--at`, then those of `--data`.
pub(super) fn tables(at: &[String], data: Option<&Path>) -> Result<Vec<Table>, Fault> {
    let option = |place: String| format!("--at {place}");
    let parsed = at.iter().map(|text| {
        let table = parse_at(text).map_err(|e| input(option(e.to_string())))?;
        Ok(Table { place: option(table.place), ..table })
    });
    parsed.chain(data.map(file)).collect()
}

/// Reads a CSV file with a header.
fn file(path: &Path) -> Result<Table, Fault> {
    let place = path.display().to_string();
    let unreadable = |e: csv::Error| Fault::new(ErrorCode::InvalidInput, format!("{place} cannot be read: {e}"));
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_path(path).map_err(unreadable)?;
    // Some programs begin a file with a byte order mark.
    let names = reader.headers().map_err(unreadable)?.iter().map(|name| name.trim_start_matches('\u{feff}').to_owned()).collect();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(unreadable)?;
        let line = record.position().map_or(0, csv::Position::line);
        rows.push(TableRow { place: format!(" line {line}"), texts: record.iter().map(str::to_owned).collect() });
    }
    Ok(Table { place, names, rows, only_columns: false })
}
