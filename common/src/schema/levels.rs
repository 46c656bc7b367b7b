//! The levels of a column and their comparison with the values of records.

use std::ops::Deref;

/// The levels of a column. Each is a text, or a number that the job writes without quotation marks.
///
/// A text is the level that is the same text: `345.10` is not `345.1`, nor `01` `1`. It is a level written as a number if it is any
/// spelling of that number: `1.0` is the level `1`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Levels {
    texts: Vec<String>,
    /// For each level, true if it is written as a number.
    are_numbers: Vec<bool>,
}

impl Levels {
    /// Returns the levels of these texts, each with true if it is written as a number.
    pub fn new(levels: impl IntoIterator<Item = (String, bool)>) -> Self {
        let (texts, are_numbers) = levels.into_iter().unzip();
        Self { texts, are_numbers }
    }

    /// Returns the first level that an earlier one matches too.
    pub fn repeated(&self) -> Option<&str> {
        let repeats = |at: usize| {
            self.texts[..at].iter().zip(&self.are_numbers).any(|(before, is_number)| {
                let text = &self.texts[at];
                before == text || ((*is_number || self.are_numbers[at]) && number(before) == number(text))
            })
        };
        (0..self.texts.len()).find(|at| repeats(*at)).map(|at| self.texts[at].as_str())
    }

    /// Returns the place of the level that a text denotes.
    pub(super) fn of_text(&self, text: &str) -> Option<usize> {
        let value = number(text);
        let denotes = |(level, is_number): (&String, &bool)| level == text || (*is_number && number(level) == value);
        self.texts.iter().zip(&self.are_numbers).position(denotes)
    }

    /// Returns the levels' numbers; NaN for a level that is none.
    pub(super) fn numbers(&self) -> Vec<f64> {
        self.texts.iter().map(|level| number(level)).collect()
    }
}

impl Deref for Levels {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.texts
    }
}

/// Takes each level as a text.
impl<T: Into<String>> FromIterator<T> for Levels {
    fn from_iter<I: IntoIterator<Item = T>>(levels: I) -> Self {
        Self::new(levels.into_iter().map(|level| (level.into(), false)))
    }
}

/// Reads a text as a finite number; NaN, which equals nothing, if it is not one.
pub(super) fn number(text: &str) -> f64 {
    text.parse().ok().filter(|value: &f64| value.is_finite()).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn texts_are_compared_as_texts_and_numbers_as_numbers() {
        let codes: Levels = ["345.1", "345.10", "01", "1", "1E5", "9007199254740993"].into_iter().collect();
        for (at, code) in codes.iter().enumerate() {
            assert_eq!(codes.of_text(code), Some(at), "{code}");
        }
        assert!(["345.100", "001", "1.0", "100000", "9007199254740992", ""].iter().all(|text| codes.of_text(text).is_none()));
        assert_eq!(codes.repeated(), None);
        let numbers = Levels::new([("1".to_owned(), true), ("2.5".to_owned(), true), ("a".to_owned(), false)]);
        assert_eq!(["1", "1.0", "01", "2.50", "25e-1", "a"].map(|text| numbers.of_text(text).unwrap()), [0, 0, 0, 1, 1, 2]);
        assert!(["A", "b", "", "NaN", "inf", "3"].iter().all(|text| numbers.of_text(text).is_none()));
    }

    #[test]
    fn levels_that_one_text_denotes_are_repeated() {
        let repeated = |levels: &[(&str, bool)]| {
            let levels = Levels::new(levels.iter().map(|(text, is_number)| ((*text).to_owned(), *is_number)));
            levels.repeated().map(str::to_owned)
        };
        for (levels, expected) in [
            (&[("01", false), ("1", false)][..], None),
            (&[("a", false), ("a", false)], Some("a")),
            (&[("01", false), ("1", true)], Some("1")),
            (&[("1", true), ("01", false)], Some("01")),
            (&[("1", true), ("2", true), ("x", false)], None),
        ] {
            assert_eq!(repeated(levels).as_deref(), expected, "{levels:?}");
        }
    }
}
