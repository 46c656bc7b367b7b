//! Rows become columns here, and bad rows stop or fall out; the same rule for every file format.

use std::path::PathBuf;

use super::persons::Gathering;
use super::words::Words;
use super::{BadRows, Chosen, DataError, Flaw, Shard};
use crate::config::DataConfig;

/// A value as a file holds it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    Number(f64),
    Text(&'a str),
}

/// Collects a shard row by row.
pub(super) struct Rows {
    shard: Shard,
    persons: Option<Gathering>,
    bad_rows: BadRows,
    more: &'static str,
}

impl Rows {
    /// `chosen` is what is read of a file with this header, and `texts` which of the chosen columns hold texts.
    pub(super) fn new(config: &DataConfig, header: Vec<String>, chosen: &Chosen, texts: &[bool]) -> Self {
        let names: Vec<String> = chosen.columns.iter().map(|(name, _)| name.clone()).collect();
        let columns = names.iter().map(|_| Vec::new()).collect();
        let all = names.len() + usize::from(chosen.person.is_some()) == header.len();
        let more = if all { ", or name only the columns that jobs may use in [policy] columns" } else { "" };
        let shard = Shard {
            file: PathBuf::from(&config.path),
            header,
            names,
            columns,
            words: texts.iter().map(|text| text.then(Words::default)).collect(),
            dropped: 0,
            unit: config.unit,
            person: config.person.clone(),
            persons: None,
            beyond_limit: 0,
        };
        let persons = config.unit.records_per_person().map(Gathering::new);
        Self { shard, persons, bad_rows: config.bad_rows, more }
    }

    /// Takes one row; `person` is whose it is, where a column says so, and `place` tells where it stands, should it be bad.
    pub(super) fn push(
        &mut self,
        values: &[Result<Value<'_>, Flaw>],
        person: Option<&[u8]>,
        place: impl FnOnce() -> String,
    ) -> Result<(), DataError> {
        if let Some((at, flaw)) = values.iter().enumerate().find_map(|(i, v)| v.err().map(|f| (i, f))) {
            return self.bad(place, self.shard.names[at].clone(), flaw);
        }
        if let Some(persons) = &mut self.persons {
            let Some(person) = person.filter(|name| !name.is_empty()) else {
                return self.bad(place, self.shard.person.clone().unwrap_or_default(), Flaw::Missing);
            };
            if !persons.keep(person) {
                self.shard.beyond_limit += 1;
                return Ok(());
            }
        }
        let columns = self.shard.columns.iter_mut().zip(&mut self.shard.words);
        for ((column, words), value) in columns.zip(values.iter().flatten()) {
            column.push(match (value, words) {
                (Value::Number(value), _) => *value,
                // A word of a row that is left out is not taken in.
                (Value::Text(text), Some(words)) => words.number(text),
                (Value::Text(_), None) => f64::NAN,
            });
        }
        Ok(())
    }

    fn bad(&mut self, place: impl FnOnce() -> String, column: String, flaw: Flaw) -> Result<(), DataError> {
        match self.bad_rows {
            BadRows::Stop => {
                Err(DataError::BadValue { file: self.shard.file.clone(), place: place(), column, flaw, more: self.more })
            }
            BadRows::Drop => {
                self.shard.dropped += 1;
                Ok(())
            }
        }
    }

    pub(super) fn finish(mut self) -> Shard {
        self.shard.persons = self.persons.and_then(|persons| persons.group(&mut self.shard.columns));
        self.shard
    }
}

/// A number as read, or what is wrong with it.
pub(super) fn finite(value: f64) -> Result<f64, Flaw> {
    if value.is_finite() { Ok(value) } else { Err(Flaw::NotFinite) }
}
