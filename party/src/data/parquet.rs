//! Parquet files: every flat column of a numeric physical type or of texts; nulls are missing values.

use std::fs::File;
use std::panic::catch_unwind;

use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use super::rows::{Rows, Value, finite};
use super::{DataError, Flaw, Shard, select};
use crate::config::DataConfig;

/// One column of a row group, one entry per row.
enum Values {
    Numbers(Vec<Result<f64, Flaw>>),
    Texts(Vec<Result<Box<str>, Flaw>>),
}

impl Values {
    fn at(&self, row: usize) -> Result<Value<'_>, Flaw> {
        match self {
            Values::Numbers(values) => values[row].map(Value::Number),
            Values::Texts(values) => values[row].as_deref().map(Value::Text).map_err(|flaw| *flaw),
        }
    }
}

pub(super) fn read(config: &DataConfig, needed: Option<&[String]>) -> Result<Shard, DataError> {
    // The reader asserts what a damaged file may break.
    catch_unwind(|| decode(config, needed)).unwrap_or_else(|_| {
        let reason = "cannot be read as Parquet: the file is damaged".into();
        Err(DataError::Unreadable { file: config.path.clone(), reason })
    })
}

fn decode(config: &DataConfig, needed: Option<&[String]>) -> Result<Shard, DataError> {
    let path = config.path.as_path();
    let unreadable = |reason: String| DataError::Unreadable { file: path.to_owned(), reason };
    let broken = |e: ParquetError| unreadable(format!("cannot be read as Parquet: {e}"));
    let file = File::open(path).map_err(|e| unreadable(format!("cannot be read: {e}; `data.path` names the records")))?;
    let reader = SerializedFileReader::new(file).map_err(broken)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let header: Vec<String> = schema.columns().iter().map(|c| c.path().string()).collect();
    if header.is_empty() {
        return Err(DataError::Empty { file: path.to_owned(), reason: "has no columns".into() });
    }
    let chosen = select(config, &header, needed)?;
    for (name, at) in &chosen.columns {
        check_kind(&schema.column(*at)).map_err(|why| unreadable(format!("column {name:?} {why}")))?;
    }
    if let Some(at) = chosen.person {
        check_person(&schema.column(at)).map_err(|why| unreadable(format!("column {:?} {why}", header[at])))?;
    }
    let texts: Vec<bool> = chosen.columns.iter().map(|(_, at)| schema.column(*at).physical_type() == Type::BYTE_ARRAY).collect();
    let mut rows = Rows::new(config, header.clone(), &chosen, &texts);
    let mut row = 0u64;
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(broken)?;
        let count = usize::try_from(group.metadata().num_rows())
            .map_err(|_| unreadable("a row group has a negative number of rows: the file is damaged".into()))?;
        let columns: Vec<Values> = chosen
            .columns
            .iter()
            .map(|(name, at)| {
                read_column(&*group, *at, count).map_err(|e| unreadable(format!("column {name:?} cannot be read: {e}")))
            })
            .collect::<Result<_, _>>()?;
        let persons = chosen.person.map(|at| read_persons(&*group, at, count)).transpose().map_err(broken)?;
        for at in 0..count {
            row += 1;
            let values: Vec<_> = columns.iter().map(|column| column.at(at)).collect();
            let person = persons.as_ref().and_then(|persons| persons[at].as_deref());
            rows.push(&values, person, || format!("row {row}"))?;
        }
    }
    Ok(rows.finish())
}

fn check_kind(column: &ColumnDescriptor) -> Result<(), String> {
    if column.path().parts().len() > 1 || column.max_rep_level() > 0 {
        return Err("is nested; only flat columns can be used: name others in [policy] columns".into());
    }
    match column.physical_type() {
        Type::BOOLEAN | Type::INT32 | Type::INT64 | Type::FLOAT | Type::DOUBLE => Ok(()),
        Type::BYTE_ARRAY if !is_decimal(column) => Ok(()),
        other => Err(format!(
            "is of type {other}, which is neither a number nor a text; convert it to one, or leave it out of [policy] columns"
        )),
    }
}

fn is_decimal(column: &ColumnDescriptor) -> bool {
    matches!(column.logical_type_ref(), Some(LogicalType::Decimal(_))) || column.converted_type() == ConvertedType::DECIMAL
}

fn check_person(column: &ColumnDescriptor) -> Result<(), String> {
    match column.physical_type() {
        Type::INT32 | Type::INT64 | Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY
            if column.path().parts().len() == 1 && column.max_rep_level() == 0 =>
        {
            Ok(())
        }
        other => Err(format!("is of type {other}; data.person must name a flat column of text or whole numbers")),
    }
}

/// The names of a row group's persons, one per row; `None` for a null.
fn read_persons(group: &dyn RowGroupReader, at: usize, count: usize) -> Result<Vec<Option<Box<[u8]>>>, ParquetError> {
    let descriptor = group.metadata().schema_descr_ptr().column(at);
    fn whole(value: i64) -> Box<[u8]> {
        value.to_le_bytes().into()
    }
    match group.get_column_reader(at)? {
        ColumnReader::Int32ColumnReader(r) => drain(r, &descriptor, count, |v| Some(whole(i64::from(*v))), None),
        ColumnReader::Int64ColumnReader(r) => drain(r, &descriptor, count, |v| Some(whole(*v)), None),
        ColumnReader::ByteArrayColumnReader(r) => drain(r, &descriptor, count, |v| Some(v.data().into()), None),
        ColumnReader::FixedLenByteArrayColumnReader(r) => drain(r, &descriptor, count, |v| Some(v.data().into()), None),
        _ => Err(ParquetError::General("its type can't name persons".into())),
    }
}

/// One column of a row group, one entry per row.
fn read_column(group: &dyn RowGroupReader, at: usize, count: usize) -> Result<Values, ParquetError> {
    let descriptor = group.metadata().schema_descr_ptr().column(at);
    let divisor = 10f64.powi(decimal_places(&descriptor));
    let unsigned = is_unsigned(&descriptor);
    let missing = Err(Flaw::Missing);
    let numbers = match group.get_column_reader(at)? {
        ColumnReader::ByteArrayColumnReader(r) => {
            return drain(r, &descriptor, count, |v| words(v.data()), Err(Flaw::Missing)).map(Values::Texts);
        }
        ColumnReader::BoolColumnReader(r) => drain(r, &descriptor, count, |v| finite(f64::from(u8::from(*v))), missing),
        ColumnReader::Int32ColumnReader(r) if unsigned => {
            drain(r, &descriptor, count, |v| finite(f64::from(v.cast_unsigned())), missing)
        }
        ColumnReader::Int32ColumnReader(r) => drain(r, &descriptor, count, |v| finite(f64::from(*v) / divisor), missing),
        ColumnReader::Int64ColumnReader(r) if unsigned => {
            drain(r, &descriptor, count, |v| finite(v.cast_unsigned() as f64), missing)
        }
        ColumnReader::Int64ColumnReader(r) => drain(r, &descriptor, count, |v| finite(*v as f64 / divisor), missing),
        ColumnReader::FloatColumnReader(r) => drain(r, &descriptor, count, |v| finite(f64::from(*v)), missing),
        ColumnReader::DoubleColumnReader(r) => drain(r, &descriptor, count, |v| finite(*v), missing),
        _ => Err(ParquetError::General("its type is not numeric".into())),
    };
    numbers.map(Values::Numbers)
}

/// A text without the blanks around it, as in a CSV file.
fn words(bytes: &[u8]) -> Result<Box<str>, Flaw> {
    match std::str::from_utf8(bytes).map_err(|_| Flaw::NotText)?.trim() {
        "" => Err(Flaw::Missing),
        text => Ok(text.into()),
    }
}

fn drain<T: DataType, V: Clone>(
    mut reader: ColumnReaderImpl<T>,
    descriptor: &ColumnDescriptor,
    count: usize,
    read: impl Fn(&T::T) -> V,
    missing: V,
) -> Result<Vec<V>, ParquetError> {
    let present = descriptor.max_def_level();
    let (mut levels, mut raw) = (Vec::new(), Vec::new());
    let mut rows = 0;
    while rows < count {
        let (records, _, _) = reader.read_records(count - rows, Some(&mut levels), None, &mut raw)?;
        if records == 0 {
            return Err(ParquetError::EOF(format!("{rows} rows instead of {count}: the file is damaged")));
        }
        rows += records;
    }
    let mut found = raw.iter().map(read);
    let mut next = || found.next().ok_or_else(|| ParquetError::EOF("values are missing: the file is damaged".into()));
    if present == 0 {
        return (0..count).map(|_| next()).collect();
    }
    if levels.len() != count {
        return Err(ParquetError::EOF(format!("{} levels instead of {count}: the file is damaged", levels.len())));
    }
    levels.iter().map(|level| if *level == present { next() } else { Ok(missing.clone()) }).collect()
}

fn decimal_places(column: &ColumnDescriptor) -> i32 {
    match column.logical_type_ref() {
        Some(LogicalType::Decimal(d)) => d.scale,
        _ if column.converted_type() == ConvertedType::DECIMAL => column.type_scale(),
        _ => 0,
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
