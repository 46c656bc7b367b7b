//! The chosen columns of a file, by the names in its header.

use std::path::Path;

use super::error::DataError;
use super::settings::DataConfig;

/// What is read of a file.
pub(super) struct Chosen {
    /// Names and places of the columns of values.
    pub(super) columns: Vec<(String, usize)>,
    /// Place of the column that names persons.
    pub(super) person: Option<usize>,
}

/// The needed columns' places in the file's header: all of it where `needed` is `None`, but the one that names persons.
pub(super) fn select(config: &DataConfig, header: &[String], needed: Option<&[String]>) -> Result<Chosen, DataError> {
    let person = config.person.as_ref().map(std::slice::from_ref);
    let person = person.map(|person| places(&config.path, header, Some(person))).transpose()?;
    let mut columns = places(&config.path, header, needed)?;
    columns.retain(|(name, _)| Some(name) != config.person.as_ref());
    Ok(Chosen { columns, person: person.and_then(|found| found.first().map(|(_, at)| *at)) })
}

/// The places of the needed columns in the header.
pub(super) fn places(file: &Path, header: &[String], needed: Option<&[String]>) -> Result<Vec<(String, usize)>, DataError> {
    if let Some(twice) = header.iter().enumerate().find_map(|(i, h)| header[..i].contains(h).then_some(h)) {
        return Err(DataError::DuplicateColumn { file: file.to_owned(), column: twice.clone() });
    }
    let Some(needed) = needed else {
        return Ok(header.iter().cloned().zip(0..).collect());
    };
    needed
        .iter()
        .map(|name| match header.iter().position(|h| h == name) {
            Some(at) => Ok((name.clone(), at)),
            None => Err(DataError::UnknownColumn {
                file: file.to_owned(),
                column: name.clone(),
                hint: conclave_common::spelling::nearest(name, header.iter().map(String::as_str))
                    .map(|n| format!(" (did you mean {n:?}?)"))
                    .unwrap_or_default(),
                known: header.to_vec(),
            }),
        })
        .collect()
}
