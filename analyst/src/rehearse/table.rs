//! Records in the memory of another program, by column, under the rules by which a party reads a file.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use conclave_common::job::JobSpec;
use conclave_common::spelling::nearest;
use conclave_party::screening::Records;
use conclave_privacy::pass::ModelData;
use conclave_proto::error::Fault;
use conclave_vault::data::{Binding, DataError, Kind};

use crate::faults::input;

/// The values of a column, one for each row. A value that is not finite marks a row that cannot be used.
#[derive(Debug)]
pub enum Values<'a> {
    /// Numbers in the memory of another program, read in place.
    Lent(&'a [f64]),
    /// Numbers that were converted from another type.
    Numbers(Vec<f64>),
    /// Texts: the number of each row's word, and the words.
    Texts {
        /// For each row, the number of its word; NaN where the text is missing.
        codes: Vec<f64>,
        /// The words.
        words: Vec<String>,
    },
}

impl Values<'_> {
    fn as_slice(&self) -> &[f64] {
        match self {
            Self::Lent(values) => values,
            Self::Numbers(values) | Self::Texts { codes: values, .. } => values,
        }
    }

    /// Returns the values for a change; lent memory is copied first.
    fn make_mut(&mut self) -> &mut [f64] {
        if let Self::Lent(values) = self {
            *self = Self::Numbers(values.to_vec());
        }
        match self {
            Self::Numbers(values) | Self::Texts { codes: values, .. } => values,
            Self::Lent(_) => &mut [],
        }
    }

    /// Renumbers a column's words in the order of their appearance, without blanks around them and without unused ones, as a reader
    /// of files does. An empty word is a missing value.
    fn read_words(&mut self) {
        let Self::Texts { codes, words } = self else { return };
        let mut kept: Vec<String> = Vec::new();
        let mut numbers: HashMap<&str, f64> = HashMap::new();
        let mut known: Vec<Option<f64>> = vec![None; words.len()];
        for code in codes.iter_mut().filter(|code| !code.is_nan()) {
            let at = *code as usize;
            *code = *known[at].get_or_insert_with(|| {
                let word = words[at].trim();
                if word.is_empty() {
                    return f64::NAN;
                }
                *numbers.entry(word).or_insert_with(|| {
                    kept.push(word.to_owned());
                    (kept.len() - 1) as f64
                })
            });
        }
        *words = kept;
    }
}

/// One party's records, by column.
#[derive(Debug)]
pub struct Table<'a> {
    names: Vec<String>,
    columns: Vec<Values<'a>>,
    records: usize,
}

impl<'a> Table<'a> {
    /// Takes a party's columns, all of one length. With `drop`, rows with a missing or non-finite value are inert: counted, and
    /// contributing zero.
    ///
    /// # Errors
    /// No records; a missing or non-finite value without `drop`, by its row, counted from 0, and its column.
    pub fn new(columns: Vec<(String, Values<'a>)>, drop: bool) -> Result<Self, Fault> {
        let (names, mut columns): (Vec<String>, Vec<Values<'a>>) = columns.into_iter().unzip();
        let records = columns.first().map_or(0, |column| column.as_slice().len());
        if records == 0 {
            return Err(input("the table has no rows: a party needs at least one record"));
        }
        columns.iter_mut().for_each(Values::read_words);
        let first = |(at, column): (usize, &Values<'a>)| Some((first_bad(column.as_slice())?, at));
        let Some((row, at)) = columns.iter().enumerate().filter_map(first).min() else {
            return Ok(Self { names, columns, records });
        };
        if !drop {
            let flaw = if columns[at].as_slice()[row].is_nan() { "missing" } else { "not finite" };
            return Err(input(format!("row {row} (counted from 0), column {:?}: the value is {flaw}", names[at]))
                .with_remedy("repair or remove such rows, or let them count and contribute zero with drop_bad_rows"));
        }
        let mut bad: Vec<bool> = vec![false; records];
        for column in &columns {
            bad.iter_mut().zip(column.as_slice()).for_each(|(bad, value)| *bad |= !value.is_finite());
        }
        for column in &mut columns {
            column.make_mut().iter_mut().zip(&bad).filter(|(_, bad)| **bad).for_each(|(value, _)| *value = f64::NAN);
            // The word of an unusable row is not kept.
            column.read_words();
        }
        Ok(Self { names, columns, records })
    }

    /// Checks that a table has the columns that a job needs; `names` are those of the table.
    ///
    /// # Errors
    /// The first column that is missing, with the nearest name.
    pub fn check_names(spec: &JobSpec, names: &[String]) -> Result<(), Fault> {
        let missing = spec.model.columns().into_iter().find(|name| !names.iter().any(|known| known == name));
        let Some(missing) = missing else { return Ok(()) };
        let near = nearest(missing, names.iter().map(String::as_str)).map(|near| format!("; the nearest is {near:?}"));
        Err(input(format!("has no column {missing:?}{}; its columns are {}", near.unwrap_or_default(), names.join(", "))))
    }

    /// Copies the job's columns to the scale of its model.
    ///
    /// # Errors
    /// The first column that is missing, or is of another kind than the job declares.
    pub(super) fn bind(&self, spec: &JobSpec) -> Result<ModelData, Fault> {
        let binding = Binding::of_kinds(&|name| self.kind(name), spec).map_err(|e| input(e.to_string()))?;
        Ok(binding.copy_columns(&self.columns_of(&binding, 0..self.records)))
    }

    fn column(&self, name: &str) -> Option<&Values<'a>> {
        self.names.iter().position(|known| known == name).map(|at| &self.columns[at])
    }

    fn columns_of(&self, binding: &Binding, rows: Range<usize>) -> Vec<&[f64]> {
        let column = |name: &String| self.column(name).map_or(&[][..], |column| &column.as_slice()[rows.clone()]);
        binding.columns().iter().map(column).collect()
    }
}

/// Returns the first row whose value cannot be used.
fn first_bad(values: &[f64]) -> Option<usize> {
    const PART: usize = 4096;
    // Whole parts are searched without a branch for each value.
    let is_sound = |part: &[f64]| part.iter().fold(true, |all, value| all & value.is_finite());
    let part = values.chunks(PART).position(|part| !is_sound(part))?;
    values[part * PART..].iter().position(|value| !value.is_finite()).map(|at| part * PART + at)
}

impl Records for Table<'_> {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn kind(&self, name: &str) -> Option<Kind<'_>> {
        Some(match self.column(name)? {
            Values::Texts { words, .. } => Kind::Texts(words),
            _ => Kind::Numbers,
        })
    }

    fn records(&self) -> u64 {
        self.records as u64
    }

    fn look(&self, name: &str, look: &mut dyn FnMut(&[f64])) -> Result<(), DataError> {
        if let Some(column) = self.column(name) {
            look(column.as_slice());
        }
        Ok(())
    }

    fn look_at_designs(&self, binding: &Binding, look: &mut dyn FnMut(&ModelData)) -> Result<(), DataError> {
        const ROWS: usize = 1 << 13;
        for start in (0..self.records).step_by(ROWS) {
            let rows = start..self.records.min(start + ROWS);
            let values: Vec<Cow<'_, [f64]>> = self.columns_of(binding, rows).into_iter().map(Cow::Borrowed).collect();
            look(&binding.records(&values, None));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn texts(codes: &[f64], words: &[&str]) -> Values<'static> {
        Values::Texts { codes: codes.to_vec(), words: words.iter().map(|word| (*word).to_owned()).collect() }
    }

    #[test]
    fn words_are_those_of_the_rows_in_their_order() {
        let columns = vec![("w".to_owned(), texts(&[2.0, 0.0, 3.0, 2.0], &[" b", "never", "a", "b"]))];
        let table = Table::new(columns, false).unwrap();
        let Values::Texts { codes, words } = &table.columns[0] else { unreachable!() };
        assert_eq!((codes.as_slice(), words.as_slice()), (&[0.0, 1.0, 1.0, 0.0][..], &["a".to_owned(), "b".to_owned()][..]));
        let blank = Table::new(vec![("w".to_owned(), texts(&[0.0, 1.0], &["a", "  "]))], false).unwrap_err();
        assert!(blank.message.contains("row 1") && blank.message.contains("missing"), "{blank}");
    }

    #[test]
    fn a_row_with_a_bad_value_is_named_or_inert() {
        let values = [1.0, f64::INFINITY, 3.0];
        let columns =
            || vec![("x".to_owned(), Values::Lent(&values)), ("w".to_owned(), texts(&[0.0, 1.0, f64::NAN], &["a", "b"]))];
        let fault = Table::new(columns(), false).unwrap_err();
        assert!(fault.message.contains("row 1") && fault.message.contains("\"x\"") && fault.message.contains("not finite"));
        let table = Table::new(columns(), true).unwrap();
        let mut seen = Vec::new();
        table.look("x", &mut |values| seen.extend_from_slice(values)).unwrap();
        assert!(seen[0] == 1.0 && seen[1].is_nan() && seen[2].is_nan());
        assert!(matches!(table.kind("w"), Some(Kind::Texts([word])) if word == "a"), "the word of an inert row is not kept");
        assert!(Table::new(vec![("x".to_owned(), Values::Lent(&[]))], false).unwrap_err().message.contains("no rows"));
    }
}
