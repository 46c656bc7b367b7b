//! The map from a column's stored values to a model's scale, with its constants computed once.

use crate::parameter::LEAST_MAGNITUDE;
use crate::schema::{ColumnSpec, level_at};

/// The map from a column's stored values to a model's scale. Its steps are the same for every value.
///
/// A value stands for its text, in whatever form it is held: whether other records of the column are numbers makes no difference.
pub enum Scaling {
    /// The values are on the model's scale.
    Done,
    /// The values are numbers of a column that is declared numeric.
    Numeric(NumericScale),
    /// The values are numbers of a column that is declared binary.
    Binary,
    /// The values are numbers of a column that is declared by its levels: the level's numbers, NaN where a level is none.
    Levels(Vec<f64>),
    /// The values are numbers of words: for each word, its value on the model's scale.
    Words(Vec<f64>),
}

/// The constants of a numeric column's scale.
pub struct NumericScale {
    min: f64,
    max: f64,
    centre: f64,
    unit: f64,
}

impl Scaling {
    /// Returns the map for a column that stores numbers.
    #[must_use]
    pub fn of_numbers(bounds: &ColumnSpec) -> Self {
        match (bounds, bounds.level_numbers()) {
            (_, Some(levels)) => Self::Levels(levels),
            (ColumnSpec::Numeric { min, max }, None) => {
                let unit = bounds.half_width().max(f64::MIN_POSITIVE);
                Self::Numeric(NumericScale { min: *min, max: *max, centre: bounds.centre(), unit })
            }
            _ => Self::Binary,
        }
    }

    /// Returns the map for a column that stores the numbers of these words.
    #[must_use]
    pub fn of_words(bounds: &ColumnSpec, words: &[String]) -> Self {
        Self::Words(words.iter().map(|word| bounds.scale(bounds.level_of(word))).collect())
    }

    /// Writes the scaled values to the beginning of `out`, which is at least as long.
    pub fn fill(&self, values: &[f64], out: &mut [f64]) {
        let values = out.iter_mut().zip(values);
        match self {
            Self::Done => values.for_each(|(out, value)| *out = *value),
            Self::Numeric(scale) => values.for_each(|(out, value)| *out = scale.of(*value)),
            Self::Binary => values.for_each(|(out, value)| {
                *out = if value.is_nan() { f64::NAN } else { f64::from(u8::from(*value >= 0.5)) };
            }),
            Self::Levels(levels) => values.for_each(|(out, value)| *out = level_at(levels, *value)),
            Self::Words(words) => values.for_each(|(out, value)| *out = word(words, *value)),
        }
    }
}

/// Returns the value of the word of this number. An inert row's number is NaN.
fn word(words: &[f64], number: f64) -> f64 {
    if number.is_nan() { f64::NAN } else { words.get(number as usize).copied().unwrap_or(f64::NAN) }
}

impl NumericScale {
    /// Returns the bits of [`ColumnSpec::scale`].
    #[inline(always)]
    fn of(&self, value: f64) -> f64 {
        let scaled = (between(value, self.min, self.max) - self.centre) / self.unit;
        if scaled.abs() < LEAST_MAGNITUDE { 0.0 } else { between(scaled, -1.0, 1.0) }
    }
}

/// Clamps as [`f64::clamp`] does, without its check of the bounds. NaN stays.
#[inline(always)]
fn between(value: f64, min: f64, max: f64) -> f64 {
    let value = if value < min { min } else { value };
    if value > max { max } else { value }
}
