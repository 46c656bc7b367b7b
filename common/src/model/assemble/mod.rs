//! The assembly of a shard's columns into model data: scaled columns, indicators of levels, their products, and offsets.

mod derived;
mod scaling;
#[cfg(test)]
mod tests;
mod units;

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::schema::{Auxiliary, ColumnSpec, Feature, ModelSpec};
use conclave_privacy::pass::data::ModelData;
use conclave_privacy::pass::persons::Persons;

use derived::DerivedColumn;
pub use scaling::Scaling;
use units::{Bounds, TILE, flushed, natural};

/// Records that a thread assembles at once.
const PART: usize = 1 << 14;

/// Assembles a model's data from columns on the model's scale. `scaled` returns a column, one value per record, as
/// [`ColumnSpec::scale`] does. [`Assembly`] states the treatment of values that are not a number.
///
/// # Errors
/// The name of the first column that `scaled` does not have, or that is not declared.
pub fn assemble(
    spec: &ModelSpec,
    declared: &BTreeMap<String, ColumnSpec>,
    persons: Option<Persons>,
    mut scaled: impl FnMut(&str, &ColumnSpec) -> Option<Vec<f64>>,
) -> Result<ModelData, String> {
    let mut values = Vec::new();
    let assembly = Assembly::new(spec, declared, |name, bounds| {
        values.push(scaled(name, bounds)?);
        Some(Scaling::Done)
    })?;
    let values: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
    Ok(assembly.data(&values, persons))
}

/// A floating-point type in which assembled values are stored.
pub trait Stored: Copy + Default + Send + Sync {
    /// Rounds a value to this type.
    fn of(value: f64) -> Self;
}

impl Stored for f64 {
    #[inline(always)]
    fn of(value: f64) -> Self {
        value
    }
}

impl Stored for f32 {
    #[inline(always)]
    fn of(value: f64) -> Self {
        value as f32
    }
}

/// The map from a shard's columns to a job's model data. It is computed once for a job.
///
/// If a record's value in any of the model's columns is not a number, for example because it is not a level, the record becomes
/// not-a-number in all of them. It then adds exactly 0 to every sum, and takes as long as any other record.
pub struct Assembly {
    names: Vec<String>,
    scalings: Vec<Scaling>,
    /// The columns computed from others, whose numbers follow those of `names`.
    derived: Vec<DerivedColumn>,
    /// The outcome, the predictors, the auxiliary columns.
    outputs: Vec<Output>,
    predictors: usize,
}

/// One column of the model data, from columns by number.
enum Output {
    Scaled(usize),
    /// The product of columns, or of indicators of a level.
    Product(Vec<(usize, Option<f64>)>),
    Natural(usize, Option<Bounds>),
    Log(usize, Option<Bounds>),
}

impl Assembly {
    /// Plans the assembly of a model's columns. `scaling` returns the map from a column's stored values to the model's scale. It is
    /// called once for each column, in the order of [`Assembly::columns`].
    ///
    /// # Errors
    /// The name of the first column that `scaling` does not have, or that is not declared.
    pub fn new(
        spec: &ModelSpec,
        declared: &BTreeMap<String, ColumnSpec>,
        mut scaling: impl FnMut(&str, &ColumnSpec) -> Option<Scaling>,
    ) -> Result<Self, String> {
        let names: Vec<String> = spec.columns().into_iter().map(str::to_owned).collect();
        let of = |name: &String| declared.get(name).and_then(|bounds| scaling(name, bounds)).ok_or_else(|| name.clone());
        let scalings = names.iter().map(of).collect::<Result<Vec<_>, _>>()?;
        let sources = spec.design().map(|design| design.derived.as_slice()).unwrap_or_default();
        let derived = sources.iter().map(|of| DerivedColumn::new(of, &names, declared)).collect::<Result<Vec<_>, _>>()?;
        let known = || names.iter().chain(sources.iter().map(|of| &of.name));
        let at = |name: &str| known().position(|n| n == name).ok_or_else(|| name.to_owned());
        let product = |feature: &Feature| {
            let factor = |f: &crate::schema::Factor| Ok((at(&f.column)?, f.level.map(|level| level as f64)));
            Ok::<_, String>(Output::Product(feature.factors.iter().map(factor).collect::<Result<_, String>>()?))
        };
        let part = |auxiliary: &Auxiliary<'_>| {
            let (at, bounds) = (at(auxiliary.column())?, declared.get(auxiliary.column()).and_then(Bounds::of));
            Ok::<_, String>(match auxiliary {
                Auxiliary::Scaled(_) => Output::Scaled(at),
                Auxiliary::Natural(_) => Output::Natural(at, bounds),
                Auxiliary::Log(_) => Output::Log(at, bounds),
            })
        };
        let features = spec.design().map(|design| design.features.as_slice()).unwrap_or_default();
        let (outcome, auxiliary) = (std::iter::once(at(spec.outcome()).map(Output::Scaled)), spec.auxiliary());
        let outputs = outcome.chain(features.iter().map(product)).chain(auxiliary.iter().map(part));
        let outputs = outputs.collect::<Result<_, _>>()?;
        Ok(Self { outputs, predictors: features.len(), names, scalings, derived })
    }

    /// Returns the names of the columns that the model reads.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.names
    }

    /// Assembles records on the calling thread. `values` are the stored values of [`Assembly::columns`], one per record.
    #[must_use]
    pub fn data(&self, values: &[&[f64]], persons: Option<Persons>) -> ModelData {
        let records = values.first().map_or(0, |column| column.len());
        let mut columns = self.empty(records);
        self.fill(values, &mut columns.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>());
        self.model_data(columns, persons)
    }

    /// Assembles records as [`Assembly::data`] does, part by part on every thread: nothing but the result is as long as the columns.
    #[must_use]
    pub fn copy<T: Stored>(&self, values: &[&[f64]], persons: Option<Persons>) -> ModelData<T> {
        let records = values.first().map_or(0, |column| column.len());
        let mut columns = self.empty(records);
        let mut rest: Vec<_> = columns.iter_mut().map(|column| column.chunks_mut(PART)).collect();
        let parts: Vec<(usize, Vec<&mut [T]>)> =
            (0..records).step_by(PART).map(|start| (start, rest.iter_mut().filter_map(Iterator::next).collect())).collect();
        parts.into_par_iter().for_each(|(start, mut part)| {
            let rows = start..records.min(start + PART);
            self.fill(&values.iter().map(|column| &column[rows.clone()]).collect::<Vec<_>>(), &mut part);
        });
        self.model_data(columns, persons)
    }

    /// Returns columns of zeros. Each is asked of the system by itself: no page of it is touched before its values are written.
    fn empty<T: Stored>(&self, records: usize) -> Vec<Vec<T>> {
        self.outputs.iter().map(|_| vec![T::default(); records]).collect()
    }

    fn model_data<T>(&self, columns: Vec<Vec<T>>, persons: Option<Persons>) -> ModelData<T> {
        let mut columns = columns.into_iter();
        let outcome = columns.next().unwrap_or_default();
        let predictors = columns.by_ref().take(self.predictors).collect();
        ModelData { outcome, predictors, auxiliary: columns.collect(), persons }
    }

    /// Writes the assembled values of each column of the model data to `out`.
    fn fill<T: Stored>(&self, values: &[&[f64]], out: &mut [&mut [T]]) {
        let records = values.first().map_or(0, |column| column.len());
        let mut scaled = vec![[0.0; TILE]; self.scalings.len() + self.derived.len()];
        for start in (0..records).step_by(TILE) {
            let rows = start..records.min(start + TILE);
            let mut missing = [0.0; TILE];
            for ((scaling, column), scaled) in self.scalings.iter().zip(values).zip(&mut scaled) {
                scaling.fill(&column[rows.clone()], scaled);
                missing[..rows.len()].iter_mut().zip(&*scaled).for_each(|(missing, value)| *missing += 0.0 * value);
            }
            let (base, derived) = scaled.split_at_mut(self.scalings.len());
            for (column, scaled) in self.derived.iter().zip(derived) {
                column.fill(base, &mut scaled[..rows.len()]);
                missing[..rows.len()].iter_mut().zip(&*scaled).for_each(|(missing, value)| *missing += 0.0 * value);
            }
            for (output, out) in self.outputs.iter().zip(&mut *out) {
                output.fill(&scaled, &missing, &mut out[rows.clone()]);
            }
        }
    }
}

impl Output {
    /// Writes a tile of the column; `missing` is added: NaN for a record that misses any value, 0 for others.
    fn fill<T: Stored>(&self, scaled: &[[f64; TILE]], missing: &[f64; TILE], out: &mut [T]) {
        let write = |out: &mut [T], at: usize, value: &dyn Fn(f64) -> f64| {
            let values = scaled[at].iter().zip(missing);
            out.iter_mut().zip(values).for_each(|(out, (x, missing))| *out = T::of(value(*x) + missing));
        };
        match self {
            Output::Scaled(at) => copy(&scaled[*at], missing, out),
            Output::Product(factors) => product(factors, scaled, missing, out),
            Output::Natural(at, bounds) => write(out, *at, &|x| flushed(natural(bounds, x))),
            Output::Log(at, bounds) => write(out, *at, &|x| flushed(libm::log(natural(bounds, x)))),
        }
    }
}

fn copy<T: Stored>(values: &[f64; TILE], missing: &[f64; TILE], out: &mut [T]) {
    out.iter_mut().zip(values.iter().zip(missing)).for_each(|(out, (x, missing))| *out = T::of(x + missing));
}

fn product<T: Stored>(factors: &[(usize, Option<f64>)], scaled: &[[f64; TILE]], missing: &[f64; TILE], out: &mut [T]) {
    let Some(((first, level), others)) = factors.split_first() else { return };
    let Some(level) = level else {
        if others.is_empty() {
            return copy(&scaled[*first], missing, out);
        }
        return multiplied(scaled[*first], others, scaled, missing, out);
    };
    multiplied(scaled[*first].map(|x| indicator(x, *level)), others, scaled, missing, out);
}

fn multiplied<T: Stored>(
    mut product: [f64; TILE],
    others: &[(usize, Option<f64>)],
    scaled: &[[f64; TILE]],
    missing: &[f64; TILE],
    out: &mut [T],
) {
    for (at, level) in others {
        let values = product.iter_mut().zip(&scaled[*at]);
        match level {
            None => values.for_each(|(product, x)| *product = flushed(*product * x)),
            Some(level) => values.for_each(|(product, x)| *product = flushed(*product * indicator(*x, *level))),
        }
    }
    copy(&product, missing, out);
}

#[inline(always)]
fn indicator(x: f64, level: f64) -> f64 {
    f64::from(u8::from(x == level))
}
