//! A piece of one column's values, as every reader gives it, and what is wrong with some of them.

use super::error::Flaw;
use super::words::Words;

/// What a batch of one column holds besides its values.
#[derive(Default)]
pub(super) struct Piece {
    /// Rows of the batch, ascending, whose value can't be used, and why.
    pub(super) flaws: Vec<(usize, Flaw)>,
    /// Of a column of texts, the batch's own words: its values are their numbers.
    pub(super) words: Words,
}

/// Takes rows, ascending and counted from `start`, out of a column.
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

/// A number as read, or what is wrong with it.
pub(super) fn finite(value: f64) -> Result<f64, Flaw> {
    if value.is_finite() { Ok(value) } else { Err(Flaw::NotFinite) }
}
