//! The assembly of a shard's columns into model data: scaled columns, indicators of levels, their products, and offsets.

use std::collections::BTreeMap;

use crate::parameter::LEAST_MAGNITUDE;
use crate::schema::{Auxiliary, ColumnSpec, Feature, ModelSpec};
use conclave_privacy::pass::data::ModelData;
use conclave_privacy::pass::persons::Persons;

/// Assembles a model's data from columns on the model's scale. `scaled` returns a column, one value per record, as
/// [`ColumnSpec::scale`] does.
///
/// If a record's value in any of the model's columns is not a number, for example because it is not a level, the record becomes
/// not-a-number in all of them. It then adds exactly 0 to every sum, and takes as long as any other record.
///
/// # Errors
/// The name of the first column that `scaled` does not have, or that is not declared.
pub fn assemble(
    spec: &ModelSpec,
    declared: &BTreeMap<String, ColumnSpec>,
    persons: Option<Persons>,
    mut scaled: impl FnMut(&str, &ColumnSpec) -> Option<Vec<f64>>,
) -> Result<ModelData, String> {
    let mut columns: BTreeMap<&str, (&ColumnSpec, Vec<f64>)> = BTreeMap::new();
    for name in spec.columns() {
        let column = declared.get(name).and_then(|bounds| Some((bounds, scaled(name, bounds)?)));
        columns.insert(name, column.ok_or_else(|| name.to_owned())?);
    }
    // Every column of the model is present, since `ModelSpec::columns` lists them all.
    let column = |name: &str| columns.get(name).ok_or_else(|| name.to_owned());
    let mut outcome = column(spec.outcome())?.1.clone();
    let features = spec.design().map(|design| design.features.as_slice()).unwrap_or_default();
    let mut predictors =
        features.iter().map(|f| feature(f, |name| column(name).map(|c| c.1.as_slice()))).collect::<Result<Vec<_>, _>>()?;
    let mut auxiliary = spec.auxiliary().iter().map(|a| column(a.column()).map(|c| part(a, c))).collect::<Result<Vec<_>, _>>()?;

    let mut missing = vec![0.0; outcome.len()];
    for (_, values) in columns.values() {
        missing.iter_mut().zip(values).for_each(|(missing, value)| *missing += 0.0 * value);
    }
    for values in std::iter::once(&mut outcome).chain(&mut predictors).chain(&mut auxiliary) {
        values.iter_mut().zip(&missing).for_each(|(value, missing)| *value += missing);
    }
    Ok(ModelData { outcome, predictors, auxiliary, persons })
}

/// Returns the values of a feature.
fn feature<'a>(feature: &Feature, column: impl Fn(&str) -> Result<&'a [f64], String>) -> Result<Vec<f64>, String> {
    let mut product: Option<Vec<f64>> = None;
    for factor in &feature.factors {
        let values = column(&factor.column)?;
        let value = |x: f64| factor.level.map_or(x, |level| f64::from(u8::from(x == level as f64)));
        product = Some(match product {
            None => values.iter().map(|x| value(*x)).collect(),
            Some(before) => before.iter().zip(values).map(|(b, x)| flushed(b * value(*x))).collect(),
        });
    }
    Ok(product.unwrap_or_default())
}

fn part(auxiliary: &Auxiliary<'_>, (bounds, values): &(&ColumnSpec, Vec<f64>)) -> Vec<f64> {
    let natural = |x: f64| match bounds {
        ColumnSpec::Numeric { min, max } => (bounds.centre() + bounds.half_width() * x).clamp(*min, *max),
        _ => x,
    };
    let one = |x: &f64| match auxiliary {
        Auxiliary::Scaled(_) => *x,
        Auxiliary::Natural(_) => flushed(natural(*x)),
        Auxiliary::Log(_) => flushed(libm::log(natural(*x))),
    };
    values.iter().map(one).collect()
}

/// Flushes to 0; see [`LEAST_MAGNITUDE`].
fn flushed(x: f64) -> f64 {
    if x.abs() < LEAST_MAGNITUDE { 0.0 } else { x }
}
