//! Whether a job's public bounds look as if they had been read off this shard.

use conclave_common::job::{ColumnSpec, JobSpec};

use crate::data::{Column, Shard};

/// Columns whose declared bounds are this shard's own least and greatest value. For the owner's eyes alone: it depends on
/// the records.
///
/// Bounds are public and unprotected. One that was read off the data tells the value of a record, whatever the noise.
pub(crate) fn read_off(shard: &Shard, spec: &JobSpec) -> Vec<String> {
    let same = |name: &&str| {
        let (Some(ColumnSpec::Numeric { min, max }), Some(Column::Numbers(values))) =
            (spec.columns.get(*name), shard.column(name))
        else {
            return false;
        };
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        *min == least && *max == greatest
    };
    spec.model.columns().into_iter().filter(same).map(str::to_owned).collect()
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
        assert_eq!(read_off(&shard, &job(151.5, 197.25)), ["height"]);
        for (min, max) in [(100.0, 200.0), (151.5, 200.0), (100.0, 197.25)] {
            assert!(read_off(&shard, &job(min, max)).is_empty());
        }
    }
}
