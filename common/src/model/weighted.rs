//! Weighted sums of a record's columns, and what a step in a linear predictor comes to.

use conclave_privacy::pass::blocks::{Lane, Scratch, TILE};
use conclave_privacy::pass::tile::{ColumnRef, Tile};

/// A constant, and columns with their weights. Public.
pub(super) struct WeightedSum {
    pub(super) constant: f64,
    pub(super) terms: Vec<(f64, ColumnRef)>,
}

impl WeightedSum {
    pub(super) fn new(constant: f64, terms: impl IntoIterator<Item = (f64, ColumnRef)>) -> Self {
        Self { constant, terms: terms.into_iter().collect() }
    }

    /// The sum of each of `rows`, term after term in their order.
    #[inline(always)]
    pub(super) fn fill(&self, rows: &Tile<'_>, out: &mut [f64]) {
        let (mut terms, mut start) = (self.terms.as_slice(), Some(self.constant));
        // Several columns in one go, so that sums stay in registers.
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

/// Adds some terms to `start`, or else to what is there.
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
/// With `eta` before and `eta'` after it, the middle is `(eta + eta') / 2`, the same both ways bit for
/// bit, and the move `eta' - eta` is negated by the reverse step bit for bit.
pub(super) struct CoefficientStep {
    pub middle: WeightedSum,
    pub along: Direction,
}

/// What the linear predictor moves along.
pub(super) enum Direction {
    /// One column, as far as this times its value: a step in one coordinate.
    Column(f64, ColumnRef),
    /// All records as far.
    Constant(f64),
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
    /// Outcome, middle, direction.
    #[inline(always)]
    pub(super) fn columns(&self) -> [&'r [f64]; 3] {
        [self.outcome, self.middle, self.direction]
    }
}

static ONES: Lane = Lane([1.0; TILE]);

impl CoefficientStep {
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
