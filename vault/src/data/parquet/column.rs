//! Reads one column of a row group, some rows at a time, to the end of the shard's own column.

use std::fs::File;
use std::io::{BufReader, Read};
use std::sync::Arc;

use bytes::Bytes;
use num_bigint::BigInt;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{ChunkReader, Length, SerializedPageReader};

use super::kind::{ColumnReading, Kind};
use crate::data::error::Flaw;
use crate::data::format::Meaning;
use crate::data::piece::Piece;
use crate::data::place::read_at;

/// A column of a row group, of which some rows have been read.
pub(in crate::data) struct Column {
    reader: ColumnReader,
    /// The definition level of a present value.
    present: i16,
    /// Form of its values.
    kind: Kind,
    meaning: Arc<Meaning>,
    /// The batch's definition levels; empty where every value is present.
    levels: Vec<i16>,
}

impl Column {
    /// Opens the column of a row group that `reading` names.
    pub(in crate::data) fn open(
        file: &Arc<File>,
        group: &RowGroupMetaData,
        reading: &ColumnReading,
    ) -> Result<Self, ParquetError> {
        let chunk = group.column(reading.at);
        let descriptor = chunk.column_descr_ptr();
        let file = Arc::new(Shared(Arc::clone(file)));
        let rows = usize::try_from(group.num_rows())?;
        let pages = SerializedPageReader::new(file, chunk, rows, None)?;
        Ok(Self {
            present: descriptor.max_def_level(),
            kind: reading.kind,
            meaning: Arc::clone(&reading.meaning),
            reader: get_column_reader(descriptor, Box::new(pages)),
            levels: Vec::new(),
        })
    }

    /// Appends the next `count` rows' values to `column`.
    pub(in crate::data) fn read(&mut self, count: usize, column: &mut Vec<f64>) -> Result<Piece, ParquetError> {
        let Self { reader, present, kind, meaning, levels } = self;
        let (start, kind, mut piece) = (column.len(), *kind, Piece::default());
        let wide = |bytes: &[u8]| kind.of_big_endian(bytes);
        match reader {
            ColumnReader::ByteArrayColumnReader(reader) if !kind.is_decimal() => {
                for (row, text) in rows_of(reader, levels, *present, count)?.enumerate() {
                    let text = text.as_ref().map_or(&[][..], ByteArray::data);
                    let value = meaning.of_text(text, &mut piece.words);
                    piece.push(row, value, column);
                }
                return Ok(piece);
            }
            // Straight to their final place.
            ColumnReader::DoubleColumnReader(reader) => next(reader, levels, count, column)?,
            ColumnReader::FloatColumnReader(reader) => convert(reader, levels, count, column, |v| f64::from(*v))?,
            ColumnReader::BoolColumnReader(reader) => convert(reader, levels, count, column, |v| f64::from(u8::from(*v)))?,
            ColumnReader::Int32ColumnReader(reader) => convert(reader, levels, count, column, |v| kind.of_i32(*v))?,
            ColumnReader::Int64ColumnReader(reader) => convert(reader, levels, count, column, |v| kind.of_i64(*v))?,
            ColumnReader::Int96ColumnReader(reader) => convert(reader, levels, count, column, |v| kind.of_int96(v.data()))?,
            ColumnReader::ByteArrayColumnReader(reader) => convert(reader, levels, count, column, |v| wide(v.data()))?,
            ColumnReader::FixedLenByteArrayColumnReader(reader) => convert(reader, levels, count, column, |v| wide(v.data()))?,
        }
        spread(column, start, levels, *present, count)?;
        if meaning.has_no_flaw(&column[start..]) {
            return Ok(piece);
        }
        let absent = |row: usize| levels.get(row).is_some_and(|level| level != present);
        let flaw = |(row, value): (usize, &f64)| {
            let flaw = meaning.of_number(*value).err()?;
            Some((row, if absent(row) { Flaw::Missing } else { flaw }))
        };
        piece.flaws.extend(column[start..].iter().enumerate().filter_map(flaw));
        Ok(piece)
    }

    /// Returns the names of the next `count` rows' persons, numbers as their digits; `None` for a null.
    pub(in crate::data) fn names(&mut self, count: usize) -> Result<Vec<Option<ByteArray>>, ParquetError> {
        let Self { reader, present, levels, kind, .. } = self;
        let whole = |value: i64| value.to_string().as_str().into();
        // Bytes that are no text never lose a blank: two numbers can differ in such a byte.
        let digits = |bytes: &[u8]| BigInt::from_signed_bytes_be(bytes).to_string().as_str().into();
        match reader {
            ColumnReader::Int32ColumnReader(r) => named(r, levels, *present, count, |v| whole(i64::from(v))),
            ColumnReader::Int64ColumnReader(r) => named(r, levels, *present, count, whole),
            ColumnReader::ByteArrayColumnReader(r) if kind.is_decimal() => {
                named(r, levels, *present, count, |v| digits(v.data()))
            }
            ColumnReader::ByteArrayColumnReader(r) => named(r, levels, *present, count, |v| v),
            ColumnReader::FixedLenByteArrayColumnReader(r) => named(r, levels, *present, count, |v| digits(v.data())),
            _ => Err(ParquetError::General("its type can't name persons".into())),
        }
    }
}

/// Appends the present values of the next `count` rows to `values`.
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

/// Spreads the values from `start` on, so that each is in its row, with NaN in the others.
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

/// Checks that every row has a level, and every level of a present value has a value.
fn check(levels: &[i16], present: i16, count: usize, values: usize) -> Result<(), ParquetError> {
    let there = if present == 0 { count } else { levels.iter().filter(|level| **level == present).count() };
    if (present > 0 && levels.len() != count) || there != values {
        return Err(ParquetError::EOF(format!("{values} values instead of {there} of {count} rows: the file is damaged")));
    }
    Ok(())
}

/// Returns the next `count` rows' values; `None` for a null.
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

fn named<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    levels: &mut Vec<i16>,
    present: i16,
    count: usize,
    name: impl Fn(T::T) -> ByteArray,
) -> Result<Vec<Option<ByteArray>>, ParquetError> {
    Ok(rows_of(reader, levels, present, count)?.map(|value| value.map(&name)).collect())
}

/// Room that is made for a page before it is read; more is made as needed.
const MOST_AT_ONCE: usize = 1 << 24;

/// A file that several threads read at separate places.
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
        // A damaged file may hold anything.
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
