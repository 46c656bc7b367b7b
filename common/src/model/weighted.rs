//! Weighted sums of a record's columns, and the movement of a linear predictor in a step.

use conclave_privacy::pass::blocks::{Lane, Scratch, TILE};
use conclave_privacy::pass::tile::{ColumnRef, Tile};

/// A constant plus columns with weights. Public.
pub(super) struct WeightedSum {
    pub(super) constant: f64,
    pub(super) terms: Vec<(f64, ColumnRef)>,
}

impl WeightedSum {
    pub(super) fn new(constant: f64, terms: impl IntoIterator<Item = (f64, ColumnRef)>) -> Self {
        Self { constant, terms: terms.into_iter().collect() }
    }

    /// Computes the sum of each of `rows`, term after term in order.
    #[inline(always)]
    pub(super) fn fill(&self, rows: &Tile<'_>, out: &mut [f64]) {
        let (mut terms, mut start) = (self.terms.as_slice(), Some(self.constant));
        // Several columns per call, so that sums stay in registers.
        while let Some((group, rest)) = terms.split_first_chunk::<8>() {
            add(rows, group, start.take(), out);
            terms = rest;
        }
        while let Some((group, rest)) = terms.split_first_chunk::<2>() {
            add(rows, group, start.take(), out);
            terms = rest;
        }
        while let Some((group, rest)) = terms.split_first_chunk::<1>() {
            add(rows, group, start.take(), out);
            terms = rest;
        }
        if let Some(constant) = start {
            out.fill(constant);
        }
    }
}

/// Adds `N` terms to `start`, or to the existing values.
#[inline(always)]
fn add<const N: usize>(rows: &Tile<'_>, terms: &[(f64, ColumnRef); N], start: Option<f64>, out: &mut [f64]) {
    let records = out.len();
    let columns: [&[f64]; N] = std::array::from_fn(|k| &rows.column(terms[k].1)[..records]);
    let weights: [f64; N] = std::array::from_fn(|k| terms[k].0);
    for i in 0..records {
        let mut sum = start.unwrap_or(out[i]);
        for k in 0..N {
            sum = weights[k].mul_add(columns[k][i], sum);
        }
        out[i] = sum;
    }
}

/// A step in a linear predictor.
///
/// With `eta` before and `eta'` after it, the midpoint is `(eta + eta') / 2`, identical in both directions bit for bit. The
/// reverse step negates the movement `eta' - eta` bit for bit.
pub(super) struct CoefficientStep {
    /// The linear predictor at the midpoint.
    pub middle: WeightedSum,
    /// The movement around the midpoint.
    pub along: Direction,
}

/// The movement of the linear predictor.
pub(super) enum Direction {
    /// A multiple of one column: a step in one coordinate.
    Column(f64, ColumnRef),
    /// The same for all records.
    Constant(f64),
    /// A weighted sum of columns: a step in several coordinates.
    Several(WeightedSum),
}

/// A tile's records under a step: the linear predictor of each moves by `by * direction` around `middle`.
pub(super) struct TileStep<'r> {
    pub outcome: &'r [f64],
    pub middle: &'r [f64],
    pub direction: &'r [f64],
    pub by: f64,
}

impl<'r> TileStep<'r> {
    /// Returns outcome, middle and direction.
    #[inline(always)]
    pub(super) fn columns(&self) -> [&'r [f64]; 3] {
        [self.outcome, self.middle, self.direction]
    }
}

static ONES: Lane = Lane([1.0; TILE]);

impl CoefficientStep {
    /// Computes the midpoints and movements of a tile's records, in `scratch`.
    #[inline(always)]
    pub(super) fn of<'r>(&self, rows: &Tile<'r>, scratch: &'r mut Scratch) -> TileStep<'r> {
        let records = rows.len();
        let middle = &mut scratch.one.0[..records];
        self.middle.fill(rows, middle);
        let (by, direction) = match &self.along {
            Direction::Column(by, of) => (*by, rows.column(*of)),
            Direction::Constant(by) => (*by, &ONES.0[..records]),
            Direction::Several(weighted) => {
                let direction = &mut scratch.other.0[..records];
                weighted.fill(rows, direction);
                (1.0, &*direction)
            }
        };
        TileStep { outcome: rows.outcome(), middle, direction, by }
    }
}
