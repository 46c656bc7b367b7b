//! Comma-separated values with a header line; a byte order mark is tolerated, blanks around values are not counted.

use csv::{ByteRecord, ReaderBuilder, Trim};

use super::rows::{Rows, Value, finite};
use super::{DataError, Flaw, Shard, select};
use crate::config::DataConfig;

pub(super) fn read(config: &DataConfig, needed: Option<&[String]>) -> Result<Shard, DataError> {
    let path = config.path.as_path();
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
    let chosen = select(config, &header, needed)?;
    super::places(path, &header, Some(&config.text))?;
    // The owner says which: were it read off the values, one record could decide it.
    let texts: Vec<bool> = chosen.columns.iter().map(|(name, _)| config.text.contains(name)).collect();
    let mut rows = Rows::new(config, header.clone(), &chosen, &texts);
    let mut record = ByteRecord::new();
    while reader.read_byte_record(&mut record).map_err(unreadable)? {
        let line = record.position().map_or(0, csv::Position::line);
        let value = |((_, at), text): (&(String, usize), &bool)| {
            let field = record.get(*at);
            if *text { words(field).map(Value::Text) } else { number(field).map(Value::Number) }
        };
        let mut values: Vec<_> = chosen.columns.iter().zip(&texts).map(value).collect();
        // A row that is too long is torn: which of its fields is which can't be known.
        if record.len() > header.len() {
            values.fill(Err(Flaw::NotNumeric));
        }
        rows.push(&values, chosen.person.and_then(|at| record.get(at)), || match record.len() > header.len() {
            true => format!("line {line} with {} fields under a header of {}", record.len(), header.len()),
            false => format!("line {line}"),
        })?;
    }
    Ok(rows.finish())
}

fn words(field: Option<&[u8]>) -> Result<&str, Flaw> {
    match field {
        None | Some(b"") => Err(Flaw::Missing),
        Some(bytes) => std::str::from_utf8(bytes).map_err(|_| Flaw::NotText),
    }
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
