//! Reads CSV: a header line, then values; a byte order mark is tolerated, blanks around values are not counted.

use csv::{ByteRecord, Reader, ReaderBuilder, Trim};

use super::chosen::{places, select};
use super::error::{DataError, Flaw};
use super::format::Meaning;
use super::input::{END, Input, MAX_LINE};
use super::piece::Piece;
use super::rows::Rows;
use super::settings::DataConfig;
use super::shard::Shard;

/// Rows of a batch, and bytes after which a batch of longer rows ends: the content of the second-level cache is parsed at once.
const BATCH: usize = 2048;
const BATCH_BYTES: u64 = 1 << 20;

pub(super) fn read(config: &DataConfig, needed: Option<&[String]>) -> Result<Shard, DataError> {
    let path = config.path.as_path();
    let unreadable = |reason: String| DataError::Unreadable { file: path.to_owned(), reason };
    let unreadable_csv = |e: csv::Error| unreadable(reason(&e));
    let (mut header, mut reader) = open(config, None).map_err(unreadable_csv)?;
    match header.last().and_then(|name| name.strip_suffix(END)) {
        Some("") if header.len() == 1 => {
            let reason = "is empty: the first line must name the columns".to_owned();
            return Err(DataError::Empty { file: path.to_owned(), reason });
        }
        Some(_) => return Err(unreadable(format!("its header: {UNCLOSED}"))),
        None if header.len() == 1 => (header, reader) = open(config, Some(0)).map_err(unreadable_csv)?,
        None => {}
    }
    // Where two bytes end a line, the reader counts it with the second one, which it takes with the next line.
    let late =
        u64::from(reader.position().line() == 1 + header.iter().map(|name| breaks(name.as_bytes(), b'\n')).sum::<usize>() as u64);
    let chosen = select(config, &header, needed).map_err(|e| with_delimiter(e, &header))?;
    places(path, &header, Some(&config.text))?;
    // The owner declares them: were they inferred from the values, one record could decide it.
    let texts: Vec<bool> = chosen.columns.iter().map(|(name, _)| config.text.contains(name)).collect();
    let mut rows = Rows::new(config, header.clone(), &chosen, &texts)?;
    let field = |((name, at), text): (&(String, usize), bool)| Field {
        at: *at,
        most: header.len(),
        meaning: config.format.meaning(name, text),
    };
    let mut fields: Vec<Field> = chosen.columns.iter().zip(texts).map(field).collect();
    let (mut batch, mut next) = (Batch { late, ..Batch::default() }, Batch { late, ..Batch::default() });
    next.fill(&mut reader).map_err(unreadable)?;
    while next.filled > 0 {
        std::mem::swap(&mut batch, &mut next);
        // Of the rest of the file a hundredth more than at this rate, so that the last rows need no further step. Unused room is never
        // touched, and returned.
        let (read, length) = (reader.position().byte(), reader.get_ref().length());
        let rest = (rows.kept() + batch.filled) as f64 * (length.saturating_sub(read) as f64 / read.max(1) as f64);
        // The rest of the file may differ: room for it is a convenience, room for the rows at hand is not.
        rows.reserve(batch.filled + (1.01 * rest) as usize).or_else(|_| rows.reserve(batch.filled))?;
        // The next rows are split into fields while these become numbers.
        let (filled, taken) = rayon::join(
            || next.fill(&mut reader),
            || {
                if let Some(row) = batch.records().iter().position(has_long_field) {
                    rows.shard.long_field.get_or_insert(batch.line(&batch.records[row]));
                }
                rows.batch(
                    batch.filled,
                    &mut fields,
                    |field, column| Ok(field.read(batch.records(), column)),
                    |row| chosen.person.and_then(|at| batch.records[row].get(at)),
                    |row| batch.place(row, header.len()),
                )
            },
        );
        taken?;
        filled.map_err(unreadable)?;
    }
    rows.finish()
}

/// Opens the file, and reads the names in its header.
fn open(config: &DataConfig, single_column: Option<u8>) -> Result<(Vec<String>, Reader<Input>), csv::Error> {
    let mut input = Input::open(&config.path)?;
    (input.allowed, input.single_column) = (MAX_LINE + BATCH_BYTES, single_column);
    let mut reader = ReaderBuilder::new()
        .flexible(true)
        .delimiter(config.format.delimiter)
        .quoting(config.format.quotes)
        .trim(Trim::Headers)
        .buffer_capacity(BATCH_BYTES as usize)
        .from_reader(input);
    // The reader strips the mark only where it gets all three bytes at once.
    let header = reader.headers()?.iter().map(|name| name.trim_start_matches('\u{feff}').trim().to_owned()).collect();
    Ok((header, reader))
}

const UNCLOSED: &str = "a quotation mark is opened here and closed nowhere: close it, or write quotes = false under [data] for a file \
                        in which a mark is a character as any other";

/// Consecutive rows.
#[derive(Default)]
struct Batch {
    records: Vec<ByteRecord>,
    filled: usize,
    /// The number by which the reader counts lines late.
    late: u64,
}

impl Batch {
    /// Reads the next rows; none after the last.
    fn fill(&mut self, reader: &mut Reader<Input>) -> Result<(), String> {
        // A batch of rows, of which the last may be a line of the greatest length.
        reader.get_mut().allowed = MAX_LINE + 2 * BATCH_BYTES;
        let start = reader.position().byte();
        self.filled = 0;
        let at_end = |records: &[ByteRecord]| records.last().is_some_and(|last| last.as_slice().ends_with(END.as_bytes()));
        while at_end(self.records()) || (self.filled < BATCH && reader.position().byte() - start < BATCH_BYTES) {
            if self.filled == self.records.len() {
                self.records.push(ByteRecord::new());
            }
            let read = reader.read_byte_record(&mut self.records[self.filled]);
            if !read.map_err(|e| format!("line {}: {}", self.line(&self.records[self.filled]), reason(&e)))? {
                break;
            }
            self.filled += 1;
        }
        match self.records().last().filter(|_| reader.is_done()) {
            Some(last) if last.as_slice() == END.as_bytes() => self.filled -= 1,
            Some(last) => {
                let before = last.iter().take(last.len() - 1).map(|field| breaks(field, b'\n')).sum::<usize>();
                return Err(format!("line {}: {UNCLOSED}", self.line(last) + before as u64));
            }
            None => {}
        }
        Ok(())
    }

    fn line(&self, record: &ByteRecord) -> u64 {
        self.late + record.position().map_or(0, csv::Position::line)
    }

    fn records(&self) -> &[ByteRecord] {
        &self.records[..self.filled]
    }

    fn place(&self, row: usize, columns: usize) -> String {
        let record = &self.records[row];
        let line = self.line(record);
        match record.len() > columns {
            true => format!("line {line} with {} fields under a header of {columns}", record.len()),
            false => format!("line {line}"),
        }
    }
}

fn breaks(field: &[u8], end: u8) -> usize {
    field.iter().filter(|byte| **byte == end).count()
}

/// Returns true for a row with a field of more than a hundred lines, as between the marks of two fields that only begin with one.
fn has_long_field(record: &ByteRecord) -> bool {
    const LINES: usize = 100;
    let long = |field: &[u8]| breaks(field, b'\n').max(breaks(field, b'\r')) >= LINES;
    record.as_slice().len() > LINES && record.iter().any(long)
}

/// A column of the file.
struct Field {
    at: usize,
    /// Largest number of fields of a row.
    most: usize,
    meaning: Meaning,
}

impl Field {
    fn read(&self, records: &[ByteRecord], column: &mut Vec<f64>) -> Piece {
        let mut piece = Piece::default();
        for (row, record) in records.iter().enumerate() {
            let value = match record.len() > self.most {
                // A row that is too long is torn: its fields cannot be assigned.
                true => Err(Flaw::NotNumeric),
                false => self.meaning.of_text(record.get(self.at).unwrap_or_default(), &mut piece.words),
            };
            piece.push(row, value, column);
        }
        piece
    }
}

/// Adds the remedy for a first line that names another delimiter, or a header of one column that holds another file's delimiters.
fn with_delimiter(error: DataError, header: &[String]) -> DataError {
    let DataError::UnknownColumn { file, column, hint: near, known } = error else { return error };
    let inside = |name: &str| [(';', ";"), ('\t', "\\t"), ('|', "|")].into_iter().find(|(c, _)| name.contains(*c));
    let hint = match header {
        [first, ..] if first.to_ascii_lowercase().starts_with("sep=") => {
            "; remove its first line, sep=, by which spreadsheets name a delimiter".into()
        }
        [one] => inside(one).map_or(near, |(_, key)| {
            format!("; its header is not parted by this file's `data.delimiter`: write delimiter = \"{key}\"")
        }),
        _ => near,
    };
    DataError::UnknownColumn { file, column, hint, known }
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
    use crate::data::format::number as read_number;

    fn finite(value: f64) -> Result<f64, Flaw> {
        if value.is_finite() { Ok(value) } else { Err(Flaw::NotFinite) }
    }

    fn number(text: &[u8]) -> Result<f64, Flaw> {
        read_number(text, b'.').ok_or(Flaw::NotNumeric).and_then(finite)
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
