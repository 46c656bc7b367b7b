//! The rows of covariates, from the command line and from a file.

use std::path::Path;

use conclave_predict::{Table, TableRow, parse_at};
use conclave_proto::error::{ErrorCode, Fault};

use crate::faults::input;
use crate::raw_table::RawTable;

/// Reads the rows of `--at`, then those of `--data`.
pub(super) fn tables(at: &[String], data: Option<&Path>) -> Result<Vec<Table>, Fault> {
    let option = |place: String| format!("--at {place}");
    let parsed = at.iter().map(|text| {
        let table = parse_at(text).map_err(|e| input(option(e.to_string())))?;
        Ok(Table { place: option(table.place), ..table })
    });
    parsed.chain(data.map(|path| if path.is_dir() { folder(path) } else { file(path) })).collect()
}

/// Reads a folder of raw columns.
fn folder(path: &Path) -> Result<Table, Fault> {
    let table = RawTable::read(path)?;
    let row = |row: usize| TableRow {
        place: format!(" row {}", row + 1),
        texts: table.columns.iter().map(|column| column.text(row)).collect(),
    };
    let names = table.columns.iter().map(|column| column.name.clone()).collect();
    Ok(Table { place: path.display().to_string(), names, rows: (0..table.rows).map(row).collect(), only_columns: false })
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
