//! Export as a Parquet table: a row per chain and draw, a column per parameter on the scale of the priors (`age`), and one in the
//! data's own units (`age (original)`), which is NaN in the warm-up.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use conclave_proto::error::{ErrorCode, Fault};
use parquet::basic::{Compression, Repetition, Type as Physical};
use parquet::data_type::{BoolType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use crate::{Draws, PhaseDraws};

const FIXED: [(&str, Physical); 6] = [
    ("chain", Physical::INT64),
    ("draw", Physical::INT64),
    ("warmup", Physical::BOOLEAN),
    ("accepted", Physical::BOOLEAN),
    ("log_alpha", Physical::DOUBLE),
    ("iteration", Physical::INT64),
];

/// Writes the table; returns 1 and its size in bytes. Warm-up and kept draws are each numbered from 0 and distinguished by
/// `warmup`.
pub fn write(draws: &Draws, path: &Path) -> Result<(u64, u64), Fault> {
    let file = File::create_new(path).map_err(|e| Fault::of_file(path, "be written", &e))?;
    let fault = |e: ParquetError| Fault::new(ErrorCode::Internal, format!("{} cannot be written: {e}", path.display()));
    let verdict = draws.unusable.map(|verdict| vec![KeyValue::new("verdict".to_owned(), verdict.to_owned())]);
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).set_key_value_metadata(verdict).build();
    let schema = schema(draws).map_err(fault)?;
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)).map_err(fault)?;
    for chain in 0..draws.chains() {
        for (phase, warmup) in [(&draws.warmup, true), (&draws.sampling, false)] {
            let original = draws.original.iter().flatten().map(|parameter| match warmup {
                true => vec![f64::NAN; phase.draws()],
                false => parameter[chain].clone(),
            });
            group(writer.next_row_group().map_err(fault)?, phase, original, chain, warmup).map_err(fault)?;
        }
    }
    writer.close().map_err(fault)?;
    let size = std::fs::metadata(path).map_err(|e| Fault::of_file(path, "be read", &e))?.len();
    Ok((1, size))
}

fn schema(draws: &Draws) -> Result<Type, ParquetError> {
    let column = |name: &str, physical| {
        Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED).build().map(Arc::new)
    };
    let fixed = FIXED.iter().map(|(name, physical)| column(name, *physical));
    let names = names(&draws.parameters, draws.original.is_some());
    let fields = fixed.chain(names.iter().map(|name| column(name, Physical::DOUBLE)));
    Type::group_type_builder("draws").with_fields(fields.collect::<Result<_, _>>()?).build()
}

/// Returns the columns' names: one per parameter and, where they are known, one in the data's own units. A name that another column
/// has gets a suffix.
fn names(parameters: &[String], has_original: bool) -> Vec<String> {
    let mut taken: BTreeSet<String> = FIXED.iter().map(|(name, _)| (*name).to_owned()).collect();
    let original = parameters.iter().filter(|_| has_original).map(|name| format!("{name} (original)"));
    let distinct = |mut name: String| {
        while !taken.insert(name.clone()) {
            name += " (parameter)";
        }
        name
    };
    parameters.iter().cloned().chain(original).map(distinct).collect()
}

fn group(
    mut group: RowGroup<'_>,
    phase: &PhaseDraws,
    mut original: impl Iterator<Item = Vec<f64>>,
    chain: usize,
    warmup: bool,
) -> Result<(), ParquetError> {
    let rows = phase.draws();
    column::<Int64Type>(&mut group, &vec![chain as i64; rows])?;
    column::<Int64Type>(&mut group, &(0..rows as i64).collect::<Vec<_>>())?;
    column::<BoolType>(&mut group, &vec![warmup; rows])?;
    column::<BoolType>(&mut group, &phase.accepted[chain])?;
    column::<DoubleType>(&mut group, &phase.log_alpha[chain])?;
    column::<Int64Type>(&mut group, &phase.iteration[chain])?;
    phase.theta.iter().try_for_each(|parameter| column::<DoubleType>(&mut group, &parameter[chain]))?;
    original.try_for_each(|parameter| column::<DoubleType>(&mut group, &parameter))?;
    group.close().map(|_| ())
}

type RowGroup<'a> = SerializedRowGroupWriter<'a, File>;

fn column<T: DataType>(group: &mut RowGroup<'_>, values: &[T::T]) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.ok_or_else(|| ParquetError::General("the schema has fewer columns".to_owned()))?;
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_columns_have_one_name() {
        let names = |list: &[&str]| names(&list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), true);
        assert_eq!(names(&["chain", "age"]), ["chain (parameter)", "age", "chain (original)", "age (original)"]);
        assert_eq!(
            names(&["draw", "draw (parameter)", "draw (original)"]),
            [
                "draw (parameter)",
                "draw (parameter) (parameter)",
                "draw (original)",
                "draw (original) (parameter)",
                "draw (parameter) (original)",
                "draw (original) (original)"
            ]
        );
    }
}
