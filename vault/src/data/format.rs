//! Defines the format of a file of records: the conversion of its values, by the same rules for every kind of file.

use std::collections::BTreeMap;

use super::dates::DateScale;
use super::error::Flaw;
use super::words::Words;

/// The conversion of a file's texts to values, as the owner declares it. The values are fingerprinted after all of this, so a setting under
/// which another value is read makes other data of the same file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// Delimiter of a CSV file's fields.
    pub delimiter: u8,
    /// True where a CSV file's fields may stand between quotation marks; false where a mark is a character as any other.
    pub quotes: bool,
    /// Decimal mark of a CSV file's numbers, `.` or `,`.
    pub decimal: u8,
    /// Markers of a missing value in every column: a text, or any spelling of a number or of a date.
    pub missing: Vec<String>,
    /// Columns that hold dates, and their scales.
    pub dates: BTreeMap<String, DateScale>,
}

impl Default for Format {
    fn default() -> Self {
        Self { delimiter: b',', quotes: true, decimal: b'.', missing: Vec::new(), dates: BTreeMap::new() }
    }
}

impl Format {
    /// Returns the meaning of a column: of dates where the owner declares it so, else of texts or of numbers.
    pub(super) fn meaning(&self, name: &str, is_text: bool) -> Meaning {
        let values = match self.dates.get(name) {
            Some(scale) => Values::Dates(*scale),
            None if is_text => Values::Texts,
            None => Values::Numbers { decimal: self.decimal },
        };
        let missing: Vec<Vec<u8>> = self.missing.iter().map(|text| trimmed(text.as_bytes()).to_vec()).collect();
        let numbers = missing.iter().filter_map(|text| values.number(text).ok()).collect();
        Meaning { values, missing, numbers }
    }
}

/// The meaning of a column's values, by which every reader takes them.
#[derive(Debug, Clone)]
pub(super) struct Meaning {
    values: Values,
    /// Markers of a missing value.
    missing: Vec<Vec<u8>>,
    /// The markers' numbers in this column.
    numbers: Vec<f64>,
}

#[derive(Debug, Clone, Copy)]
enum Values {
    Numbers { decimal: u8 },
    Texts,
    Dates(DateScale),
}

impl Values {
    fn number(self, text: &[u8]) -> Result<f64, Flaw> {
        match self {
            Self::Numbers { decimal } => number(text, decimal).ok_or(Flaw::NotNumeric),
            Self::Texts => Err(Flaw::NotText),
            Self::Dates(scale) => scale.of_text(text).ok_or(Flaw::NotDate),
        }
    }
}

impl Meaning {
    /// Returns a text without the blanks around it; `None` where it is empty or marks a missing value.
    pub(super) fn present<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        Some(trimmed(text)).filter(|text| !text.is_empty() && !self.missing.iter().any(|missing| missing == text))
    }

    /// Converts a value that the file holds as a text; `words` numbers those of a column of texts.
    pub(super) fn of_text(&self, text: &[u8], words: &mut Words) -> Result<f64, Flaw> {
        let text = self.present(text).ok_or(Flaw::Missing)?;
        match self.values {
            Values::Texts => std::str::from_utf8(text).map(|text| words.number(text)).map_err(|_| Flaw::NotText),
            values => values.number(text).and_then(|value| self.of_number(value)),
        }
    }

    /// Returns true if every number of the column can be used.
    pub(super) fn has_no_flaw(&self, values: &[f64]) -> bool {
        self.numbers.is_empty() && values.iter().fold(true, |all, value| all & value.is_finite())
    }

    /// Checks a number of the column.
    pub(super) fn of_number(&self, value: f64) -> Result<f64, Flaw> {
        match value {
            _ if self.numbers.contains(&value) => Err(Flaw::Missing),
            _ if value.is_finite() => Ok(value),
            _ => Err(Flaw::NotFinite),
        }
    }
}

/// Removes the blanks around a text: all that Unicode calls white space, or ASCII's of bytes that are no UTF-8. Every reader trims
/// persons' names by this rule, since a name with a blank would be another person, with a limit of its own.
fn trimmed(text: &[u8]) -> &[u8] {
    match (text.first(), text.last()) {
        (Some(first), Some(last)) if first.is_ascii_graphic() && last.is_ascii_graphic() => text,
        _ => std::str::from_utf8(text).map_or(text.trim_ascii(), |text| text.trim().as_bytes()),
    }
}

/// Parses a number as `str::parse` does, bit for bit, in fewer steps, with `decimal` in place of the point. A point beside a decimal comma
/// would separate thousands, and makes the text no number: `1.234` is ambiguous.
pub(super) fn number(text: &[u8], decimal: u8) -> Option<f64> {
    if decimal == b'.' {
        return fast_float2::parse(text).ok();
    }
    if text.contains(&b'.') {
        return None;
    }
    fast_float2::parse(text.iter().map(|byte| if *byte == decimal { b'.' } else { *byte }).collect::<Vec<u8>>()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_comma_is_read_and_a_point_beside_it_is_not() {
        let read = |text: &str| number(text.as_bytes(), b',');
        assert_eq!([read("1,5"), read("-0,25"), read("7"), read("1e3")], [Some(1.5), Some(-0.25), Some(7.0), Some(1000.0)]);
        assert_eq!(read(&format!("0,{}1", "0".repeat(60))), Some(1e-61));
        assert_eq!([read("1.5"), read("1.234,5"), read("1,2,3"), read("")], [None; 4]);
        assert_eq!(number(b"1,5", b'.'), None);
    }

    #[test]
    fn a_missing_number_is_missing_however_it_is_spelt() {
        let format = Format { missing: ["NA", " -99 ", "9,9"].map(str::to_owned).to_vec(), decimal: b',', ..Format::default() };
        let meaning = format.meaning("x", false);
        let read = |text: &str| meaning.of_text(text.as_bytes(), &mut Words::default());
        assert!(["NA", "-99", " -99,0", "9,90", ""].iter().all(|text| read(text) == Err(Flaw::Missing)));
        assert_eq!([read("na"), read("99"), read("nan")], [Err(Flaw::NotNumeric), Ok(99.0), Err(Flaw::NotFinite)]);
        assert_eq!([meaning.of_number(-99.0), meaning.of_number(f64::NAN)], [Err(Flaw::Missing), Err(Flaw::NotFinite)]);
    }
}
