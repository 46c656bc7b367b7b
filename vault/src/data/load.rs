//! Loads a party's shard from the file that its configuration names.

use conclave_ops::files::check_regular;
use conclave_privacy::accounting::Adjacency;

use super::error::DataError;
use super::settings::DataConfig;
use super::shard::Shard;
use super::{csv, parquet};

/// Largest number of units of privacy of a shard whose number of units is secret: a refusal must not depend on the number.
pub(crate) const MAX_UNPUBLISHED_UNITS: u64 = 1 << 24;

impl Shard {
    /// Reads the file that `config` names; `needed` are the columns to read, `None` all of them.
    ///
    /// # Errors
    /// [`DataError`]: an unreadable or empty file, an unknown or repeated column, or a bad value where the owner asked
    /// to stop at one.
    pub fn load(config: &DataConfig, needed: Option<&[String]>) -> Result<Self, DataError> {
        let name = config.path.file_name().and_then(|name| name.to_str()).map(str::to_ascii_lowercase).unwrap_or_default();
        let is_csv = name.ends_with(".csv") || name.ends_with(".csv.gz");
        let unreadable = |reason: String| DataError::Unreadable { file: config.path.clone(), reason };
        let read = match is_csv {
            true => csv::read,
            false if name.ends_with(".parquet") => parquet::read,
            false => return Err(unreadable("`data.path` must name a .csv, a .csv.gz or a .parquet file".into())),
        };
        check_regular(&config.path).map_err(|e| unreadable(format!("cannot be read: {e}; `data.path` names the records")))?;
        let shard = read(config, needed)?;
        if shard.usable == 0 {
            let reason = match shard.inert {
                0 => "has no rows".to_owned(),
                n => format!("has no usable row: all {n} hold a missing, non-numeric or non-finite value"),
            };
            return Err(DataError::Empty { file: shard.file, reason });
        }
        if shard.unit.adjacency == Adjacency::AddRemove && shard.units() > MAX_UNPUBLISHED_UNITS {
            let reason =
                format!("holds more than the {MAX_UNPUBLISHED_UNITS} units that adjacency = \"add-remove\" is built for");
            return Err(DataError::Unreadable { file: shard.file, reason });
        }
        Ok(shard)
    }
}
