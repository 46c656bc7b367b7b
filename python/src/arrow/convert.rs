//! Columns as numbers and texts, by the rules by which a party reads a Parquet file.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use conclave::api::{Fault, Values};

use crate::errors::input;

/// Returns a column's values: doubles in one chunk without nulls where they are, everything else converted.
pub(super) fn values<'a>(name: &str, chunks: Vec<&'a ArrayRef>) -> Result<Values<'a>, Fault> {
    let Some(kind) = chunks.first().map(|chunk| chunk.data_type().clone()) else { return Ok(Values::Numbers(Vec::new())) };
    if let ([chunk], DataType::Float64) = (&chunks[..], &kind)
        && chunk.null_count() == 0
    {
        return Ok(Values::Lent(chunk.as_primitive::<Float64Type>().values()));
    }
    let inner = if let DataType::Dictionary(_, inner) = &kind { inner.as_ref() } else { &kind };
    if is_text(inner) {
        let mut words = Words::default();
        let mut codes = Vec::with_capacity(chunks.iter().map(|chunk| chunk.len()).sum());
        chunks.iter().for_each(|chunk| words.read(chunk.as_ref(), &mut codes));
        return Ok(Values::Texts { codes, words: words.list });
    }
    let mut numbers = Vec::with_capacity(chunks.iter().map(|chunk| chunk.len()).sum());
    for chunk in chunks {
        append(chunk.as_ref(), &mut numbers).ok_or_else(|| refusal(name, &kind))?;
    }
    Ok(Values::Numbers(numbers))
}

fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Returns the fault of a column that is neither numbers nor texts.
fn refusal(name: &str, kind: &DataType) -> Fault {
    use DataType::{Date32, Date64, Duration, Interval, Time32, Time64, Timestamp};
    match kind {
        Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..) | Duration(_) | Interval(_) => {
            input(format!("column {name:?} holds dates or times ({kind}), whose numbers depend on a unit and an origin"))
                .with_remedy("convert it to numbers with public bounds, such as the days since a public date")
        }
        kind => input(format!("column {name:?} is of type {kind}, which is neither numbers nor texts"))
            .with_remedy("convert it, or leave the column out"),
    }
}

/// Appends a chunk's numbers; a missing value is NaN. Returns `None` for a type that holds none.
fn append(chunk: &dyn Array, out: &mut Vec<f64>) -> Option<()> {
    match chunk.data_type() {
        DataType::Null => out.resize(out.len() + chunk.len(), f64::NAN),
        DataType::Boolean => {
            out.extend(chunk.as_boolean().iter().map(|value| value.map_or(f64::NAN, |value| f64::from(u8::from(value)))))
        }
        DataType::Float64 => primitive::<Float64Type>(chunk, out, |value| value),
        DataType::Float32 => primitive::<Float32Type>(chunk, out, f64::from),
        DataType::Float16 => primitive::<Float16Type>(chunk, out, f64::from),
        DataType::Int8 => primitive::<Int8Type>(chunk, out, f64::from),
        DataType::Int16 => primitive::<Int16Type>(chunk, out, f64::from),
        DataType::Int32 => primitive::<Int32Type>(chunk, out, f64::from),
        DataType::Int64 => primitive::<Int64Type>(chunk, out, |value| value as f64),
        DataType::UInt8 => primitive::<UInt8Type>(chunk, out, f64::from),
        DataType::UInt16 => primitive::<UInt16Type>(chunk, out, f64::from),
        DataType::UInt32 => primitive::<UInt32Type>(chunk, out, f64::from),
        DataType::UInt64 => primitive::<UInt64Type>(chunk, out, |value| value as f64),
        DataType::Decimal32(_, places) => primitive::<Decimal32Type>(chunk, out, |value| decimal(value, *places)),
        DataType::Decimal64(_, places) => primitive::<Decimal64Type>(chunk, out, |value| decimal(value, *places)),
        DataType::Decimal128(_, places) => primitive::<Decimal128Type>(chunk, out, |value| decimal(value, *places)),
        DataType::Decimal256(_, places) => primitive::<Decimal256Type>(chunk, out, |value| decimal(value, *places)),
        DataType::Dictionary(..) => {
            let coded = chunk.as_any_dictionary_opt()?;
            let mut values = Vec::with_capacity(coded.values().len());
            append(coded.values().as_ref(), &mut values)?;
            out.extend(keys(chunk)?.into_iter().map(|key| key.map_or(f64::NAN, |key| values[key])));
        }
        _ => return None,
    }
    Some(())
}

fn primitive<T: ArrowPrimitiveType>(chunk: &dyn Array, out: &mut Vec<f64>, number: impl Fn(T::Native) -> f64) {
    let values = chunk.as_primitive::<T>();
    match values.nulls() {
        None => out.extend(values.values().iter().map(|value| number(*value))),
        Some(_) => out.extend(values.iter().map(|value| value.map_or(f64::NAN, &number))),
    }
}

/// Returns a decimal's number, rounded once: that which its text reads as.
fn decimal(value: impl std::fmt::Display, places: i8) -> f64 {
    format!("{value}e{}", -i32::from(places)).parse().unwrap_or(f64::NAN)
}

/// Returns the place of each row's value in its dictionary; `None` for a missing one.
fn keys(chunk: &dyn Array) -> Option<Vec<Option<usize>>> {
    let coded = chunk.as_any_dictionary_opt()?;
    if coded.values().is_empty() {
        return Some(vec![None; chunk.len()]);
    }
    let places = coded.normalized_keys().into_iter().enumerate();
    Some(places.map(|(row, key)| (!chunk.is_null(row) && !coded.values().is_null(key)).then_some(key)).collect())
}

/// The different words of a column, numbered.
#[derive(Default)]
struct Words {
    list: Vec<String>,
    numbers: HashMap<String, f64>,
}

impl Words {
    fn number(&mut self, word: &str) -> f64 {
        if let Some(number) = self.numbers.get(word) {
            return *number;
        }
        let number = self.list.len() as f64;
        self.list.push(word.to_owned());
        self.numbers.insert(word.to_owned(), number);
        number
    }

    /// Appends the numbers of a chunk's words; NaN where a text is missing.
    fn read(&mut self, chunk: &dyn Array, codes: &mut Vec<f64>) {
        if let Some(coded) = chunk.as_any_dictionary_opt() {
            let mut numbers = Vec::with_capacity(coded.values().len());
            self.read(coded.values().as_ref(), &mut numbers);
            let keys = keys(chunk).unwrap_or_default();
            codes.extend(keys.into_iter().map(|key| key.map_or(f64::NAN, |key| numbers[key])));
            return;
        }
        let mut take = |text: Option<&str>| codes.push(text.map_or(f64::NAN, |text| self.number(text)));
        match chunk.data_type() {
            DataType::Utf8 => chunk.as_string::<i32>().iter().for_each(&mut take),
            DataType::LargeUtf8 => chunk.as_string::<i64>().iter().for_each(&mut take),
            _ => chunk.as_string_view().iter().for_each(&mut take),
        }
    }
}
