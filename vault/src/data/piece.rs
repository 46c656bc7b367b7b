//! Holds a piece of one column's values, as every reader produces it, and the defects of some of them.

use super::error::Flaw;
use super::words::Words;

/// A batch's extra information on one column.
#[derive(Default)]
pub(super) struct Piece {
    /// Rows of the batch, ascending, whose value cannot be used, and the defects.
    pub(super) flaws: Vec<(usize, Flaw)>,
    /// For a column of texts, the batch's own words: its values are their numbers.
    pub(super) words: Words,
}

impl Piece {
    /// Appends a row's value to its column; NaN for one that cannot be used.
    pub(super) fn push(&mut self, row: usize, value: Result<f64, Flaw>, column: &mut Vec<f64>) {
        column.push(value.unwrap_or_else(|flaw| {
            self.flaws.push((row, flaw));
            f64::NAN
        }));
    }
}

/// Removes rows, ascending and counted from `start`, from a column.
pub(super) fn leave_out(column: &mut Vec<f64>, start: usize, out: impl Iterator<Item = usize>) {
    let (mut from, mut to) = (start, start);
    for end in out.map(|row| start + row).chain([column.len()]) {
        if from > to {
            column.copy_within(from..end, to);
        }
        to += end - from;
        from = end + 1;
    }
    column.truncate(to);
}

/// Makes rows, counted from `start`, inert in a column.
pub(super) fn make_inert(column: &mut [f64], start: usize, inert: impl Iterator<Item = usize>) {
    inert.for_each(|row| column[start + row] = f64::NAN);
}
