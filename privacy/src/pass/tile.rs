//! A tile: consecutive records of a block as slices of its columns, short enough to stay in the first-level cache.

use std::borrow::Cow;
use std::ops::Range;

use super::data::ModelData;

/// The columns of a shard, in double or in single precision.
pub enum Storage<'a> {
    /// Double precision.
    Double(Cow<'a, ModelData>),
    /// Single precision, widened tile by tile.
    Single(&'a ModelData<f32>),
}

/// Values per cache line.
const LINE: usize = 64 / size_of::<f64>();

/// Returns the offset of the first value within its cache line.
fn place(values: &[f64]) -> usize {
    values.as_ptr().addr() / size_of::<f64>() % LINE
}

/// A column other than the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnRef {
    /// A predictor, by its number.
    Predictor(usize),
    /// An auxiliary column, by its number.
    Auxiliary(usize),
}

/// An iterator over the tiles of a block.
pub struct Tiles<'a> {
    data: &'a Storage<'a>,
    rest: Range<usize>,
    most: usize,
    widened: Widened,
}

impl<'a> Tiles<'a> {
    /// Creates an iterator over the records `rest` of `data`, with at most `most` per tile.
    pub(super) fn new(data: &'a Storage<'a>, rest: Range<usize>, most: usize) -> Self {
        Self { data, rest, most, widened: Widened::default() }
    }

    /// Returns the next tile, if any records remain.
    #[inline(always)]
    pub fn next_tile(&mut self) -> Option<Tile<'_>> {
        let first = self.rest.start;
        if self.rest.is_empty() {
            return None;
        }
        let end = |place: usize| self.rest.end.min(first + if place == 0 { self.most } else { LINE - place });
        let (columns, end) = match self.data {
            Storage::Double(data) => (Columns::Held(data), end(place(&data.outcome[first..]))),
            Storage::Single(data) => {
                let end = end(0);
                self.widened.fill(data, first..end);
                (Columns::Widened(&self.widened), end)
            }
        };
        self.rest.start = end;
        Some(Tile { columns, first, end })
    }
}

/// Consecutive records of a block, as slices of its columns.
#[derive(Clone, Copy)]
pub struct Tile<'a> {
    columns: Columns<'a>,
    first: usize,
    end: usize,
}

#[derive(Clone, Copy)]
enum Columns<'a> {
    Held(&'a ModelData),
    /// Only the records of this tile.
    Widened(&'a Widened),
}

/// The values of a single-precision tile, converted to double precision: the outcome, the predictors, the auxiliary columns.
#[derive(Default)]
struct Widened {
    values: Vec<f64>,
    /// The offset of the first column and the distance between columns: multiples of cache lines, chosen to avoid conflicts
    /// between the sets of a cache.
    first: usize,
    apart: usize,
    predictors: usize,
}

impl Widened {
    #[inline(always)]
    fn fill(&mut self, data: &ModelData<f32>, rows: Range<usize>) {
        let columns = || std::iter::once(&data.outcome).chain(&data.predictors).chain(&data.auxiliary);
        // No later tile is longer than the first.
        if self.values.is_empty() {
            self.predictors = data.predictors.len();
            self.apart = rows.len().next_multiple_of(LINE) + LINE;
            self.values.resize(self.apart * (1 + data.predictors.len() + data.auxiliary.len()) + LINE, 0.0);
            self.first = (LINE - place(&self.values)) % LINE;
        }
        for (column, out) in columns().zip(self.values[self.first..].chunks_exact_mut(self.apart)) {
            out.iter_mut().zip(&column[rows.clone()]).for_each(|(out, value)| *out = f64::from(*value));
        }
    }

    #[inline(always)]
    fn column(&self, at: usize, records: usize) -> &[f64] {
        &self.values[self.first + at * self.apart..][..records]
    }
}

impl<'a> Tile<'a> {
    /// Returns the number of records.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.end - self.first
    }

    /// Returns whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first == self.end
    }

    /// Returns the range of the records in the columns, as used by [`super::Persons`].
    #[inline(always)]
    pub fn range(&self) -> Range<usize> {
        self.first..self.end
    }

    /// Returns the outcomes.
    #[inline(always)]
    pub fn outcome(&self) -> &'a [f64] {
        match self.columns {
            Columns::Held(data) => &data.outcome[self.first..self.end],
            Columns::Widened(widened) => widened.column(0, self.len()),
        }
    }

    /// Returns the values of a column other than the outcome.
    #[inline(always)]
    pub fn column(&self, of: ColumnRef) -> &'a [f64] {
        match of {
            ColumnRef::Predictor(j) => self.predictor(j),
            ColumnRef::Auxiliary(j) => self.auxiliary(j),
        }
    }

    /// Returns the values of predictor `j`.
    #[inline(always)]
    pub fn predictor(&self, j: usize) -> &'a [f64] {
        match self.columns {
            Columns::Held(data) => &data.predictors[j][self.first..self.end],
            Columns::Widened(widened) => widened.column(1 + j, self.len()),
        }
    }

    /// Returns the values of auxiliary column `j`.
    #[inline(always)]
    pub fn auxiliary(&self, j: usize) -> &'a [f64] {
        match self.columns {
            Columns::Held(data) => &data.auxiliary[j][self.first..self.end],
            Columns::Widened(widened) => widened.column(1 + widened.predictors + j, self.len()),
        }
    }
}
