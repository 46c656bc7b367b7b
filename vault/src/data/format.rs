//! Defines the format of a file of records: the conversion of its texts to values.

use std::collections::BTreeMap;

use super::dates::DateScale;

/// The conversion of a file's texts to values, as the owner declares it. The values are fingerprinted after all of this, so a setting under
/// which another value is read makes other data of the same file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// Delimiter of a CSV file's fields.
    pub delimiter: u8,
    /// Decimal mark of a CSV file's numbers, `.` or `,`.
    pub decimal: u8,
    /// Markers of a missing value in every column: a text, or any spelling of a number.
    pub missing: Vec<String>,
    /// Columns that hold dates, and their scales.
    pub dates: BTreeMap<String, DateScale>,
}

impl Default for Format {
    fn default() -> Self {
        Self { delimiter: b',', decimal: b'.', missing: Vec::new(), dates: BTreeMap::new() }
    }
}

impl Format {
    pub(super) fn missing(&self) -> Missing {
        let number = |text: &String| number(text.as_bytes(), self.decimal);
        Missing {
            texts: self.missing.iter().map(|text| text.trim().as_bytes().to_vec()).collect(),
            numbers: self.missing.iter().filter_map(number).collect(),
        }
    }
}

/// The markers of a missing value, ready for comparison.
#[derive(Debug, Clone, Default)]
pub(super) struct Missing {
    texts: Vec<Vec<u8>>,
    numbers: Vec<f64>,
}

impl Missing {
    /// Returns true for a text, without the blanks around it, that marks a missing value.
    pub(super) fn text(&self, text: &[u8]) -> bool {
        self.texts.iter().any(|missing| missing == text)
    }

    /// Returns true for a number that marks one.
    pub(super) fn number(&self, value: f64) -> bool {
        self.numbers.contains(&value)
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
    let with_point = |byte: &u8| if *byte == decimal { b'.' } else { *byte };
    let mut short = [0; 32];
    match short.get_mut(..text.len()) {
        Some(short) => {
            short.iter_mut().zip(text).for_each(|(to, byte)| *to = with_point(byte));
            fast_float2::parse(short).ok()
        }
        None => fast_float2::parse(text.iter().map(with_point).collect::<Vec<u8>>()).ok(),
    }
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
        let missing = format.missing();
        assert!(missing.text(b"NA") && missing.text(b"-99") && !missing.text(b"na") && !missing.text(b""));
        assert!(missing.number(9.9) && !missing.number(99.0) && !missing.number(f64::NAN));
        let plain = Format { missing: vec!["-99".into()], ..Format::default() };
        assert!(plain.missing().number(-99.0) && !Missing::default().number(0.0));
    }
}
