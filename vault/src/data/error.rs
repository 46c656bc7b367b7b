//! Why a file of records can't be used. Nothing here holds a value.

use std::path::PathBuf;

/// Why a value can't be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// Empty, null or not there.
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
            Flaw::NotNumeric => "is not a number ([data] names columns of texts under `text`, of dates under `dates`)",
            Flaw::NotFinite => "is not finite",
            Flaw::NotText => "is not UTF-8 text",
            Flaw::NotDate => "is not a date as 2026-03-01 or 2026-03-01T14:30:00Z, which `dates` in [data] takes it for",
        })
    }
}

/// A data file that can't be used. Names file, place and column, never a value.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The file can't be opened, or isn't what its name says.
    #[error("{}: {reason}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What is wrong, with the remedy.
        reason: String,
    },
    /// A needed column isn't there.
    #[error("{}: has no column {column:?}{hint}; its columns are {}", .file.display(), .known.join(", "))]
    UnknownColumn {
        /// The file.
        file: PathBuf,
        /// The column asked for.
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
        "{}, {place}, column {column:?}: the value {flaw}; mend the file, or write bad_rows = \"drop\" under [data] to \
         let such rows count and add nothing{more}", .file.display()
    )]
    BadValue {
        /// The file.
        file: PathBuf,
        /// `line N` of a CSV file (the header is line 1), `row N` of a Parquet file (from 1).
        place: String,
        /// The column.
        column: String,
        /// What is wrong with the value.
        flaw: Flaw,
        /// A further remedy, as a half sentence, where `policy.columns` isn't set.
        more: &'static str,
    },
    /// No record to speak of.
    #[error("{}: {reason}", .file.display())]
    Empty {
        /// The file.
        file: PathBuf,
        /// What was found instead.
        reason: String,
    },
}
