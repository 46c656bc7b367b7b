//! Assumptions about records before any release: a best case and a worse one.
//!
//! Columns are taken to be independent. In the best case, numeric columns are uniform over their bounds, half of the records have
//! a binary column's 1, and levels are equally frequent. In the worse case, numbers lie in the middle fifth of their bounds, and
//! a fifth of the records have a 1, or a level other than the reference.

use std::collections::BTreeMap;

use crate::sampler::matrix::Matrix;
use conclave_common::schema::{ColumnSpec, Design, Factor};

/// The assumption about the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    /// Records as informative as the declared columns allow, without correlation between columns.
    Best,
    /// Records that fill a fifth of the range that the declared columns allow.
    Worse,
}

/// Part of its bounds that a column fills in the worse case.
pub(crate) const FIFTH: f64 = 0.2;

impl Case {
    /// Returns the share of its bounds that a numeric column fills.
    pub(crate) fn filled(self) -> f64 {
        if self == Self::Best { 1.0 } else { FIFTH }
    }

    /// Returns the share of records with a binary column's 1.
    pub(crate) fn ones(self) -> f64 {
        if self == Self::Best { 0.5 } else { FIFTH }
    }

    /// Returns the share of records with a level of a column with `levels` levels.
    pub(crate) fn level(self, level: usize, levels: usize) -> f64 {
        let others = levels.saturating_sub(1).max(1) as f64;
        match (self, level) {
            (Self::Best, _) => 1.0 / levels.max(1) as f64,
            (Self::Worse, 0) => 1.0 - FIFTH,
            (Self::Worse, _) => FIFTH / others,
        }
    }
}

/// Returns the mean of `x x'` over the records, where `x` holds a regression's predictors, after the intercept's 1 if there is
/// one.
pub(crate) fn predictor_moments(design: &Design, columns: &BTreeMap<String, ColumnSpec>, case: Case) -> Matrix {
    let first = usize::from(design.intercept);
    let factors = |j: usize| j.checked_sub(first).map_or(&[][..], |at| design.features[at].factors.as_slice());
    Matrix::from_fn(first + design.features.len(), |i, j| mean_of_product(factors(i), factors(j), columns, case))
}

/// Returns the mean of a product of factors. Columns are independent, so it is the product of the columns' means.
fn mean_of_product(a: &[Factor], b: &[Factor], columns: &BTreeMap<String, ColumnSpec>, case: Case) -> f64 {
    let mut by_column: BTreeMap<&str, Vec<Option<usize>>> = BTreeMap::new();
    for factor in a.iter().chain(b) {
        by_column.entry(&factor.column).or_default().push(factor.level);
    }
    by_column.iter().map(|(column, levels)| columns.get(*column).map_or(1.0, |spec| mean(spec, levels, case))).product()
}

/// Returns the mean of the product of one column's factors: indicators of levels, or a power of its value.
fn mean(column: &ColumnSpec, factors: &[Option<usize>], case: Case) -> f64 {
    let values = factors.iter().filter(|level| level.is_none()).count() as u32;
    let mut levels = factors.iter().flatten();
    match (column, levels.next()) {
        (ColumnSpec::Levels(names), Some(level)) => {
            if levels.all(|other| other == level) {
                case.level(*level, names.len())
            } else {
                0.0
            }
        }
        (ColumnSpec::Binary, _) => case.ones(),
        (ColumnSpec::Numeric { .. }, _) if values % 2 == 1 => 0.0,
        (ColumnSpec::Numeric { .. }, _) => (0..values).fold(1.0, |power, _| power * case.filled()) / f64::from(values + 1),
        (ColumnSpec::Levels(_), None) => 1.0,
    }
}

#[cfg(test)]
#[path = "tests/design.rs"]
mod tests;
