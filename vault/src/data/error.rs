//! Errors of a file of records. None holds a value.

use std::path::PathBuf;

/// The defect of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// Empty, null or missing.
    Missing,
    /// Not a number.
    NotNumeric,
    /// An infinity or NaN.
    NotFinite,
    /// Not UTF-8 text.
    NotText,
    /// Not a date.
    NotDate,
}

impl std::fmt::Display for Flaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Flaw::Missing => "is missing",
            Flaw::NotNumeric => "is not a number (write 1 and 0 for yes and no; [data] names columns of texts under `text`, of dates under `dates`)",
            Flaw::NotFinite => "is not finite",
            Flaw::NotText => "is not UTF-8 text",
            Flaw::NotDate => "is not a date as 2026-03-01 or 2026-03-01T14:30:00Z, which `dates` in [data] takes it for",
        })
    }
}

/// Error: a data file cannot be used. It names file, place and column, never a value.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The file cannot be opened, or its content does not match its name.
    #[error("{}: {reason}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The defect, with the remedy.
        reason: String,
    },
    /// A needed column is missing.
    #[error("{}: has no column {column:?}{hint}; its columns are {}", .file.display(), .known.join(", "))]
    UnknownColumn {
        /// The file.
        file: PathBuf,
        /// The needed column.
        column: String,
        /// A near name, as a half sentence; empty where none is near.
        hint: String,
        /// The file's columns.
        known: Vec<String>,
    },
    /// A header names a column twice.
    #[error("{}: names column {column:?} twice; every column needs a name of its own", .file.display())]
    DuplicateColumn {
        /// The file.
        file: PathBuf,
        /// The name.
        column: String,
    },
    /// A bad value in a needed column, where the owner asked to stop.
    #[error(
        "{}, {place}, column {column:?}: the value {flaw}; repair the file, or write bad_rows = \"drop\" under [data] to \
         let such rows count and add nothing{more}", .file.display()
    )]
    BadValue {
        /// The file.
        file: PathBuf,
        /// `line N` of a CSV file (the header is line 1), `row N` of a Parquet file (from 1).
        place: String,
        /// The column.
        column: String,
        /// The defect of the value.
        flaw: Flaw,
        /// A further remedy, as a half sentence, where `policy.columns` isn't set.
        more: &'static str,
    },
    /// There is no record.
    #[error("{}: {reason}", .file.display())]
    Empty {
        /// The file.
        file: PathBuf,
        /// The content that was found.
        reason: String,
    },
}
