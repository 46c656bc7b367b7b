//! Determines the kind of a Parquet column: the meaning of its stored values, by the file's schema and the owner's settings.

use std::sync::Arc;

use num_bigint::BigInt;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use parquet::schema::types::ColumnDescriptor;

use crate::data::dates::{DateScale, of_day};
use crate::data::format::{Meaning, number};

/// The reading of a column of a file.
#[derive(Clone)]
pub(in crate::data) struct ColumnReading {
    /// Its place among the file's columns.
    pub(in crate::data) at: usize,
    pub(in crate::data) kind: Kind,
    pub(in crate::data) meaning: Arc<Meaning>,
}

/// The form of a column's values.
#[derive(Clone, Copy)]
pub(in crate::data) enum Kind {
    /// Themselves, be they numbers or texts.
    Plain,
    /// Whole numbers without a sign.
    Unsigned,
    /// Whole numbers of `10^-places`, and `10^places`.
    Decimal { places: i32, divisor: f64 },
    /// Dates: texts, days, or a number of nanoseconds per step.
    Date { scale: DateScale, step: i64 },
}

/// Whole numbers and powers of ten up to these are exact in a double, and their quotient is rounded once.
const EXACT: u64 = 1 << 53;
const EXACT_PLACES: i32 = 22;

/// The Julian day of 1970-01-01.
const JULIAN_1970: i64 = 2_440_588;

impl Kind {
    /// Determines the kind of a column that is to be read as numbers or texts, or by `dates` where the owner declares it a column of dates.
    ///
    /// # Errors
    /// Half a sentence: the column's actual kind, and the remedy.
    pub(super) fn of(column: &ColumnDescriptor, dates: Option<DateScale>) -> Result<Self, String> {
        if column.path().parts().len() > 1 || column.max_rep_level() > 0 {
            return Err("is nested; only flat columns can be used: name others in [policy] columns".into());
        }
        let places = decimal_places(column);
        if let Some(scale) = dates {
            let step = match column.physical_type() {
                Type::BYTE_ARRAY if places.is_none() => Some(0),
                Type::INT96 => Some(0),
                _ => date_step(column),
            };
            return step.map(|step| Self::Date { scale, step }).ok_or_else(|| {
                "holds numbers, and `dates` in [data] takes it for dates: take it out of `dates`, or store it as dates".into()
            });
        }
        match (column.physical_type(), places) {
            (Type::INT32 | Type::INT64 | Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY, Some(places)) => {
                Ok(Self::Decimal { places, divisor: 10f64.powi(places) })
            }
            (Type::INT32 | Type::INT64, None) if is_unsigned(column) => Ok(Self::Unsigned),
            (Type::BOOLEAN | Type::INT32 | Type::INT64 | Type::FLOAT | Type::DOUBLE | Type::BYTE_ARRAY, _) => Ok(Self::Plain),
            (Type::INT96, _) => {
                Err("holds times: say in which unit under `dates` in [data], or leave it out of [policy] columns".into())
            }
            (other, _) => Err(format!(
                "is of type {other}, which is neither a number nor a text; convert it to one, or leave it out of [policy] columns"
            )),
        }
    }

    pub(super) fn is_decimal(self) -> bool {
        matches!(self, Self::Decimal { .. })
    }

    pub(super) fn is_date(self) -> bool {
        matches!(self, Self::Date { .. })
    }

    pub(super) fn of_i32(self, value: i32) -> f64 {
        match self {
            Self::Unsigned => f64::from(value.cast_unsigned()),
            _ => self.of_i64(i64::from(value)),
        }
    }

    pub(super) fn of_i64(self, value: i64) -> f64 {
        match self {
            Self::Plain => value as f64,
            Self::Unsigned => value.cast_unsigned() as f64,
            Self::Decimal { places, divisor } if value.unsigned_abs() <= EXACT && (0..=EXACT_PLACES).contains(&places) => {
                value as f64 / divisor
            }
            Self::Decimal { places, .. } => rounded(&value, places),
            Self::Date { scale, step } => scale.of_nanoseconds(i128::from(value) * i128::from(step)),
        }
    }

    /// Converts a time of an old kind of file: the nanoseconds of a day and the Julian day, the lowest word first.
    pub(super) fn of_int96(self, words: &[u32]) -> f64 {
        let (Self::Date { scale, .. }, [low, high, day]) = (self, words) else { return f64::NAN };
        let nanoseconds = i128::from(u64::from(*high) << 32 | u64::from(*low));
        scale.of_nanoseconds(of_day(i64::from(*day) - JULIAN_1970) + nanoseconds)
    }

    /// Converts a decimal of any length, rounded once.
    pub(super) fn of_big_endian(self, bytes: &[u8]) -> f64 {
        let Self::Decimal { places, .. } = self else { return f64::NAN };
        let whole = BigInt::from_signed_bytes_be(bytes);
        i64::try_from(&whole).map_or_else(|_| rounded(&whole, places), |whole| self.of_i64(whole))
    }
}

/// Returns the number that the text of a decimal reads as.
fn rounded(whole: &impl std::fmt::Display, places: i32) -> f64 {
    number(format!("{whole}e{}", -i64::from(places)).as_bytes(), b'.').unwrap_or(f64::NAN)
}

/// Returns the nanoseconds of one step of a column of dates or times; `None` for any other column.
fn date_step(column: &ColumnDescriptor) -> Option<i64> {
    const DAY: i64 = 86_400_000_000_000;
    let of_unit = |unit: &TimeUnit| match unit {
        TimeUnit::MILLIS => 1_000_000,
        TimeUnit::MICROS => 1_000,
        TimeUnit::NANOS => 1,
    };
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Date), _) | (_, ConvertedType::DATE) => Some(DAY),
        (Some(LogicalType::Timestamp(timestamp)), _) => Some(of_unit(&timestamp.unit)),
        (_, ConvertedType::TIMESTAMP_MILLIS) => Some(of_unit(&TimeUnit::MILLIS)),
        (_, ConvertedType::TIMESTAMP_MICROS) => Some(of_unit(&TimeUnit::MICROS)),
        _ => None,
    }
}

/// Returns true where the file declares whole numbers as dates or times.
pub(super) fn holds_dates(column: &ColumnDescriptor) -> bool {
    date_step(column).is_some()
}

fn decimal_places(column: &ColumnDescriptor) -> Option<i32> {
    match column.logical_type_ref() {
        Some(LogicalType::Decimal(d)) => Some(d.scale),
        _ => (column.converted_type() == ConvertedType::DECIMAL).then(|| column.type_scale()),
    }
}

fn is_unsigned(column: &ColumnDescriptor) -> bool {
    match column.logical_type_ref() {
        Some(LogicalType::Integer(i)) => !i.is_signed,
        _ => matches!(
            column.converted_type(),
            ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64
        ),
    }
}
