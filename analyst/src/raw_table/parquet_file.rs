//! Writes a table as a Parquet file, bit for bit.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::table::{Cells, RawColumn, RawTable};

/// Writes a new file.
///
/// # Errors
/// The file system's; a name that Parquet can't hold.
pub(super) fn write(table: &RawTable, path: &Path) -> Result<(), ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .build();
    let fields = table.columns.iter().map(field).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder("records").with_fields(fields).build()?;
    let file = File::create_new(path).map_err(|e| ParquetError::General(e.to_string()))?;
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    table.columns.iter().try_for_each(|column| write_column(&mut group, column, table.rows))?;
    group.close()?;
    writer.close().map(drop)
}

fn field(column: &RawColumn) -> Result<Arc<Type>, ParquetError> {
    let (physical, converted) = match column.cells {
        Cells::Numbers(_) => (Physical::DOUBLE, ConvertedType::NONE),
        Cells::Texts { .. } => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
    };
    let field = Type::primitive_type_builder(&column.name, physical).with_repetition(Repetition::OPTIONAL);
    field.with_converted_type(converted).build().map(Arc::new)
}

fn write_column(group: &mut SerializedRowGroupWriter<'_, File>, column: &RawColumn, rows: usize) -> Result<(), ParquetError> {
    let present: Vec<i16> = (0..rows).map(|row| i16::from(!column.is_null(row))).collect();
    let kept = |row: &usize| present[*row] == 1;
    match &column.cells {
        Cells::Numbers(values) if !present.contains(&0) => append::<DoubleType>(group, values, &present),
        Cells::Numbers(values) => {
            let values: Vec<f64> = (0..rows).filter(kept).map(|row| values[row]).collect();
            append::<DoubleType>(group, &values, &present)
        }
        Cells::Texts { places, words } => {
            let words: Vec<ByteArray> = words.iter().map(|word| ByteArray::from(word.as_str())).collect();
            let values: Vec<ByteArray> = (0..rows).filter(kept).map(|row| words[places[row] as usize].clone()).collect();
            append::<ByteArrayType>(group, &values, &present)
        }
    }
}

fn append<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
    present: &[i16],
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.ok_or_else(|| ParquetError::General("the schema has fewer columns".to_owned()))?;
    column.typed::<T>().write_batch(values, Some(present), None)?;
    column.close()
}
