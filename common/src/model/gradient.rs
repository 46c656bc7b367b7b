//! The kernel of a gradient: each record's slope, in a public frame, as an integer vector of bounded length.

use pulp::{Simd, WithSimd};

use super::few::{FEW, Few};
use super::linear_predictor::LinearPredictor;
use super::score::Frame;
use super::shard::Block;
use super::slopes::Slopes;
use super::tile::Tile;
use super::weighted::WeightedSum;
use crate::mechanism::{Clamp, GRADIENT_UNITS, LatticeSum};

/// Lattice units of a vector of length 1 before it is rounded: rounding lengthens it by half the root of the
/// number of parameters at most, and the rest is for the arithmetic's own error.
pub const GRADIENT_SCALE: f64 = GRADIENT_UNITS as f64 * (1.0 - 1.0 / 1_048_576.0);
/// No vector that is released is longer, in squared lattice units.
const MOST_SQUARES: u64 = GRADIENT_UNITS * GRADIENT_UNITS;

/// A point and a frame, made ready for a block.
pub(super) struct Gradient<'a, L: Slopes> {
    block: &'a Block<'a>,
    eta: WeightedSum,
    at: L::At,
    /// Per component, its weighted sum of the predictors.
    along: Vec<WeightedSum>,
    /// Per component, its weight of the slope in the family's own parameter.
    own: Vec<f64>,
    shift: &'a [f64],
}

/// The sum over a block of each record's gradient in a frame; see [`super::score::ScoreModel::gradient_sum`].
pub(super) fn gradient_sum<L: Slopes>(
    likelihood: &L,
    predictor: &LinearPredictor,
    block: &Block<'_>,
    (coefficients, own): (&[f64], Option<f64>),
    frame: Frame<'_>,
) -> LatticeSum {
    let pass = Gradient::new(likelihood, predictor, block, (coefficients, own), frame);
    LatticeSum::of_several(&block.arch().dispatch(&pass))
}

/// What is kept of a tile's records.
pub(super) struct Room {
    eta: Few<f64>,
    own: Few<f64>,
    /// The squared length of each image.
    pub(super) squares: Few<f64>,
    /// What it is multiplied by to be no longer than 1.
    factor: Few<f64>,
    /// Each component of the records' images.
    pub(super) components: Vec<Few<f64>>,
    pub(super) units: Vec<Few<i64>>,
    pub(super) within: Few<i64>,
}

impl Room {
    pub(super) fn new(components: usize) -> Self {
        let zero = Few([0.0; FEW]);
        Self {
            eta: zero.clone(),
            own: zero.clone(),
            squares: zero.clone(),
            factor: zero.clone(),
            components: vec![zero; components],
            units: vec![Few([0; FEW]); components],
            within: Few([0; FEW]),
        }
    }

    /// Adds the first `records` images to the totals, as integer vectors of bounded length.
    #[inline(always)]
    pub(super) fn add(&mut self, shift: &[f64], records: usize, totals: &mut [i64]) {
        self.hold(shift, records);
        let within = &self.within.0[..records];
        for (total, units) in totals.iter_mut().zip(&self.units) {
            // No sum overflows: callers check that so many records fit. Said so, the additions are of vectors.
            let held = units.0[..records].iter().zip(within).map(|(unit, within)| unit & within);
            *total = held.fold(*total, i64::wrapping_add);
        }
    }

    /// Makes the first `records` images integer vectors of bounded length: `units` where `within` is all ones, and 0 where it is 0.
    #[inline(always)]
    pub(super) fn hold(&mut self, shift: &[f64], records: usize) {
        shorten(self, shift, records);
        quantise(self, shift, records);
    }
}

impl<'a, L: Slopes> Gradient<'a, L> {
    /// # Panics
    /// On a frame of another number of parameters, which is public.
    pub(super) fn new(
        likelihood: &L,
        predictor: &LinearPredictor,
        block: &'a Block<'a>,
        (coefficients, own): (&[f64], Option<f64>),
        frame: Frame<'a>,
    ) -> Self {
        let d = frame.parameters();
        assert_eq!(d, coefficients.len() + usize::from(own.is_some()), "a frame has the model's parameters");
        Self {
            block,
            eta: predictor.weighted(coefficients),
            at: likelihood.slopes_at(own),
            along: (0..d).map(|k| predictor.weighted_without_offset(frame.row(k))).collect(),
            own: (0..d).map(|k| frame.row(k).get(coefficients.len()).copied().unwrap_or(0.0)).collect(),
            shift: frame.shift(),
        }
    }
}

impl<L: Slopes> Gradient<'_, L> {
    /// The integer vector of each record, as it goes into the sum of gradients.
    #[inline(always)]
    pub(super) fn vectors(&self, rows: &Tile<'_>, room: &mut Room) {
        self.map(rows, room);
        room.hold(self.shift, rows.len());
    }

    #[inline(always)]
    fn total(&self) -> Vec<i64> {
        let d = self.along.len();
        let mut totals = vec![0_i64; d];
        let mut room = Room::new(d);
        let mut tiles = self.block.tiles(FEW);
        while let Some(rows) = tiles.next() {
            self.map(&rows, &mut room);
            room.add(self.shift, rows.len(), &mut totals);
        }
        totals
    }

    /// The image of each record's gradient.
    #[inline(always)]
    fn map(&self, rows: &Tile<'_>, room: &mut Room) {
        let records = rows.len();
        let eta = &mut room.eta.0[..records];
        self.eta.fill(rows, eta);
        let outcome = &rows.outcome()[..records];
        let own = &mut room.own.0[..records];
        for i in 0..records {
            let [slope, of_own] = L::slopes(&self.at, outcome[i], eta[i]);
            eta[i] = slope;
            own[i] = of_own;
        }
        let (slopes, own, squares) = (&room.eta.0[..records], &room.own.0[..records], &mut room.squares.0[..records]);
        squares.fill(0.0);
        for (k, component) in room.components.iter_mut().enumerate() {
            let component = &mut component.0[..records];
            self.along[k].fill(rows, component);
            let (weight, shift) = (self.own[k], self.shift[k]);
            for i in 0..records {
                let value = component[i].mul_add(slopes[i], weight.mul_add(own[i], shift));
                component[i] = value;
                squares[i] = value.mul_add(value, squares[i]);
            }
        }
    }
}

/// What each record's image is multiplied by to be no longer than 1; what is no number becomes the shift.
#[inline(always)]
fn shorten(room: &mut Room, shift: &[f64], records: usize) {
    let of_shift: f64 = shift.iter().map(|b| b * b).sum();
    for (factor, square) in room.factor.0[..records].iter_mut().zip(&room.squares.0) {
        let square_or_shift = if *square < f64::INFINITY { *square } else { of_shift };
        *factor = if square_or_shift > 1.0 { GRADIENT_SCALE / square_or_shift.sqrt() } else { GRADIENT_SCALE };
    }
}

/// The integers of each record, and whether they are no longer than what is charged: the length is checked as an
/// integer, whatever the arithmetic before it did.
#[inline(always)]
fn quantise(room: &mut Room, shift: &[f64], records: usize) {
    let clamp = Clamp::symmetric(GRADIENT_UNITS);
    let (squares, factor) = (&room.squares.0[..records], &room.factor.0[..records]);
    let within = &mut room.within.0[..records];
    within.fill(0);
    for ((component, units), shift) in room.components.iter().zip(&mut room.units).zip(shift) {
        let (component, units) = (&component.0[..records], &mut units.0[..records]);
        for i in 0..records {
            let image = if squares[i] < f64::INFINITY { component[i] } else { *shift };
            let unit = clamp.units(image * factor[i]);
            units[i] = unit;
            // At most 2^28, which 32 bits hold, and 2^56 squared, of at most 2^7 components: up to 2^63, which an unsigned integer holds.
            let narrow = i64::from(unit as i32);
            within[i] = within[i].wrapping_add(narrow.wrapping_mul(narrow));
        }
    }
    for square in within {
        *square = if square.cast_unsigned() <= MOST_SQUARES { -1 } else { 0 };
    }
}

impl<L: Slopes> WithSimd for &Gradient<'_, L> {
    type Output = Vec<i64>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> Vec<i64> {
        self.total()
    }
}
