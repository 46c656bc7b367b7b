//! Comma-separated values with a header line; a byte order mark is tolerated, blanks around values are not counted.

use std::path::Path;

use csv::{ByteRecord, ReaderBuilder, Trim};

use super::rows::{Rows, finite};
use super::{BadRows, DataError, Flaw, Shard, select};

pub(super) fn read(path: &Path, needed: Option<&[String]>, bad_rows: BadRows) -> Result<Shard, DataError> {
    let unreadable = |e: csv::Error| DataError::Unreadable { file: path.to_owned(), reason: reason(&e) };
    let mut reader = ReaderBuilder::new().flexible(true).trim(Trim::All).from_path(path).map_err(unreadable)?;
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
    let chosen = select(path, &header, needed)?;
    let mut rows = Rows::new(path, header.clone(), chosen.iter().map(|c| c.0.clone()).collect(), bad_rows);
    let mut values = Vec::with_capacity(chosen.len());
    let mut record = ByteRecord::new();
    while reader.read_byte_record(&mut record).map_err(unreadable)? {
        let line = record.position().map_or(0, csv::Position::line);
        values.clear();
        values.extend(chosen.iter().map(|(_, at)| number(record.get(*at))));
        // A row that is too long is torn: which of its fields is which can't be known.
        if record.len() > header.len() {
            values.fill(Err(Flaw::NotNumeric));
        }
        rows.push(&values, || match record.len() > header.len() {
            true => format!("line {line} with {} fields under a header of {}", record.len(), header.len()),
            false => format!("line {line}"),
        })?;
    }
    Ok(rows.finish())
}

fn number(field: Option<&[u8]>) -> Result<f64, Flaw> {
    match field {
        None | Some(b"") => Err(Flaw::Missing),
        Some(bytes) => {
            let text = std::str::from_utf8(bytes).map_err(|_| Flaw::NotNumeric)?;
            finite(text.parse().map_err(|_| Flaw::NotNumeric)?)
        }
    }
}

fn reason(e: &csv::Error) -> String {
    match e.kind() {
        csv::ErrorKind::Io(e) => format!("cannot be read: {e}; `data.path` names the records"),
        csv::ErrorKind::Utf8 { .. } => "its header line is not UTF-8 text; save the file as UTF-8".into(),
        _ => format!("is not a CSV file: {e}"),
    }
}
