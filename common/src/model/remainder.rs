//! The kernel of a remainder: what a record's log ratio is beyond the clipped integer vector that stood for its gradient.
//!
//! A step from `theta` to `theta'` with the middle `m` has the log ratio `r`. The gradient that was released at `m` was a sum of integer
//! vectors `k`, one a record; along the step such a vector comes to `k . weights + constant`. What is summed here is
//! `r - (k . weights + constant)`, with the *same* integers, made anew from the same bits: whatever was clipped or rounded there is taken
//! off here, so that both together are the log ratio to the last bit of the arithmetic.
//!
//! Public bound. Let the linear predictor of a record be moved by `u` from `theta` to `m` and by `v` from `m` to `theta'`, at most `a` and `b`
//! of all records, and the second derivative of the log density in it lie from `-F` to `G`. By Taylor's theorem around `m` the log
//! ratio is the slope times `u + v` but for at most `(F b^2 + G a^2) / 2` downwards and `(G b^2 + F a^2) / 2` upwards. Where the family's own
//! parameter moves too, `F b^2` is a quadratic form in both moves. Rounding a vector to integers adds half of `|weights|` summed. Swapping the
//! ends gives the same bits.

use pulp::{Simd, WithSimd};

use super::few::{FEW, Few};
use super::gradient::{Gradient, Room};
use super::likelihood::{Ends, Likelihood};
use super::linear_predictor::LinearPredictor;
use super::persons::{PersonSum, Persons};
use super::score::Remainder;
use super::shard::Block;
use super::slopes::Bends;
use super::tile::Tile;
use super::weighted::WeightedSum;
use crate::mechanism::{Clamp, LatticeSum, Quantiser, Sensitivity, sum_fits};

/// How far half a step moves a record at most: its linear predictor, and the logarithm of the family's own parameter.
pub(super) type Half = (f64, f64);

/// The most that a log ratio is off its tangent at the middle, where the two halves of the step move so far and the log density bends so.
pub(super) fn second_order(first: Half, second: Half, bends: &Bends) -> f64 {
    // What does not move leaves nothing, however steep it is there.
    let times = |bend: f64, a: f64, b: f64| if a == 0.0 || b == 0.0 { 0.0 } else { bend * a * b };
    let form = |way: usize, (moved, own): Half| {
        times(bends.predictor[way], moved, moved) + (2.0 * times(bends.mixed, moved, own) + times(bends.own[way], own, own))
    };
    let (falling, rising) = (|half| form(0, half), |half| form(1, half));
    0.5 * (falling(second) + rising(first)).max(falling(first) + rising(second))
}

/// A step, made ready for a block.
struct Pass<'a, L: Likelihood> {
    block: &'a Block<'a>,
    gradient: Gradient<'a, L>,
    constants: L::Constants,
    from: WeightedSum,
    to: WeightedSum,
    weights: &'a [f64],
    constant: f64,
    power: f64,
    quantiser: Quantiser,
    clamp: Clamp,
}

/// The sum over a block of each record's remainder; see [`super::ScoreModel::remainder_sum`]. `middle` is the point of the gradient.
pub(super) fn remainder_sum<L: Likelihood>(
    (likelihood, predictor): (&L, &LinearPredictor),
    block: &Block<'_>,
    (middle, ends): ((&[f64], Option<f64>), Ends<'_>),
    step: &Remainder<'_>,
    clamp: Sensitivity,
) -> LatticeSum {
    assert!(sum_fits(block.units(), clamp), "callers check that so many units fit the sum");
    let share = u64::from(block.persons().map_or(1, |(persons, _)| persons.limit()));
    let pass = Pass::<L> {
        block,
        gradient: Gradient::new(likelihood, predictor, block, middle, step.frame),
        constants: likelihood.constants(predictor, &ends),
        from: predictor.weighted(ends.from),
        to: predictor.weighted(ends.to),
        weights: step.weights,
        constant: step.constant,
        power: step.power,
        quantiser: Quantiser::new(1.0, 0.0, clamp.units() / share),
        clamp: Clamp::symmetric(clamp.units()),
    };
    LatticeSum::new(block.arch().dispatch(&pass))
}

impl<L: Likelihood> Pass<'_, L> {
    #[inline(always)]
    fn total(&self) -> i64 {
        let mut room = Kept::new(self.weights.len());
        let mut total = 0_i64;
        let mut tiles = self.block.tiles(FEW);
        while let Some(rows) = tiles.next() {
            self.values(&rows, &mut room);
            // No partial sum overflows: sum_fits.
            total = room.values.0[..rows.len()].iter().fold(total, |total, value| total.wrapping_add(*value));
        }
        total
    }

    #[inline(always)]
    fn total_by_person(&self, persons: &Persons, first: usize) -> i64 {
        let mut room = Kept::new(self.weights.len());
        let mut sum = PersonSum::beginning(first);
        let mut tiles = self.block.tiles(FEW);
        while let Some(rows) = tiles.next() {
            self.values(&rows, &mut room);
            sum.add(persons, rows.range(), &room.values.0[..rows.len()], self.clamp);
        }
        sum.total()
    }

    /// The lattice value of each of `rows`.
    #[inline(always)]
    fn values(&self, rows: &Tile<'_>, room: &mut Kept) {
        let records = rows.len();
        self.gradient.vectors(rows, &mut room.vectors);
        let along = &mut room.along.0[..records];
        along.fill(0.0);
        let within = &room.vectors.within.0[..records];
        for (weight, units) in self.weights.iter().zip(&room.vectors.units) {
            let units = &units.0[..records];
            for i in 0..records {
                let unit = units[i] & within[i];
                // At most 2^28: exact.
                along[i] = weight.mul_add(unit as f64, along[i]);
            }
        }
        let (from, to) = (&mut room.from.0[..records], &mut room.to.0[..records]);
        self.from.fill(rows, from);
        self.to.fill(rows, to);
        let outcome = &rows.outcome()[..records];
        let values = &mut room.values.0[..records];
        for i in 0..records {
            let ratio = L::log_ratio(&self.constants, outcome[i], from[i], to[i]);
            // A record that is left out has no log ratio, and a vector all the same: its frame's shift.
            let ratio = if ratio.is_nan() { 0.0 } else { self.power * ratio };
            values[i] = self.quantiser.units(ratio - (along[i] + self.constant));
        }
    }
}

/// What is kept of a tile's records.
struct Kept {
    vectors: Room,
    along: Few<f64>,
    from: Few<f64>,
    to: Few<f64>,
    values: Few<i64>,
}

impl Kept {
    fn new(components: usize) -> Self {
        let zero = Few([0.0; FEW]);
        Self { vectors: Room::new(components), along: zero.clone(), from: zero.clone(), to: zero, values: Few([0; FEW]) }
    }
}

impl<L: Likelihood> WithSimd for &Pass<'_, L> {
    type Output = i64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> i64 {
        match self.block.persons() {
            None => self.total(),
            Some((persons, first)) => self.total_by_person(persons, first),
        }
    }
}
