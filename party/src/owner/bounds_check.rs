//! The bounds check asks whether a job's public bounds look as if they had been read off this shard.

use conclave_common::job::JobSpec;
use conclave_common::schema::ColumnSpec;

use crate::data::{DataError, Kind, Shard};

/// Columns whose declared bounds are this shard's own least and greatest value. For the owner's eyes alone: it depends on
/// the records.
///
/// Bounds are public and unprotected. One that was read off the data tells the value of a record, whatever the noise.
///
/// # Errors
/// Where the shard is streamed and can't be read.
pub(crate) fn read_off(shard: &Shard, spec: &JobSpec) -> Result<Vec<String>, DataError> {
    let mut found = Vec::new();
    for name in spec.model.columns() {
        let (Some(ColumnSpec::Numeric { min, max }), Some(Kind::Numbers)) = (spec.columns.get(name), shard.kind(name)) else {
            continue;
        };
        if (*min, *max) == extremes(shard, name)? {
            found.push(name.to_owned());
        }
    }
    Ok(found)
}

/// The least and the greatest value of a column of numbers.
///
/// # Errors
/// Where the shard is streamed and can't be read.
pub(crate) fn extremes(shard: &Shard, name: &str) -> Result<(f64, f64), DataError> {
    let (mut least, mut greatest) = (f64::INFINITY, f64::NEG_INFINITY);
    shard.look(name, |values| {
        least = values.iter().copied().fold(least, f64::min);
        greatest = values.iter().copied().fold(greatest, f64::max);
    })?;
    Ok((least, greatest))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::config::BadRows;
    use crate::testing::{MEAN_TOML, data, write};

    #[test]
    fn bounds_that_are_the_shards_own_extremes_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), "a.csv", "height,sick\n151.5,0\n160,1\n197.25,0\n");
        let shard = Shard::load(&data(path, BadRows::Stop), None).unwrap();
        let job = |min: f64, max: f64| {
            JobSpec::parse(&MEAN_TOML.replace("min = 100, max = 200", &format!("min = {min:?}, max = {max:?}"))).unwrap()
        };
        assert_eq!(read_off(&shard, &job(151.5, 197.25)).unwrap(), ["height"]);
        for (min, max) in [(100.0, 200.0), (151.5, 200.0), (100.0, 197.25)] {
            assert!(read_off(&shard, &job(min, max)).unwrap().is_empty());
        }
    }
}
