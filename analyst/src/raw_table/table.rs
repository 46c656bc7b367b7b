//! Reads a folder of raw columns.

use std::path::{Path, PathBuf};

use conclave_proto::error::Fault;

use super::description::{Column, Description, Kind};
use crate::faults::input;
use crate::files;

/// A table of raw columns.
#[derive(Debug, PartialEq)]
pub(crate) struct RawTable {
    pub(crate) rows: usize,
    pub(crate) columns: Vec<RawColumn>,
}

/// A column of a table.
#[derive(Debug, PartialEq)]
pub(crate) struct RawColumn {
    pub(crate) name: String,
    pub(crate) cells: Cells,
    /// For each row, 1 where the value is missing; empty where none is.
    nulls: Vec<u8>,
}

/// The values of a column, one per row.
#[derive(Debug, PartialEq)]
pub(crate) enum Cells {
    Numbers(Vec<f64>),
    /// Places in `words`; any number where the value is missing.
    Texts {
        places: Vec<i32>,
        words: Vec<String>,
    },
}

impl RawTable {
    /// Reads the folder that holds `columns.json`.
    ///
    /// # Errors
    /// A missing file, or one that contradicts the description.
    pub(crate) fn read(folder: &Path) -> Result<Self, Fault> {
        let path = folder.join("columns.json");
        let description = serde_json::from_str(&files::read(&path)?);
        let Description { rows, columns } = description.map_err(|e| input(format!("{}: {e}", path.display())))?;
        let columns = columns.into_iter().map(|column| read_column(folder, rows, column)).collect::<Result<_, _>>()?;
        Ok(Self { rows, columns })
    }
}

impl RawColumn {
    /// Returns true if the value of a row is missing.
    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.nulls.get(row).is_some_and(|null| *null == 1)
    }

    /// Returns a row's value as a text that reads back to the same value; empty where it is missing.
    pub(crate) fn text(&self, row: usize) -> String {
        match &self.cells {
            _ if self.is_null(row) => String::new(),
            Cells::Numbers(values) => values[row].to_string(),
            // `read_column` checked the place.
            Cells::Texts { places, words } => words[places[row] as usize].clone(),
        }
    }
}

fn read_column(folder: &Path, rows: usize, column: Column) -> Result<RawColumn, Fault> {
    let Column { name, file, nulls, kind, categories } = column;
    let nulls = nulls.map(|nulls| read_values(folder, &nulls, &name, rows, u8::from_le_bytes)).transpose()?.unwrap_or_default();
    if let Some(row) = nulls.iter().position(|null| *null > 1) {
        return Err(broken(folder, &name, &format!("its nulls hold {} in row {}: write 0 or 1", nulls[row], row + 1)));
    }
    let mut read = RawColumn { name, cells: Cells::Numbers(Vec::new()), nulls };
    match kind {
        Kind::Float64 => read.cells = Cells::Numbers(read_values(folder, &file, &read.name, rows, f64::from_le_bytes)?),
        Kind::Category => {
            let places = read_values(folder, &file, &read.name, rows, i32::from_le_bytes)?;
            let known = |place: i32| usize::try_from(place).is_ok_and(|place| place < categories.len());
            let mut nulls: Vec<u8> = (0..rows).map(|row| u8::from(read.is_null(row))).collect();
            for (row, place) in places.iter().enumerate().filter(|(_, place)| !known(**place)) {
                if *place != -1 && nulls[row] == 0 {
                    let words = format!("row {} holds {place}, and it has {} categories", row + 1, categories.len());
                    return Err(broken(folder, &read.name, &words));
                }
                nulls[row] = 1;
            }
            read.nulls = if nulls.contains(&1) { nulls } else { Vec::new() };
            read.cells = Cells::Texts { places, words: categories };
        }
    }
    Ok(read)
}

/// Reads one value of `N` bytes per row.
fn read_values<T, const N: usize>(
    folder: &Path,
    file: &str,
    column: &str,
    rows: usize,
    value: fn([u8; N]) -> T,
) -> Result<Vec<T>, Fault> {
    if Path::new(file).file_name().is_none_or(|name| name != file) {
        return Err(broken(folder, column, &format!("{file:?} is not the name of a file in the folder")));
    }
    let path: PathBuf = folder.join(file);
    let bytes = std::fs::read(&path).map_err(|e| Fault::of_file(&path, "be read", &e))?;
    if Some(bytes.len()) != rows.checked_mul(N) {
        let words = format!("{file} has {} bytes, and {rows} rows of {N} bytes are declared", bytes.len());
        return Err(broken(folder, column, &words));
    }
    Ok(bytes.as_chunks::<N>().0.iter().map(|bytes| value(*bytes)).collect())
}

fn broken(folder: &Path, column: &str, what: &str) -> Fault {
    input(format!("{}, column {column:?}: {what}", folder.display()))
}
