//! The kernel of second moments and of information: sums of products of a record's numbers, two by two.
//!
//! A record is a vector `v` of integers with `|v|^2 <= M^2`; it contributes the upper triangle of `v v'`. For two
//! records `sum_{a<b} (v_a v_b - w_a w_b)^2 + 1/2 sum_a (v_a^2 - w_a^2)^2 = 1/2 |v v' - w w'|^2 <= M^4`, since
//! `(v . w)^2` is not negative. So that one noise scale serves every component, a diagonal entry is multiplied by
//! [`DIAGONAL`], a little less than `1/sqrt 2`, and rounded down. With the rounding a replaced record moves the
//! whole triangle by at most `M^2 + 3` in L2, an added one by `M^2 / sqrt 2`. What is added for the family's own
//! parameter is a square more on the diagonal: the record's matrix stays positive semidefinite of trace at most
//! `M^2`, and the bound with it.

use pulp::{Simd, WithSimd};

use super::linear_predictor::LinearPredictor;
use super::slopes::Slopes;
use super::weighted::WeightedSum;
use conclave_privacy::mechanism::{Clamp, LatticeSum, MechanismError, Sensitivity};
use conclave_privacy::pass::blocks::Lane;
use conclave_privacy::pass::shard::Block;
use conclave_privacy::pass::tile::{ColumnRef, Tile};

/// What diagonal entries are multiplied by: `181 / 256`, of which the square is below 1/2.
pub const DIAGONAL: f64 = 181.0 / 256.0;
/// Lattice units of 1 in a record's vector, 2^16: a product is in units of 2^-32.
pub(super) const UNIT: u64 = 1 << 16;
/// Records per tile.
const FEW: usize = 256;

/// How far one unit of privacy moves the sum of products, in lattice units and L2: where a record's squares are
/// at most `squares`, a unit is at most `records` of them, and neighbours differ by replacement or (`replaced`
/// false) by addition or removal.
///
/// # Errors
/// [`MechanismError::TooWide`] beyond 2^50.
pub fn products_sensitivity(squares: u64, records: u32, replaced: bool) -> Result<Sensitivity, MechanismError> {
    let trace = u128::from(squares) * u128::from(UNIT * UNIT);
    // 46341 / 65536 is a little more than 1/sqrt 2.
    let one = if replaced { trace + 3 } else { (trace * 46_341).div_ceil(65_536) };
    let all = one * u128::from(records.max(1));
    Sensitivity::from_units(u64::try_from(all).unwrap_or(u64::MAX))
}

/// What a record's vector is made of.
pub(super) struct Vectors<'a, L: Slopes> {
    block: &'a Block<'a>,
    /// The coded predictors.
    coded: Vec<WeightedSum>,
    weight: Weight<L>,
    /// The greatest sum of squares of a record, lattice units.
    most_squares: f64,
}

/// What each coded predictor is multiplied by, and what follows the predictors.
pub(super) enum Weight<L: Slopes> {
    /// 1, and then the outcome: `outcome` gives it.
    Outcome(WeightedSum, f64),
    /// The root of the information at this point over its scale, and then that of the family's own parameter.
    Information { eta: WeightedSum, at: L::At, scales: [f64; 2], own: bool },
}

impl<'a, L: Slopes> Vectors<'a, L> {
    /// `squares` as [`super::score::ScoreModel::most_squares`], with one more for what follows the predictors.
    pub(super) fn new(predictor: &LinearPredictor, block: &'a Block<'a>, weight: Weight<L>, squares: u64) -> Self {
        let coded = predictor.coded();
        Self { block, coded, weight, most_squares: (squares * UNIT * UNIT) as f64 }
    }

    pub(super) fn sum(&self) -> LatticeSum {
        LatticeSum::of_several(&self.block.arch().dispatch(self))
    }

    fn order(&self) -> usize {
        self.coded.len() + usize::from(self.has_last())
    }

    fn has_last(&self) -> bool {
        match &self.weight {
            Weight::Outcome(..) => true,
            Weight::Information { own, .. } => *own,
        }
    }

    #[inline(always)]
    fn total(&self) -> Vec<i64> {
        let order = self.order();
        let mut totals = vec![0_i64; order * (order + 1) / 2];
        let mut values = vec![[0.0; FEW]; order];
        let (mut root, mut last) = (Lane::ZERO, Lane::ZERO);
        let mut tiles = self.block.tiles(FEW);
        while let Some(rows) = tiles.next_tile() {
            let records = rows.len();
            self.weights(&rows, &mut root.0[..records], &mut last.0[..records]);
            let clamp = Clamp::symmetric(UNIT);
            for (column, coded) in values.iter_mut().zip(&self.coded) {
                let column = &mut column[..records];
                coded.fill(&rows, column);
                for (value, root) in column.iter_mut().zip(&root.0) {
                    // At most 1 as declared. Not a number, of a record that is left out, is 0.
                    *value = clamp.rounded(*value * root * UNIT as f64);
                }
            }
            if self.has_last() {
                let column = &mut values[order - 1][..records];
                for (value, last) in column.iter_mut().zip(&last.0) {
                    *value = clamp.rounded(last * UNIT as f64);
                }
            }
            self.hold(&mut values, &mut root.0[..records]);
            self.add(&values, records, &mut totals);
        }
        totals
    }

    /// What the predictors are multiplied by, and the number that follows them.
    #[inline(always)]
    fn weights(&self, rows: &Tile<'_>, root: &mut [f64], last: &mut [f64]) {
        let outcome = &rows.outcome()[..root.len()];
        match &self.weight {
            Weight::Outcome(residual, unit) => {
                residual.fill(rows, last);
                for i in 0..root.len() {
                    last[i] = (outcome[i] - last[i]) * unit;
                    // Not a number of a record that is left out.
                    root[i] = 1.0 + 0.0 * last[i];
                }
            }
            Weight::Information { eta, at, scales, .. } => {
                eta.fill(rows, root);
                for i in 0..root.len() {
                    let [of_eta, of_own] = L::information_at(at, outcome[i], root[i]);
                    let share = |information: f64, scale: f64| {
                        let share = (information / scale).sqrt();
                        if share > 1.0 { 1.0 } else { share }
                    };
                    root[i] = share(of_eta, scales[0]);
                    last[i] = share(of_own, scales[1]);
                }
            }
        }
    }

    /// Sets to 0 the vector of a record whose squares are more than what is charged: the check is of integers,
    /// which `f64` holds exactly here.
    #[inline(always)]
    fn hold(&self, values: &mut [[f64; FEW]], squares: &mut [f64]) {
        squares.fill(0.0);
        let records = squares.len();
        for column in values.iter() {
            for i in 0..records {
                squares[i] += column[i] * column[i];
            }
        }
        for column in values.iter_mut() {
            for i in 0..records {
                column[i] = if squares[i] <= self.most_squares { column[i] } else { 0.0 };
            }
        }
    }

    /// Adds the products of a tile: of at most 2^33 each, so a tile's sums are exact.
    #[inline(always)]
    fn add(&self, values: &[[f64; FEW]], records: usize, totals: &mut [i64]) {
        let order = values.len();
        // Information about the family's own parameter goes with no other.
        let alone = matches!(self.weight, Weight::Information { own: true, .. });
        let mut at = 0;
        for a in 0..order {
            for b in a..order {
                let (left, right) = (&values[a][..records], &values[b][..records]);
                let sum = if a == b {
                    summed(left, right, |x, y| (x * y * DIAGONAL).floor())
                } else if alone && b == order - 1 {
                    0.0
                } else {
                    summed(left, right, |x, y| x * y)
                };
                totals[at] = totals[at].wrapping_add(sum as i64);
                at += 1;
            }
        }
    }
}

/// The sum of whole numbers in eight parts, which a vector unit adds side by side; exact, so in no matter which order.
#[inline(always)]
fn summed(left: &[f64], right: &[f64], product: impl Fn(f64, f64) -> f64) -> f64 {
    let ((left, left_rest), (right, right_rest)) = (left.as_chunks::<8>(), right.as_chunks::<8>());
    let mut parts = [0.0; 8];
    for (left, right) in left.iter().zip(right) {
        for lane in 0..8 {
            parts[lane] += product(left[lane], right[lane]);
        }
    }
    let rest: f64 = left_rest.iter().zip(right_rest).map(|(x, y)| product(*x, *y)).sum();
    parts.iter().sum::<f64>() + rest
}

impl<L: Slopes> WithSimd for &Vectors<'_, L> {
    type Output = Vec<i64>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> Vec<i64> {
        self.total()
    }
}

/// The offset of a linear predictor alone, as a sum over a record's columns; `factor` takes it to the predictor's
/// scale.
pub(super) fn offset_alone(centre: f64, factor: Option<f64>) -> WeightedSum {
    WeightedSum::new(centre, factor.map(|factor| (factor, ColumnRef::Auxiliary(0))))
}
