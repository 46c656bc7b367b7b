//! Chooses the columns of a file by the names in its header.

use std::collections::HashMap;
use std::path::Path;

use super::error::DataError;
use super::settings::DataConfig;

/// Largest number of columns of a file, far more than any job names: a header of many more would cost time and memory before a row is read.
pub(super) const MAX_COLUMNS: usize = 1 << 16;

/// The columns of a file that are read.
pub(super) struct Chosen {
    /// Names and places of the columns of values.
    pub(super) columns: Vec<(String, usize)>,
    /// Place of the column that names persons.
    pub(super) person: Option<usize>,
}

/// Returns the places of the needed columns in the file's header: every one where `needed` is `None`, except the one that names persons.
/// The header must name the declared dates too.
pub(super) fn select(config: &DataConfig, header: &[String], needed: Option<&[String]>) -> Result<Chosen, DataError> {
    let person = config.person.as_ref().map(std::slice::from_ref);
    let person = person.map(|person| places(&config.path, header, Some(person))).transpose()?;
    let mut columns = places(&config.path, header, needed)?;
    places(&config.path, header, Some(&config.format.dates.keys().cloned().collect::<Vec<_>>()))?;
    columns.retain(|(name, _)| Some(name) != config.person.as_ref());
    Ok(Chosen { columns, person: person.and_then(|found| found.first().map(|(_, at)| *at)) })
}

/// Returns the places of the needed columns in the header.
pub(super) fn places(file: &Path, header: &[String], needed: Option<&[String]>) -> Result<Vec<(String, usize)>, DataError> {
    if header.len() > MAX_COLUMNS {
        let reason = format!("has {} columns; at most {MAX_COLUMNS} are read: keep those that jobs are to use", header.len());
        return Err(DataError::Unreadable { file: file.to_owned(), reason });
    }
    // Several columns without a name are passed over: spreadsheets leave emptied columns so.
    let nameless = header.iter().filter(|name| name.is_empty()).count();
    let named: Vec<(&String, usize)> = header.iter().zip(0..).filter(|(name, _)| nameless < 2 || !name.is_empty()).collect();
    let mut places = HashMap::with_capacity(header.len());
    if let Some(twice) = named.iter().find_map(|(name, at)| places.insert(name.as_str(), *at).map(|_| *name)) {
        return Err(DataError::DuplicateColumn { file: file.to_owned(), column: twice.clone() });
    }
    let Some(needed) = needed else {
        return Ok(named.into_iter().map(|(name, at)| (name.clone(), at)).collect());
    };
    needed
        .iter()
        .map(|name| match places.get(name.as_str()) {
            Some(at) => Ok((name.clone(), *at)),
            None => Err(DataError::UnknownColumn {
                file: file.to_owned(),
                column: name.clone(),
                hint: conclave_common::spelling::nearest(name, header.iter().map(String::as_str))
                    .map(|n| format!(" (did you mean {n:?}?)"))
                    .unwrap_or_default(),
                known: some_of(header),
            }),
        })
        .collect()
}

/// Formats the names in an error: of very many the first, and their number.
fn some_of(header: &[String]) -> Vec<String> {
    const MOST: usize = 100;
    let more = header.len().checked_sub(MOST).filter(|more| *more > 0).map(|more| format!("and {more} more"));
    header.iter().take(MOST).cloned().chain(more).collect()
}
