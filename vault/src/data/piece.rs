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

/// Returns a number as read, or its defect.
pub(super) fn finite(value: f64) -> Result<f64, Flaw> {
    if value.is_finite() { Ok(value) } else { Err(Flaw::NotFinite) }
}
