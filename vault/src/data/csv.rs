//! Reads CSV: a header line, then values; a byte order mark is tolerated, blanks around values are not counted.

use std::fs::File;
use std::io::Read;

use csv::{ByteRecord, Reader, ReaderBuilder, Trim};

use super::chosen::{places, select};
use super::dates::DateScale;
use super::error::{DataError, Flaw};
use super::format::{Missing, number};
use super::gzip::Source;
use super::piece::{Piece, finite};
use super::rows::Rows;
use super::settings::DataConfig;
use super::shard::Shard;

/// Rows of a batch, and bytes after which a batch of longer rows ends: the content of the second-level cache is parsed at once.
const BATCH: usize = 2048;
const BATCH_BYTES: u64 = 1 << 20;

pub(super) fn read(config: &DataConfig, needed: Option<&[String]>) -> Result<Shard, DataError> {
    let path = config.path.as_path();
    let unreadable = |e: csv::Error| DataError::Unreadable { file: path.to_owned(), reason: reason(&e) };
    let source = File::open(path).map(|file| Source::new(path, file)).map_err(|e| unreadable(e.into()))?;
    let mut reader = ReaderBuilder::new()
        .flexible(true)
        .delimiter(config.format.delimiter)
        .trim(Trim::Headers)
        .buffer_capacity(BATCH_BYTES as usize)
        .from_reader(Bounded::new(source));
    let header: Vec<String> = reader
        .headers()
        .map_err(unreadable)?
        .iter()
        // The reader strips the mark only where it gets all three bytes at once.
        .map(|h| h.trim_start_matches('\u{feff}').trim().to_owned())
        .collect();
    if header.is_empty() {
        let reason = "is empty: the first line must name the columns".to_owned();
        return Err(DataError::Empty { file: path.to_owned(), reason });
    }
    let chosen = select(config, &header, needed).map_err(|e| with_delimiter(e, &header))?;
    places(path, &header, Some(&config.text))?;
    places(path, &header, Some(&config.format.dates.keys().cloned().collect::<Vec<_>>()))?;
    // The owner declares them: were they inferred from the values, one record could decide it.
    let texts: Vec<bool> = chosen.columns.iter().map(|(name, _)| config.text.contains(name)).collect();
    let mut rows = Rows::new(config, header.clone(), &chosen, &texts);
    let missing = config.format.missing();
    let field = |((name, at), text): (&(String, usize), bool)| {
        let kind = match config.format.dates.get(name) {
            Some(scale) => FieldKind::Date(*scale),
            None if text => FieldKind::Text,
            None => FieldKind::Number { decimal: config.format.decimal },
        };
        Field { at: *at, kind, most: header.len(), missing: &missing }
    };
    let mut fields: Vec<Field<'_>> = chosen.columns.iter().zip(texts).map(field).collect();
    let (mut batch, mut next) = (Batch::default(), Batch::default());
    next.fill(&mut reader).map_err(unreadable)?;
    while next.filled > 0 {
        std::mem::swap(&mut batch, &mut next);
        let read = reader.position().byte();
        let expected = expected(rows.kept(), batch.filled, read, reader.get_ref().source.length());
        // The rest of the file may differ: room for it is a convenience, room for the rows at hand is not.
        rows.reserve(expected).or_else(|_| rows.reserve(batch.filled))?;
        // The next rows are split into fields while these become numbers.
        let (filled, taken) = rayon::join(
            || next.fill(&mut reader),
            || {
                rows.batch(
                    batch.filled,
                    &mut fields,
                    |field, column| Ok(field.read(batch.records(), column)),
                    |row| {
                        let name = chosen.person.and_then(|at| batch.records[row].get(at)).map(<[u8]>::trim_ascii);
                        name.filter(|name| !missing.text(name))
                    },
                    |row| batch.place(row, header.len()),
                )
            },
        );
        taken?;
        filled.map_err(unreadable)?;
    }
    Ok(rows.finish())
}

/// Returns the number of rows to make room for: those at hand and, where it is not known yet, the rest of the file at this rate.
fn expected(kept: usize, at_hand: usize, read: u64, length: u64) -> usize {
    let rest = (kept + at_hand) as f64 * (length.saturating_sub(read) as f64 / read.max(1) as f64);
    // A hundredth more, so that the last rows need no further step. Unused room is never touched, and returned.
    at_hand + (1.01 * rest) as usize
}

/// Largest number of bytes of one line: a file without line breaks, or with an unclosed quotation mark, would otherwise be read into memory
/// whole.
const MAX_LINE: u64 = 16 << 20;

/// A file of which at most the allowed amount is read or unpacked.
struct Bounded {
    source: Source,
    left: u64,
}

impl Bounded {
    /// Allows one line, and the reader's buffer beyond it.
    fn new(source: Source) -> Self {
        Self { source, left: MAX_LINE + BATCH_BYTES }
    }

    /// Allows a batch of rows, of which the last may be a line of the greatest length.
    fn allow_batch(&mut self) {
        self.left = MAX_LINE + 2 * BATCH_BYTES;
    }
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            return Err(std::io::Error::other(format!("a line of it is longer than {} MiB", MAX_LINE >> 20)));
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.source.read(&mut buffer[..most])?;
        self.left -= read as u64;
        Ok(read)
    }
}

/// Consecutive rows.
#[derive(Default)]
struct Batch {
    records: Vec<ByteRecord>,
    filled: usize,
}

impl Batch {
    fn fill(&mut self, reader: &mut Reader<Bounded>) -> Result<(), csv::Error> {
        reader.get_mut().allow_batch();
        let start = reader.position().byte();
        self.filled = 0;
        while self.filled < BATCH && reader.position().byte() - start < BATCH_BYTES {
            if self.filled == self.records.len() {
                self.records.push(ByteRecord::new());
            }
            if !reader.read_byte_record(&mut self.records[self.filled])? {
                break;
            }
            self.filled += 1;
        }
        Ok(())
    }

    fn records(&self) -> &[ByteRecord] {
        &self.records[..self.filled]
    }

    fn place(&self, row: usize, columns: usize) -> String {
        let record = &self.records[row];
        let line = record.position().map_or(0, csv::Position::line);
        match record.len() > columns {
            true => format!("line {line} with {} fields under a header of {columns}", record.len()),
            false => format!("line {line}"),
        }
    }
}

/// A column of the file.
struct Field<'a> {
    at: usize,
    kind: FieldKind,
    /// Largest number of fields of a row.
    most: usize,
    missing: &'a Missing,
}

/// The meaning of a column's texts.
#[derive(Clone, Copy)]
enum FieldKind {
    Number { decimal: u8 },
    Text,
    Date(DateScale),
}

impl Field<'_> {
    fn read(&self, records: &[ByteRecord], column: &mut Vec<f64>) -> Piece {
        let mut piece = Piece::default();
        for (row, record) in records.iter().enumerate() {
            let field = record.get(self.at).map(<[u8]>::trim_ascii);
            let value = match field {
                // A row that is too long is torn: its fields cannot be assigned.
                _ if record.len() > self.most => Err(Flaw::NotNumeric),
                None | Some(b"") => Err(Flaw::Missing),
                Some(bytes) if self.missing.text(bytes) => Err(Flaw::Missing),
                Some(bytes) => match self.kind {
                    FieldKind::Text => std::str::from_utf8(bytes).map(|text| piece.words.number(text)).map_err(|_| Flaw::NotText),
                    FieldKind::Date(scale) => scale.of_text(bytes).ok_or(Flaw::NotDate),
                    FieldKind::Number { decimal } => match number(bytes, decimal) {
                        Some(value) if self.missing.number(value) => Err(Flaw::Missing),
                        Some(value) => finite(value),
                        None => Err(Flaw::NotNumeric),
                    },
                },
            };
            column.push(value.unwrap_or_else(|flaw| {
                piece.flaws.push((row, flaw));
                f64::NAN
            }));
        }
        piece
    }
}

/// Adds the remedy for a header of one column that holds another file's delimiters.
fn with_delimiter(error: DataError, header: &[String]) -> DataError {
    let DataError::UnknownColumn { file, column, hint: near, known } = error else { return error };
    let inside =
        |name: &String| [(';', ";"), ('\t', "\\t"), ('|', "|")].iter().find(|(c, _)| name.contains(*c)).map(|(_, key)| *key);
    let hint = match header {
        [one] => inside(one)
            .map(|key| format!("; its header is not parted by this file's `data.delimiter`: write delimiter = \"{key}\"")),
        _ => None,
    };
    DataError::UnknownColumn { file, column, hint: hint.unwrap_or(near), known }
}

fn reason(e: &csv::Error) -> String {
    match e.kind() {
        csv::ErrorKind::Io(e) => format!("cannot be read: {e}; `data.path` names the records"),
        csv::ErrorKind::Utf8 { .. } => "its header line is not UTF-8 text; save the file as UTF-8".into(),
        _ => format!("is not a CSV file: {e}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(text: &[u8]) -> Result<f64, Flaw> {
        super::number(text, b'.').ok_or(Flaw::NotNumeric).and_then(finite)
    }

    /// Reads a number by the standard library.
    fn parsed(text: &[u8]) -> Result<u64, Flaw> {
        let parsed = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or(Flaw::NotNumeric);
        parsed.and_then(finite).map(f64::to_bits)
    }

    #[test]
    fn odd_spellings_are_read_as_the_standard_library_reads_them() {
        let spellings = "|.|-|-.|+|+1|--1|-0|-0.0|0|00012|1.|.5|-.5|+.5|1..2|1.2.3|1e5|1E5|1e+5|1e|e5|1.e5|.e5|1e-400|1e999|1e5.5|\
            9007199254740993|0.9007199254740993|123456789012345678901234567890|2.2250738585072011e-308|4.9e-324|1.7976931348623159e308|\
            1,5|1_0|inf|-inf|+INF|infin|infinity|-Infinity|nan|-NaN|+nan|nano|0x1|1f|1d|1f64|é|1 2|1\u{0}|\u{2212}1|٣";
        for text in spellings.split('|') {
            assert_eq!(number(text.as_bytes()).map(f64::to_bits), parsed(text.as_bytes()), "{text:?}");
        }
        assert_eq!(number(b"1\xff"), Err(Flaw::NotNumeric));
    }

    proptest! {
        #[test]
        fn texts_are_read_as_the_standard_library_reads_them(text in "[-+]?[0-9]{0,20}[.]?[0-9]{0,20}([eE][-+]?[0-9]{0,3})?") {
            prop_assert_eq!(number(text.as_bytes()).map(f64::to_bits), parsed(text.as_bytes()));
        }

        #[test]
        fn any_bytes_are_read_as_the_standard_library_reads_them(text in "[-+.0-9eEinfatyNxX_ ]{0,12}") {
            prop_assert_eq!(number(text.as_bytes()).map(f64::to_bits), parsed(text.as_bytes()));
        }

        #[test]
        fn numbers_are_read_back(bits in any::<u64>(), places in 0_usize..9) {
            let value = f64::from_bits(bits);
            for text in [value.to_string(), format!("{value:e}"), format!("{:.places$}", value % 1e7)] {
                prop_assert_eq!(number(text.as_bytes()).map(f64::to_bits), parsed(text.as_bytes()));
            }
        }
    }
}
