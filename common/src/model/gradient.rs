//! The kernel of a gradient: each record's slope, in a public frame, as an integer vector of bounded length.

use pulp::{Simd, WithSimd};

use super::blocks::Lane;
use super::linear_predictor::LinearPredictor;
use super::score::Frame;
use super::shard::Block;
use super::slopes::Slopes;
use super::tile::Tile;
use super::weighted::WeightedSum;
use crate::mechanism::{Clamp, GRADIENT_UNITS, LatticeSum};

/// Records per tile: as many vectors as there are parameters are kept of each.
pub(super) const FEW: usize = 256;
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
    eta: Lane,
    own: Lane,
    factor: Lane,
    /// Each component of the records' images.
    pub(super) components: Vec<[f64; FEW]>,
    pub(super) units: Vec<[i64; FEW]>,
    pub(super) within: [i64; FEW],
}

impl Room {
    pub(super) fn new(components: usize) -> Self {
        Self {
            eta: Lane::ZERO,
            own: Lane::ZERO,
            factor: Lane::ZERO,
            components: vec![[0.0; FEW]; components],
            units: vec![[0; FEW]; components],
            within: [0; FEW],
        }
    }

    /// Adds the first `records` images to the totals, as integer vectors of bounded length.
    #[inline(always)]
    pub(super) fn add(&mut self, shift: &[f64], records: usize, totals: &mut [i64]) {
        self.hold(shift, records);
        for (total, units) in totals.iter_mut().zip(&self.units) {
            // No sum overflows: callers check that so many records fit.
            let sum: i64 = units[..records].iter().zip(&self.within).map(|(unit, within)| unit & within).sum();
            *total = total.wrapping_add(sum);
        }
    }

    /// Makes the first `records` images integer vectors of bounded length: `units` where `within` is all ones, and 0 where it is 0.
    #[inline(always)]
    pub(super) fn hold(&mut self, shift: &[f64], records: usize) {
        shorten(self, shift, records);
        quantise(self, records);
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
        for (k, component) in room.components.iter_mut().enumerate() {
            let component = &mut component[..records];
            self.along[k].fill(rows, component);
            let (weight, shift) = (self.own[k], self.shift[k]);
            let slopes = room.eta.0.iter().zip(&room.own.0);
            for (value, (slope, own)) in component.iter_mut().zip(slopes) {
                *value = value.mul_add(*slope, weight.mul_add(*own, shift));
            }
        }
    }
}

/// What each record's image is multiplied by to be no longer than 1; what is no number becomes the shift.
#[inline(always)]
fn shorten(room: &mut Room, shift: &[f64], records: usize) {
    let Room { factor, components, .. } = room;
    let squares = &mut factor.0[..records];
    squares.fill(0.0);
    for component in components.iter() {
        for i in 0..records {
            squares[i] = component[i].mul_add(component[i], squares[i]);
        }
    }
    for (component, shift) in components.iter_mut().zip(shift) {
        for i in 0..records {
            component[i] = if squares[i] < f64::INFINITY { component[i] } else { *shift };
        }
    }
    let of_shift: f64 = shift.iter().map(|b| b * b).sum();
    for square in squares {
        let square_or_shift = if *square < f64::INFINITY { *square } else { of_shift };
        *square = if square_or_shift > 1.0 { GRADIENT_SCALE / square_or_shift.sqrt() } else { GRADIENT_SCALE };
    }
}

/// The integers of each record, and whether they are no longer than what is charged: the length is checked as an
/// integer, whatever the arithmetic before it did.
#[inline(always)]
fn quantise(room: &mut Room, records: usize) {
    let clamp = Clamp::symmetric(GRADIENT_UNITS);
    let within = &mut room.within[..records];
    within.fill(0);
    for (component, units) in room.components.iter().zip(&mut room.units) {
        for i in 0..records {
            let unit = clamp.units(component[i] * room.factor.0[i]);
            units[i] = unit;
            // At most 2^56 each, of at most 2^7 components: up to 2^63, which an unsigned integer holds.
            within[i] = within[i].wrapping_add(unit.wrapping_mul(unit));
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
