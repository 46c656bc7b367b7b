//! A Parquet file is read into a shard, or what a streamed shard reads of it is found out.

use std::fs::File;
use std::panic::catch_unwind;
use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::schema::types::ColumnDescriptor;

use super::Column;
use crate::data::chosen::select;
use crate::data::error::DataError;
use crate::data::rows::Rows;
use crate::data::settings::{DataConfig, Memory};
use crate::data::shard::Shard;
use crate::data::stream::{Stamp, Stream};

/// Rows that are decoded at once: few enough for little memory, enough for two threads to be worth their while.
const BATCH: usize = 1 << 16;

pub(in crate::data) fn read(config: &DataConfig, needed: Option<&[String]>) -> Result<Shard, DataError> {
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
    let stamp = file.metadata().map(|about| Stamp::of(&about)).map_err(|e| unreadable(format!("cannot be looked at: {e}")))?;
    let footer = Arc::new(ParquetMetaDataReader::new().parse_and_finish(&file).map_err(broken)?);
    let schema = footer.file_metadata().schema_descr();
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
    let file = Arc::new(file);
    let places = chosen.columns.iter().map(|(_, at)| *at).collect();
    let mut stream = (config.memory == Memory::Stream).then(|| Stream::new(path, stamp, &file, &footer, places));
    let counts = footer.row_groups().iter().map(|group| usize::try_from(group.num_rows()));
    let counts = counts.collect::<Result<Vec<_>, _>>();
    let counts = counts.map_err(|_| unreadable("a row group has a negative number of rows: the file is damaged".into()))?;
    rows.reserve(if stream.is_some() { BATCH } else { counts.iter().fold(0, |sum, count| sum.saturating_add(*count)) })?;
    let mut read = 0;
    for ((number, group), count) in (0..).zip(footer.row_groups()).zip(counts) {
        let bad_column = |name: &str, e: ParquetError| unreadable(format!("column {name:?} cannot be read: {e}"));
        let open =
            |(name, at): &(String, usize)| Ok((name.clone(), Column::open(&file, group, *at).map_err(|e| bad_column(name, e))?));
        let mut columns = chosen.columns.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let mut persons = chosen.person.map(|at| Column::open(&file, group, at)).transpose().map_err(broken)?;
        for start in (0..count).step_by(BATCH) {
            let count = BATCH.min(count - start);
            let names = persons.as_mut().map(|column| column.names(count)).transpose().map_err(broken)?;
            let out = rows.batch(
                count,
                &mut columns,
                |(name, column), values| column.read(count, values).map_err(|e| bad_column(name, e)),
                |row| names.as_ref().and_then(|names| names[row].as_deref()),
                |row| format!("row {}", read + row + 1),
            )?;
            read += count;
            if let Some(stream) = &mut stream {
                stream.enter(number, start == 0, count, &out);
                rows.forget();
            }
        }
    }
    let Some(stream) = stream else { return Ok(rows.finish()) };
    stream.unchanged().map_err(unreadable)?;
    Ok(rows.finish_streamed(stream))
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
