//! Holds the records of one party, by column.

use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conclave_common::query::PartyMetadata;
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::pass::Persons;

use super::error::DataError;
use super::settings::{BadRows, Memory};
use super::snapshot::Snapshot;
use super::words::Words;

/// The records of one party, by column.
#[derive(Clone)]
pub struct Shard {
    pub(super) file: PathBuf,
    pub(super) header: Vec<String>,
    pub(super) names: Vec<String>,
    /// Values; for a column of texts, the numbers of its words; NaN in every column where a row is inert. Empty where they are streamed.
    pub(super) columns: Vec<Vec<f64>>,
    pub(super) snapshot: Option<Arc<Snapshot>>,
    pub(super) memory: Memory,
    /// For each column of texts, its words.
    pub(super) words: Vec<Option<Words>>,
    pub(super) bad_rows: BadRows,
    pub(super) inert: u64,
    /// Records that are not inert.
    pub(super) usable: u64,
    pub(super) unit: PrivacyUnit,
    pub(super) person: Option<String>,
    pub(super) persons: Option<Persons>,
    /// Rows left out because their person is at its limit.
    pub(super) beyond_limit: u64,
    pub(super) undeclared_dates: Vec<String>,
    pub(super) long_field: Option<u64>,
}

impl Shard {
    /// Returns the number of units of privacy: persons, or records.
    pub fn units(&self) -> u64 {
        self.persons.as_ref().map_or(self.records(), Persons::count)
    }

    /// Returns the public facts about the shard.
    pub fn metadata(&self) -> PartyMetadata {
        PartyMetadata::new(self.unit, self.units())
    }

    /// Returns the assignment of records, where a person is the unit of privacy.
    pub fn persons(&self) -> Option<&Persons> {
        self.persons.as_ref()
    }

    /// Returns the column that names persons, where a person is the unit of privacy.
    pub fn person_column(&self) -> Option<&str> {
        self.person.as_deref()
    }

    /// Returns the number of rows left out because their person is at its limit; for the owner alone.
    pub fn beyond_limit(&self) -> u64 {
        self.beyond_limit
    }

    /// Returns the number of records, inert ones included: the file's rows, except those beyond a person's limit. Public where rows are
    /// protected against replacement.
    pub fn records(&self) -> u64 {
        let held = || self.columns.first().map_or(0, Vec::len);
        self.snapshot.as_ref().map_or_else(held, |snapshot| snapshot.records()) as u64
    }

    /// Returns the number of the file's rows; for the owner alone where it is secret.
    pub fn file_rows(&self) -> u64 {
        self.usable + self.inert + self.beyond_limit
    }

    /// Returns the part of the records that the owner keeps in memory.
    pub(crate) fn memory(&self) -> Memory {
        self.memory
    }

    /// Returns the number of the file's rows that hold a bad value and contribute zero to any answer; for the owner alone.
    pub fn inert(&self) -> u64 {
        self.inert
    }

    /// Returns true where rows may be inert, since the owner keeps bad rows so; whether any is has no influence.
    pub fn may_be_inert(&self) -> bool {
        self.bad_rows == BadRows::Drop
    }

    /// Returns the file of the records.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the names of all of the file's columns.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Returns columns that the file declares as dates or times, and that are read as the stored whole numbers.
    pub fn undeclared_dates(&self) -> &[String] {
        &self.undeclared_dates
    }

    /// Returns the line of a CSV file's first row with a field of more than a hundred lines; for the owner alone.
    pub fn long_field(&self) -> Option<u64> {
        self.long_field
    }

    /// Returns the names of the columns that were read.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the kind of a column, in memory or not.
    pub fn kind(&self, name: &str) -> Option<Kind<'_>> {
        let words = self.words.get(self.names.iter().position(|n| n == name)?)?;
        Some(words.as_ref().map_or(Kind::Numbers, |words| Kind::Texts(words.list())))
    }

    /// Returns a column, one value per record. `None` where the shard is streamed.
    pub fn column(&self, name: &str) -> Option<Column<'_>> {
        let at = self.names.iter().position(|n| n == name)?;
        let values = self.columns.get(at)?.as_slice();
        Some(match self.words.get(at)? {
            None => Column::Numbers(values),
            Some(words) => Column::Texts { codes: values, words: words.list() },
        })
    }

    /// Returns some records' values of each of these columns, all of which the shard has.
    ///
    /// # Errors
    /// A snapshot that cannot be read.
    pub(super) fn values(&self, columns: &[String], rows: Range<usize>) -> Result<Vec<Cow<'_, [f64]>>, DataError> {
        let values = |name: &String| {
            let at = self.names.iter().position(|n| n == name).unwrap_or(self.names.len());
            match (&self.snapshot, self.columns.get(at)) {
                (Some(snapshot), _) if at < self.names.len() => snapshot.read(at, rows.clone()).map(Cow::Owned),
                (_, Some(column)) => Ok(Cow::Borrowed(&column[rows.clone()])),
                _ => Err(std::io::Error::other(format!("no column {name:?}"))),
            }
        };
        let read = columns.iter().map(values).collect::<Result<_, _>>();
        read.map_err(|e| DataError::Unreadable {
            file: self.file.clone(),
            reason: format!("its columns can't be read again: {e}"),
        })
    }

    /// Passes the values of a column to `look`, as [`Column::values`], all at once or block by block; none where there is no such column.
    ///
    /// # Errors
    /// A streamed shard that cannot be read.
    pub fn look(&self, name: &str, mut look: impl FnMut(&[f64])) -> Result<(), DataError> {
        const ROWS: usize = 1 << 16;
        let (records, columns) = (self.records() as usize, [name.to_owned()]);
        let step = if self.snapshot.is_some() { ROWS } else { records.max(1) };
        for start in (0..records).step_by(step).filter(|_| self.kind(name).is_some()) {
            self.values(&columns, start..records.min(start + step))?.iter().for_each(|values| look(values));
        }
        Ok(())
    }
}

/// The kind of a column's values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind<'a> {
    /// Numbers, all finite except those of inert rows, which are NaN.
    Numbers,
    /// The numbers of these words.
    Texts(&'a [String]),
}

/// The values of a column, one per record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Column<'a> {
    /// Numbers, all finite except those of inert rows, which are NaN.
    Numbers(&'a [f64]),
    /// Texts: `words[code]` for each record's `code`, a whole number, or NaN for an inert row. Each word occurs once, in the order of
    /// appearance.
    Texts {
        /// One whole number per record, NaN for an inert row.
        codes: &'a [f64],
        /// The different texts.
        words: &'a [String],
    },
}

impl<'a> Column<'a> {
    /// Returns the numbers, or the words' numbers.
    pub(crate) fn values(&self) -> &'a [f64] {
        match self {
            Column::Numbers(values) | Column::Texts { codes: values, .. } => values,
        }
    }
}

/// Shows the shape and no value, so that no log line can hold a record.
impl std::fmt::Debug for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shard").field("names", &self.names).finish_non_exhaustive()
    }
}
