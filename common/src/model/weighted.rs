//! Weighted sums of a record's columns, and what a step in a linear predictor comes to.

use super::blocks::{Lane, Scratch, TILE};
use super::source::{Of, Rows};

/// A constant, and columns with their weights. Public.
pub(super) struct Weighted {
    constant: f64,
    terms: Vec<(f64, Of)>,
}

impl Weighted {
    pub(super) fn new(constant: f64, terms: impl IntoIterator<Item = (f64, Of)>) -> Self {
        Self { constant, terms: terms.into_iter().collect() }
    }

    /// The sum of each of `rows`, term after term in their order.
    #[inline(always)]
    pub(super) fn fill(&self, rows: &Rows<'_>, out: &mut [f64]) {
        let (mut terms, mut start) = (self.terms.as_slice(), Some(self.constant));
        // Several columns in one go, so that sums stay in registers.
        while let Some((group, rest)) = terms.split_first_chunk::<8>() {
            add(rows, group, start.take(), out);
            terms = rest;
        }
        while let Some((group, rest)) = terms.split_first_chunk::<3>() {
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
fn add<const N: usize>(rows: &Rows<'_>, terms: &[(f64, Of); N], start: Option<f64>, out: &mut [f64]) {
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
/// With `eta` before and `eta'` after it, the middle is `(eta + eta') / 2`, the same both ways bit for bit, and the move `eta' - eta` is negated by
/// the reverse step bit for bit.
pub(super) struct Moves {
    pub middle: Weighted,
    pub along: Along,
}

/// What the linear predictor moves along.
pub(super) enum Along {
    /// One column, as far as this times its value: a step in one coordinate.
    Column(f64, Of),
    /// All records as far.
    Constant(f64),
    Several(Weighted),
}

/// A tile's records under a step: the linear predictor of each moves by `by * direction` around `middle`.
pub(super) struct Moving<'r> {
    pub outcome: &'r [f64],
    pub middle: &'r [f64],
    pub direction: &'r [f64],
    pub by: f64,
}

impl<'r> Moving<'r> {
    /// Outcome, middle, direction.
    #[inline(always)]
    pub(super) fn columns(&self) -> [&'r [f64]; 3] {
        [self.outcome, self.middle, self.direction]
    }
}

static ONES: Lane = Lane([1.0; TILE]);

impl Moves {
    #[inline(always)]
    pub(super) fn of<'r>(&self, rows: &Rows<'r>, scratch: &'r mut Scratch) -> Moving<'r> {
        let records = rows.len();
        let middle = &mut scratch.one.0[..records];
        self.middle.fill(rows, middle);
        let (by, direction) = match &self.along {
            Along::Column(by, of) => (*by, rows.column(*of)),
            Along::Constant(by) => (*by, &ONES.0[..records]),
            Along::Several(weighted) => {
                let direction = &mut scratch.other.0[..records];
                weighted.fill(rows, direction);
                (1.0, &*direction)
            }
        };
        Moving { outcome: rows.outcome(), middle, direction, by }
    }
}
