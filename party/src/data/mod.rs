//! The shard: the owner's records, read once at start into columns of numbers and of texts, or checked then and read in every pass.
//!
//! Only needed columns are read: those that `policy.columns` names, or all. What this module says (counts of dropped
//! rows, places of bad values) goes to the owner's own log and nowhere else, and never holds a value.

mod bind;
mod csv;
mod error;
mod fingerprint;
mod parquet;
mod persons;
mod rows;
mod scaled;
mod stream;
mod words;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use bind::{BindError, bind};
pub(crate) use bind::{Binding, unlisted};
pub use error::{DataError, Flaw};
pub(crate) use scaled::Scaled;
pub(crate) use stream::{Stamp, Streamed};

use conclave_common::accounting::{Adjacency, PrivacyUnit};
use conclave_common::model::Persons;
use conclave_common::sampler::Holding;

use crate::config::{BadRows, DataConfig, Memory};
use stream::Stream;
use words::Words;

/// The most units of privacy of a shard whose number of units is not public: what is refused must not depend on the number.
pub const MAX_UNPUBLISHED_UNITS: u64 = 1 << 24;

/// What a file that can't be streamed has to be told.
pub(crate) const NOT_STREAMED: &str = "data.memory = \"stream\" takes a Parquet file without `data.person`: convert the file, or write \
                                       memory = \"lean\"";

/// The cleaned records of one party, by column.
#[derive(Clone)]
pub struct Shard {
    file: PathBuf,
    header: Vec<String>,
    names: Vec<String>,
    /// Values; of a column of texts, the numbers of its words. Empty where they are streamed.
    columns: Vec<Vec<f64>>,
    stream: Option<Arc<Stream>>,
    memory: Memory,
    /// Of each column of texts, its words.
    words: Vec<Option<Words>>,
    dropped: u64,
    unit: PrivacyUnit,
    person: Option<String>,
    persons: Option<Persons>,
    /// Rows left out because their person has as many already.
    beyond_limit: u64,
}

impl Shard {
    /// Reads the file that `config` names; `needed` are the columns to read, `None` all of them.
    ///
    /// # Errors
    /// [`DataError`]: an unreadable or empty file, an unknown or repeated column, or a bad value where the owner asked
    /// to stop at one.
    pub fn load(config: &DataConfig, needed: Option<&[String]>) -> Result<Self, DataError> {
        let extension = config.path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
        if config.memory == Memory::Stream && (extension.as_deref() == Some("csv") || config.person.is_some()) {
            return Err(DataError::Unreadable { file: config.path.clone(), reason: NOT_STREAMED.into() });
        }
        let shard = match extension.as_deref() {
            Some("csv") => csv::read(config, needed),
            Some("parquet") => parquet::read(config, needed),
            _ => Err(DataError::Unreadable {
                file: config.path.clone(),
                reason: "`data.path` must name a .csv or a .parquet file".into(),
            }),
        }?;
        if shard.records() == 0 {
            let reason = match shard.dropped {
                0 => "has no rows".to_owned(),
                n => format!("has no usable row: all {n} hold a missing, non-numeric or non-finite value"),
            };
            return Err(DataError::Empty { file: shard.file, reason });
        }
        if shard.unit.adjacency == Adjacency::AddRemove && shard.units() > MAX_UNPUBLISHED_UNITS {
            let reason =
                format!("holds more than the {MAX_UNPUBLISHED_UNITS} units that adjacency = \"add-remove\" is built for");
            return Err(DataError::Unreadable { file: shard.file, reason });
        }
        Ok(shard)
    }

    /// Number of units of privacy: persons, or records.
    pub fn units(&self) -> u64 {
        self.persons.as_ref().map_or(self.records(), Persons::count)
    }

    /// What is public about the shard.
    pub fn holding(&self) -> Holding {
        Holding::new(self.unit, self.units())
    }

    /// Whose the records are, where a person is the unit of privacy.
    pub fn persons(&self) -> Option<&Persons> {
        self.persons.as_ref()
    }

    /// The column that names persons, where a person is the unit of privacy.
    pub fn person_column(&self) -> Option<&str> {
        self.person.as_deref()
    }

    /// Number of rows left out because their person has as many as it may; for the owner alone.
    pub fn beyond_limit(&self) -> u64 {
        self.beyond_limit
    }

    /// Number of records after cleaning; public where rows are protected against replacement.
    pub fn records(&self) -> u64 {
        let held = || self.columns.first().map_or(0, |c| c.len() as u64);
        self.stream.as_ref().map_or_else(held, |stream| stream.records())
    }

    /// What of the records is kept in memory, as the owner wrote it.
    pub(crate) fn memory(&self) -> Memory {
        self.memory
    }

    /// Number of rows left out for bad values; for the owner alone.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The file the records came from.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Names of all of the file's columns.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Names of the columns that were read.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// What a column holds, whether it is in memory or not.
    pub(crate) fn kind(&self, name: &str) -> Option<Kind<'_>> {
        let words = self.words.get(self.names.iter().position(|n| n == name)?)?;
        Some(words.as_ref().map_or(Kind::Numbers, |words| Kind::Texts(words.list())))
    }

    /// Gives `look` the values of a column, as [`Column::values`], all at once or one block after another; nothing where there is no such
    /// column.
    ///
    /// # Errors
    /// Where the shard is streamed and can't be read.
    pub(crate) fn look(&self, name: &str, mut look: impl FnMut(&[f64])) -> Result<(), DataError> {
        match (&self.stream, self.names.iter().position(|n| n == name)) {
            (Some(stream), Some(at)) => return self.look_at_stream(stream, at, look),
            _ => self.column(name).into_iter().for_each(|column| look(column.values())),
        }
        Ok(())
    }

    /// A column, one value per record. None where the shard is streamed.
    pub fn column(&self, name: &str) -> Option<Column<'_>> {
        if self.stream.is_some() {
            return None;
        }
        let at = self.names.iter().position(|n| n == name)?;
        let values = self.columns.get(at)?.as_slice();
        Some(match self.words.get(at)? {
            None => Column::Numbers(values),
            Some(words) => Column::Texts { codes: values, words: words.list() },
        })
    }
}

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind<'a> {
    /// Numbers, all finite.
    Numbers,
    /// The numbers of these words.
    Texts(&'a [String]),
}

/// The values of a column, one per record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Column<'a> {
    /// Numbers, all finite.
    Numbers(&'a [f64]),
    /// Texts: `words[code]` for each record's `code`, a whole number. Each word is there once, in the order in which they appear.
    Texts {
        /// One whole number per record.
        codes: &'a [f64],
        /// The different texts.
        words: &'a [String],
    },
}

impl<'a> Column<'a> {
    /// The numbers, or the words' numbers.
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

/// What is read of a file.
struct Chosen {
    /// Names and places of the columns of values.
    columns: Vec<(String, usize)>,
    /// Place of the column that names persons.
    person: Option<usize>,
}

/// The needed columns' places in the file's header: all of it where `needed` is `None`, but the one that names persons.
fn select(config: &DataConfig, header: &[String], needed: Option<&[String]>) -> Result<Chosen, DataError> {
    let person = config.person.as_ref().map(std::slice::from_ref);
    let person = person.map(|person| places(&config.path, header, Some(person))).transpose()?;
    let mut columns = places(&config.path, header, needed)?;
    columns.retain(|(name, _)| Some(name) != config.person.as_ref());
    Ok(Chosen { columns, person: person.and_then(|found| found.first().map(|(_, at)| *at)) })
}

fn places(file: &Path, header: &[String], needed: Option<&[String]>) -> Result<Vec<(String, usize)>, DataError> {
    if let Some(twice) = header.iter().enumerate().find_map(|(i, h)| header[..i].contains(h).then_some(h)) {
        return Err(DataError::DuplicateColumn { file: file.to_owned(), column: twice.clone() });
    }
    let Some(needed) = needed else {
        return Ok(header.iter().cloned().zip(0..).collect());
    };
    needed
        .iter()
        .map(|name| match header.iter().position(|h| h == name) {
            Some(at) => Ok((name.clone(), at)),
            None => Err(DataError::UnknownColumn {
                file: file.to_owned(),
                column: name.clone(),
                hint: conclave_common::schema::keys::nearest(name, header.iter().map(String::as_str))
                    .map(|n| format!(" (did you mean {n:?}?)"))
                    .unwrap_or_default(),
                known: header.to_vec(),
            }),
        })
        .collect()
}

#[cfg(test)]
pub(crate) mod loading_tests;
#[cfg(test)]
mod tests;
