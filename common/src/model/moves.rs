//! The movement of a tile's records and the inner products of their vectors with the step, computed together from the same
//! columns.

use super::weighted::{CoefficientStep, Direction, TileStep, WeightedSum};
use conclave_privacy::pass::blocks::Scratch;
use conclave_privacy::pass::small_tile::{SMALL_TILE, TileLane};
use conclave_privacy::pass::tile::{ColumnRef, Tile};

/// The sums of a step: the vectors' inner products with it, and the movement of the linear predictor.
pub(super) enum Moves {
    /// The inner products, the midpoint and the direction of the movement.
    Several(Together<3>),
    Other(WeightedSum, CoefficientStep),
}

impl Moves {
    pub(super) fn new(along: WeightedSum, step: CoefficientStep) -> Self {
        match step {
            CoefficientStep { middle, along: Direction::Several(direction) } => {
                Self::Several(Together::new([along, middle, direction]))
            }
            other => Self::Other(along, other),
        }
    }

    /// Computes the sums of a tile's records.
    #[inline(always)]
    pub(super) fn of<'r>(
        &self,
        rows: &Tile<'r>,
        sums: &'r mut [TileLane<f64>; 3],
        scratch: &'r mut Scratch,
    ) -> (&'r [f64], TileStep<'r>) {
        let records = rows.len();
        match self {
            Self::Several(together) => {
                together.fill(rows, sums);
                let [along, middle, direction] = &*sums;
                let (middle, direction) = (&middle.0[..records], &direction.0[..records]);
                (&along.0[..records], TileStep { outcome: rows.outcome(), middle, direction, by: 1.0 })
            }
            Self::Other(sum, step) => {
                let along = &mut sums[0].0[..records];
                sum.fill(rows, along);
                (along, step.of(rows, scratch))
            }
        }
    }
}

/// Several weighted sums that usually end in the same columns, which are read once for all sums.
pub(super) struct Together<const K: usize> {
    /// The terms of each sum before the shared ones.
    heads: [WeightedSum; K],
    shared: Vec<([f64; K], ColumnRef)>,
}

impl<const K: usize> Together<K> {
    fn new(mut heads: [WeightedSum; K]) -> Self {
        let mut shared = Vec::new();
        while let Some(column) = heads[0].terms.last().map(|term| term.1)
            && heads.iter().all(|sum| sum.terms.last().is_some_and(|term| term.1 == column))
        {
            shared.push((heads.each_mut().map(|sum| sum.terms.pop().map_or(0.0, |term| term.0)), column));
        }
        shared.reverse();
        Self { heads, shared }
    }

    /// Computes the sums of each of `rows`, with the same bits as [`WeightedSum::fill`].
    #[inline(always)]
    fn fill(&self, rows: &Tile<'_>, outs: &mut [TileLane<f64>; K]) {
        let (mut terms, records) = (self.shared.as_slice(), rows.len());
        let alone = self.heads.iter().any(|head| !head.terms.is_empty());
        let mut start = [0.0; K];
        for k in 0..K {
            start[k] = self.heads[k].constant;
            if alone || terms.is_empty() {
                self.heads[k].fill(rows, &mut outs[k].0[..records]);
            }
        }
        let mut start = Some(start).filter(|_| !alone);
        while let Some((group, rest)) = terms.split_first_chunk::<8>() {
            add_together(rows, group, start.take(), outs);
            terms = rest;
        }
        while let Some((group, rest)) = terms.split_first_chunk::<2>() {
            add_together(rows, group, start.take(), outs);
            terms = rest;
        }
        while let Some((group, rest)) = terms.split_first_chunk::<1>() {
            add_together(rows, group, start.take(), outs);
            terms = rest;
        }
    }
}

/// Adds `N` terms of each sum to `start`, or to the existing values.
// An index, so that one loop serves any number of columns.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
fn add_together<const N: usize, const K: usize>(
    rows: &Tile<'_>,
    terms: &[([f64; K], ColumnRef); N],
    start: Option<[f64; K]>,
    outs: &mut [TileLane<f64>; K],
) {
    let records = rows.len().min(SMALL_TILE);
    let (mut columns, mut weights): ([&[f64]; N], _) = ([&[]; N], [[0.0; K]; N]);
    // No closure: it might not be inlined, and the loop would not know the lengths.
    for k in 0..N {
        columns[k] = &rows.column(terms[k].1)[..records];
        weights[k] = terms[k].0;
    }
    for i in 0..records {
        let mut sums = [0.0; K];
        for k in 0..K {
            sums[k] = match start {
                Some(start) => start[k],
                None => outs[k].0[i],
            };
        }
        for n in 0..N {
            let x = columns[n][i];
            for k in 0..K {
                sums[k] = weights[n][k].mul_add(x, sums[k]);
            }
        }
        for k in 0..K {
            outs[k].0[i] = sums[k];
        }
    }
}
