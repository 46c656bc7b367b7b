//! The reader of one column of a row group, some rows at a time, to the end of the shard's own column.

use std::fs::File;
use std::io::{BufReader, Read};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{ConvertedType, LogicalType};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{ChunkReader, Length, SerializedPageReader};
use parquet::schema::types::ColumnDescriptor;

use crate::data::error::Flaw;
use crate::data::piece::Piece;

/// A column of a row group, of which some rows have been read.
pub(in crate::data) struct Column {
    reader: ColumnReader,
    /// The definition level of a value that is there.
    present: i16,
    /// What a whole number is divided by.
    divisor: f64,
    unsigned: bool,
    /// The batch's definition levels; empty where every value is there.
    levels: Vec<i16>,
}

/// The name of a row's person.
pub(in crate::data) enum Name {
    Text(ByteArray),
    Whole([u8; 8]),
}

impl std::ops::Deref for Name {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Name::Text(text) => text.data(),
            Name::Whole(bytes) => bytes,
        }
    }
}

impl Column {
    /// The column at place `at` of a row group.
    pub(in crate::data) fn open(file: &Arc<File>, group: &RowGroupMetaData, at: usize) -> Result<Self, ParquetError> {
        let chunk = group.column(at);
        let descriptor = chunk.column_descr_ptr();
        let file = Arc::new(Shared(Arc::clone(file)));
        let rows = usize::try_from(group.num_rows())?;
        let pages = SerializedPageReader::new(file, chunk, rows, None)?;
        Ok(Self {
            present: descriptor.max_def_level(),
            divisor: 10f64.powi(decimal_places(&descriptor)),
            unsigned: is_unsigned(&descriptor),
            reader: get_column_reader(descriptor, Box::new(pages)),
            levels: Vec::new(),
        })
    }

    /// Puts the next `count` rows' values to the end of `column`.
    pub(in crate::data) fn read(&mut self, count: usize, column: &mut Vec<f64>) -> Result<Piece, ParquetError> {
        let Self { reader, present, divisor, unsigned, levels } = self;
        let start = column.len();
        match reader {
            ColumnReader::ByteArrayColumnReader(reader) => return texts(reader, levels, *present, count, column),
            // Straight to where they stay.
            ColumnReader::DoubleColumnReader(reader) => next(reader, levels, count, column)?,
            ColumnReader::FloatColumnReader(reader) => convert(reader, levels, count, column, |v| f64::from(*v))?,
            ColumnReader::BoolColumnReader(reader) => convert(reader, levels, count, column, |v| f64::from(u8::from(*v)))?,
            ColumnReader::Int32ColumnReader(reader) if *unsigned => {
                convert(reader, levels, count, column, |v| f64::from(v.cast_unsigned()))?;
            }
            ColumnReader::Int32ColumnReader(reader) => convert(reader, levels, count, column, |v| f64::from(*v) / *divisor)?,
            ColumnReader::Int64ColumnReader(reader) if *unsigned => {
                convert(reader, levels, count, column, |v| v.cast_unsigned() as f64)?;
            }
            ColumnReader::Int64ColumnReader(reader) => convert(reader, levels, count, column, |v| *v as f64 / *divisor)?,
            _ => return Err(ParquetError::General("its type is not numeric".into())),
        }
        spread(column, start, levels, *present, count)?;
        let mut piece = Piece::default();
        let missing = |row: usize| levels.get(row).is_some_and(|level| level != present);
        let flawed = column[start..].iter().enumerate().filter(|(_, value)| !value.is_finite());
        piece.flaws.extend(flawed.map(|(row, _)| (row, if missing(row) { Flaw::Missing } else { Flaw::NotFinite })));
        Ok(piece)
    }

    /// The names of the next `count` rows' persons; `None` for a null.
    pub(in crate::data) fn names(&mut self, count: usize) -> Result<Vec<Option<Name>>, ParquetError> {
        let Self { reader, present, levels, .. } = self;
        let whole = |value: i64| Name::Whole(value.to_le_bytes());
        match reader {
            ColumnReader::Int32ColumnReader(r) => named(r, levels, *present, count, |v| whole(i64::from(v))),
            ColumnReader::Int64ColumnReader(r) => named(r, levels, *present, count, whole),
            ColumnReader::ByteArrayColumnReader(r) => named(r, levels, *present, count, Name::Text),
            ColumnReader::FixedLenByteArrayColumnReader(r) => named(r, levels, *present, count, |v| Name::Text(v.into())),
            _ => Err(ParquetError::General("its type can't name persons".into())),
        }
    }
}

/// Puts the values of the next `count` rows that are there to the end of `values`.
fn next<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    levels: &mut Vec<i16>,
    count: usize,
    values: &mut Vec<T::T>,
) -> Result<(), ParquetError> {
    levels.clear();
    let mut rows = 0;
    while rows < count {
        let (records, _, _) = reader.read_records(count - rows, Some(levels), None, values)?;
        if records == 0 {
            return Err(ParquetError::EOF(format!("{rows} rows instead of {count}: the file is damaged")));
        }
        rows += records;
    }
    Ok(())
}

fn convert<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    levels: &mut Vec<i16>,
    count: usize,
    column: &mut Vec<f64>,
    number: impl Fn(&T::T) -> f64,
) -> Result<(), ParquetError> {
    let mut values = Vec::with_capacity(count);
    next(reader, levels, count, &mut values)?;
    column.extend(values.iter().map(number));
    Ok(())
}

/// Moves the values from `start` on apart, so that each stands in its row, with NaN where there is none.
fn spread(column: &mut Vec<f64>, start: usize, levels: &[i16], present: i16, count: usize) -> Result<(), ParquetError> {
    let values = column.len() - start;
    check(levels, present, count, values)?;
    if values == count {
        return Ok(());
    }
    column.resize(start + count, f64::NAN);
    let (mut from, batch) = (values, &mut column[start..]);
    for (row, level) in levels.iter().enumerate().rev() {
        batch[row] = if *level == present {
            from -= 1;
            batch[from]
        } else {
            f64::NAN
        };
    }
    Ok(())
}

/// Every row has a level, and every level of a value that is there has one.
fn check(levels: &[i16], present: i16, count: usize, values: usize) -> Result<(), ParquetError> {
    let there = if present == 0 { count } else { levels.iter().filter(|level| **level == present).count() };
    if (present > 0 && levels.len() != count) || there != values {
        return Err(ParquetError::EOF(format!("{values} values instead of {there} of {count} rows: the file is damaged")));
    }
    Ok(())
}

/// The next `count` rows' values; `None` for a null.
fn rows_of<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    levels: &mut Vec<i16>,
    present: i16,
    count: usize,
) -> Result<impl Iterator<Item = Option<T::T>>, ParquetError> {
    let mut values = Vec::with_capacity(count);
    next(reader, levels, count, &mut values)?;
    check(levels, present, count, values.len())?;
    let mut values = values.into_iter();
    Ok((0..count).map(move |row| if present == 0 || levels[row] == present { values.next() } else { None }))
}

fn texts<T: DataType<T = ByteArray>>(
    reader: &mut ColumnReaderImpl<T>,
    levels: &mut Vec<i16>,
    present: i16,
    count: usize,
    column: &mut Vec<f64>,
) -> Result<Piece, ParquetError> {
    let mut piece = Piece::default();
    for (row, text) in rows_of(reader, levels, present, count)?.enumerate() {
        let text = text.as_ref().map_or(Err(Flaw::Missing), |text| trimmed(text.data()));
        column.push(text.map(|text| piece.words.number(text)).unwrap_or_else(|flaw| {
            piece.flaws.push((row, flaw));
            f64::NAN
        }));
    }
    Ok(piece)
}

/// A text without the blanks around it, as in a CSV file.
fn trimmed(bytes: &[u8]) -> Result<&str, Flaw> {
    match std::str::from_utf8(bytes).map_err(|_| Flaw::NotText)?.trim() {
        "" => Err(Flaw::Missing),
        text => Ok(text),
    }
}

fn named<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    levels: &mut Vec<i16>,
    present: i16,
    count: usize,
    name: impl Fn(T::T) -> Name,
) -> Result<Vec<Option<Name>>, ParquetError> {
    Ok(rows_of(reader, levels, present, count)?.map(|value| value.map(&name)).collect())
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

/// Room that is made for a page before it is read; more where there is more.
const MOST_AT_ONCE: usize = 1 << 24;

/// A file that several threads read at places of their own.
struct Shared(Arc<File>);

/// A place in such a file.
struct Place {
    file: Arc<File>,
    offset: u64,
}

impl Length for Shared {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for Shared {
    type T = BufReader<Place>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        // What is read this way are the pages' headers.
        Ok(BufReader::with_capacity(512, Place { file: Arc::clone(&self.0), offset: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        // A damaged file may say anything.
        let mut bytes = Vec::with_capacity(length.min(MOST_AT_ONCE));
        let read = Place { file: Arc::clone(&self.0), offset: start }.take(length as u64).read_to_end(&mut bytes)?;
        if read != length {
            return Err(ParquetError::EOF(format!("{read} bytes instead of {length}: the file is damaged")));
        }
        Ok(bytes.into())
    }
}

impl Read for Place {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = read_at(&self.file, buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}
