//! Reads a Parquet file into a shard.

use std::fs::File;
use std::panic::catch_unwind;
use std::sync::Arc;

use parquet::basic::Type;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::schema::types::ColumnDescriptor;

use super::kind::{Kind, holds_dates};
use super::{Column, ColumnReading};
use crate::data::chosen::select;
use crate::data::error::DataError;
use crate::data::rows::Rows;
use crate::data::settings::DataConfig;
use crate::data::shard::Shard;

/// Rows that are decoded at once: few enough for little memory, enough for two threads to pay off.
const BATCH: usize = 1 << 16;

pub(in crate::data) fn read(config: &DataConfig, needed: Option<&[String]>) -> Result<Shard, DataError> {
    // The reader asserts conditions that a damaged file may break.
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
    let footer = Arc::new(ParquetMetaDataReader::new().parse_and_finish(&file).map_err(broken)?);
    let schema = footer.file_metadata().schema_descr();
    let header: Vec<String> = schema.columns().iter().map(|c| c.path().string()).collect();
    if header.is_empty() {
        return Err(DataError::Empty { file: path.to_owned(), reason: "has no columns".into() });
    }
    let chosen = select(config, &header, needed)?;
    let is_text = |at, kind: Kind| schema.column(at).physical_type() == Type::BYTE_ARRAY && !kind.is_decimal() && !kind.is_date();
    let reading = |(name, at): &(String, usize)| {
        let kind = Kind::of(&schema.column(*at), config.format.dates.get(name).copied());
        let kind = kind.map_err(|why| unreadable(format!("column {name:?} {why}")))?;
        Ok(ColumnReading { at: *at, kind, meaning: Arc::new(config.format.meaning(name, is_text(*at, kind))) })
    };
    let readings = chosen.columns.iter().map(reading).collect::<Result<Vec<_>, DataError>>()?;
    if let Some(at) = chosen.person {
        check_person(&schema.column(at)).map_err(|why| unreadable(format!("column {:?} {why}", header[at])))?;
    }
    let texts: Vec<bool> = readings.iter().map(|reading| is_text(reading.at, reading.kind)).collect();
    let mut rows = Rows::new(config, header.clone(), &chosen, &texts)?;
    let undeclared = readings.iter().zip(&chosen.columns).filter(|(r, _)| !r.kind.is_date() && holds_dates(&schema.column(r.at)));
    rows.shard.undeclared_dates.extend(undeclared.map(|(_, (name, _))| name.clone()));
    let file = Arc::new(file);
    let counts = footer.row_groups().iter().map(|group| usize::try_from(group.num_rows()));
    let counts = counts.collect::<Result<Vec<_>, _>>();
    let counts = counts.map_err(|_| unreadable("a row group has a negative number of rows: the file is damaged".into()))?;
    rows.reserve(counts.iter().fold(0, |sum, count| sum.saturating_add(*count)))?;
    let mut read = 0;
    for (group, count) in footer.row_groups().iter().zip(counts) {
        let bad_column = |name: &str, e: ParquetError| unreadable(format!("column {name:?} cannot be read: {e}"));
        let open = |((name, _), reading): (&(String, usize), &ColumnReading)| {
            Ok((name.clone(), Column::open(&file, group, reading).map_err(|e| bad_column(name, e))?))
        };
        let mut columns = chosen.columns.iter().zip(&readings).map(open).collect::<Result<Vec<_>, _>>()?;
        let names = |at| {
            let kind = Kind::of(&schema.column(at), None).unwrap_or(Kind::Plain);
            Column::open(&file, group, &ColumnReading { at, kind, meaning: Arc::new(config.format.meaning("", true)) })
        };
        let mut persons = chosen.person.map(names).transpose().map_err(broken)?;
        for start in (0..count).step_by(BATCH) {
            let count = BATCH.min(count - start);
            let names = persons.as_mut().map(|column| column.names(count)).transpose().map_err(broken)?;
            rows.batch(
                count,
                &mut columns,
                |(name, column), values| column.read(count, values).map_err(|e| bad_column(name, e)),
                |row| names.as_ref().and_then(|names| names[row].as_ref()).map(ByteArray::data),
                |row| format!("row {}", read + row + 1),
            )?;
            read += count;
        }
    }
    rows.finish()
}

fn check_person(column: &ColumnDescriptor) -> Result<(), String> {
    let types = [Type::INT32, Type::INT64, Type::BYTE_ARRAY, Type::FIXED_LEN_BYTE_ARRAY];
    let is_flat = column.path().parts().len() == 1 && column.max_rep_level() == 0;
    let other = Some(column.physical_type()).filter(|kind| !is_flat || !types.contains(kind));
    other.map_or(Ok(()), |other| Err(format!("is of type {other}; data.person must name a flat column of text or whole numbers")))
}
