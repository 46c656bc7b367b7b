//! Folders of raw columns, for programs that hold a table in memory: `columns.json` describes the columns, and each column is a
//! file of little-endian numbers. `docs/reference/raw-columns.md` has the layout.
//!
//! A folder is read by the rules of any file of records: it is written as a Parquet file first, which holds the same bits.

mod description;
mod parquet_file;
mod table;

use std::path::{Path, PathBuf};

use conclave_proto::error::Fault;
use conclave_vault::data::{DataConfig, DataError, Shard};

use crate::faults::input;
use crate::temporary::TemporaryFolder;

pub(crate) use table::RawTable;

/// Loads a shard from the path of `config`, which names a file of records or a folder of raw columns.
///
/// # Errors
/// The shard's; a folder whose description and files disagree.
pub(crate) fn load(config: &DataConfig, needed: Option<&[String]>) -> Result<Shard, Fault> {
    let unusable = |e: DataError| input(e.to_string());
    if !config.path.is_dir() {
        return Shard::load(config, needed).map_err(unusable);
    }
    let table = RawTable::read(&config.path)?;
    let folder = TemporaryFolder::create()?;
    let file = folder.path().join("records.parquet");
    parquet_file::write(&table, &file).map_err(|e| input(format!("{} cannot be converted: {e}", config.path.display())))?;
    let converted = DataConfig { path: file, ..config.clone() };
    Shard::load(&converted, needed).map_err(|e| unusable(named(e, &config.path)))
}

/// Names the folder in an error of the converted file.
fn named(error: DataError, folder: &Path) -> DataError {
    let file = PathBuf::from(folder);
    match error {
        DataError::Unreadable { reason, .. } => DataError::Unreadable { file, reason },
        DataError::UnknownColumn { column, hint, known, .. } => DataError::UnknownColumn { file, column, hint, known },
        DataError::DuplicateColumn { column, .. } => DataError::DuplicateColumn { file, column },
        DataError::BadValue { place, column, flaw, more, .. } => DataError::BadValue { file, place, column, flaw, more },
        DataError::Empty { reason, .. } => DataError::Empty { file, reason },
    }
}

#[cfg(test)]
mod tests;
