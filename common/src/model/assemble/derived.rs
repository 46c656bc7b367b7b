//! The values of a derived column on the model's scale.

use std::collections::BTreeMap;

use super::scaling::Scaling;
use super::units::{Bounds, TILE, flushed, natural};
use crate::schema::{ColumnSpec, Derived};

/// A derived column, with the numbers and bounds of the columns that it is computed from.
pub(super) struct DerivedColumn {
    sources: Vec<(usize, Option<Bounds>)>,
    of: Derived,
    /// The map from the quantity to [−1, 1], by the bounds that follow from the declared ones. It clamps: no record leaves them.
    scaling: Scaling,
}

impl DerivedColumn {
    /// Plans a column; `names` are those of the columns that the shard has.
    ///
    /// # Errors
    /// The name of the first column that is missing or not declared.
    pub(super) fn new(of: &Derived, names: &[String], declared: &BTreeMap<String, ColumnSpec>) -> Result<Self, String> {
        let source = |name: &String| {
            let at = names.iter().position(|known| known == name).ok_or_else(|| name.clone())?;
            Ok((at, declared.get(name).and_then(Bounds::of)))
        };
        let bounds = declared.get(&of.name).ok_or_else(|| of.name.clone())?;
        let sources = of.columns.iter().map(source).collect::<Result<_, String>>()?;
        Ok(Self { sources, of: of.clone(), scaling: Scaling::of_numbers(bounds) })
    }

    /// Writes the scaled quantities of a tile of records, from the scaled columns.
    pub(super) fn fill(&self, scaled: &[[f64; TILE]], out: &mut [f64]) {
        let records = out.len();
        let in_units = |(at, bounds): &(usize, Option<Bounds>)| -> Vec<f64> {
            scaled[*at][..records].iter().map(|x| flushed(natural(bounds, *x))).collect()
        };
        let values: Vec<Vec<f64>> = self.sources.iter().map(in_units).collect();
        let mut quantities = [0.0; TILE];
        self.of.fill(&values.iter().map(Vec::as_slice).collect::<Vec<_>>(), &mut quantities[..records]);
        self.scaling.fill(&quantities[..records], out);
    }
}
