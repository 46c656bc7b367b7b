//! The records that are screened, wherever they are held.

use conclave_common::job::JobSpec;
use conclave_common::model::Scaling;
use conclave_privacy::pass::ModelData;
use conclave_vault::data::{Binding, DataError, Kind, Shard};

/// Records by column: a shard that was read from a file, or a table in the memory of another program.
pub trait Records {
    /// Returns the names of the columns.
    fn names(&self) -> &[String];

    /// Returns the kind of a column.
    fn kind(&self, name: &str) -> Option<Kind<'_>>;

    /// Returns the number of records, inert ones included.
    fn records(&self) -> u64;

    /// Returns the number of rows before any is left out.
    fn file_rows(&self) -> u64 {
        self.records()
    }

    /// Returns the columns that hold dates and are read as whole numbers.
    fn undeclared_dates(&self) -> &[String] {
        &[]
    }

    /// Returns the line of the first row with a field of more than a hundred lines.
    fn long_field(&self) -> Option<u64> {
        None
    }

    /// Passes the values of a column to `look`, all at once or block by block; NaN where a row is inert. A column of texts passes
    /// the numbers of its words.
    ///
    /// # Errors
    /// Records that cannot be read.
    fn look(&self, name: &str, look: &mut dyn FnMut(&[f64])) -> Result<(), DataError>;

    /// Passes a job's model inputs to `look`, block by block.
    ///
    /// # Errors
    /// Records that cannot be read.
    fn look_at_designs(&self, binding: &Binding, look: &mut dyn FnMut(&ModelData)) -> Result<(), DataError>;
}

impl Records for Shard {
    fn names(&self) -> &[String] {
        Shard::names(self)
    }

    fn kind(&self, name: &str) -> Option<Kind<'_>> {
        Shard::kind(self, name)
    }

    fn records(&self) -> u64 {
        Shard::records(self)
    }

    fn file_rows(&self) -> u64 {
        Shard::file_rows(self)
    }

    fn undeclared_dates(&self) -> &[String] {
        Shard::undeclared_dates(self)
    }

    fn long_field(&self) -> Option<u64> {
        Shard::long_field(self)
    }

    fn look(&self, name: &str, look: &mut dyn FnMut(&[f64])) -> Result<(), DataError> {
        Shard::look(self, name, look)
    }

    fn look_at_designs(&self, binding: &Binding, look: &mut dyn FnMut(&ModelData)) -> Result<(), DataError> {
        Shard::look_at_designs(self, binding, look)
    }
}

/// Counts, by column, the usable records that are inert in a job since they hold a value that is no level of the column. For the
/// owner alone.
///
/// # Errors
/// Records that cannot be read.
pub(super) fn unlisted(shard: &dyn Records, spec: &JobSpec) -> Result<Vec<(String, u64)>, DataError> {
    let mut found = Vec::new();
    for name in spec.model.columns() {
        let (Some(kind), Some(bounds)) = (shard.kind(name), spec.columns.get(name)) else { continue };
        let scaling = match kind {
            Kind::Texts(words) => Scaling::of_words(bounds, words),
            Kind::Numbers => Scaling::of_numbers(bounds),
        };
        let (mut missing, mut scaled) = (0, [0.0; 1024]);
        shard.look(name, &mut |values| {
            for values in values.chunks(scaled.len()) {
                scaling.fill(values, &mut scaled);
                missing += values.iter().zip(&scaled).filter(|(raw, scaled)| scaled.is_nan() && !raw.is_nan()).count() as u64;
            }
        })?;
        if missing > 0 {
            found.push((name.to_owned(), missing));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conclave_vault::data::BadRows;
    use conclave_vault::testing::{data, write};

    #[test]
    fn rows_with_a_value_that_is_no_level_are_counted() {
        let job = "name = \"x\"\nparties = [\"a\"]\n[model]\nkind = \"linear\"\noutcome = \"y\"\npredictors = [\"ward\"]\n[columns]\n\
                   y = { min = 0, max = 9 }\nward = { levels = [\"a\", \"7\"] }\n[privacy]\nepsilon = 3.0\ndelta = 1e-6\n";
        let folder = tempfile::tempdir().unwrap();
        let spec = JobSpec::parse(job).unwrap();
        let of = |text: &str, levels: &[&str]| {
            let path = write(folder.path(), "a.csv", text);
            let text = levels.iter().map(|name| (*name).to_owned()).collect();
            let config = conclave_vault::data::DataConfig { text, ..data(path, BadRows::Drop) };
            unlisted(&Shard::load(&config, None).unwrap(), &spec).unwrap()
        };
        assert_eq!(of("y,ward\n1,a\n2,7.0\n3,b\n4,\n", &["ward"]), [("ward".to_owned(), 2)]);
        assert_eq!(of("y,ward\n1,7\n2,7.0\n3,8\n", &[]), [("ward".to_owned(), 1)]);
        assert_eq!(of("y,ward\n1,a\n2,7\n", &["ward"]), []);
    }
}
