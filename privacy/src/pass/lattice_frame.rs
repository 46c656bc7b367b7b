//! A gradient's frame in integers, and the public constants that bound the length of each record's vector.
//!
//! # Integer vectors
//!
//! A record's vector is not rounded component by component. Its predictors are rounded to `X`, multiples of 2^-27, its slope to
//! an integer `w`, and the frame's rows to integers `A`. The vector is `w A X` in units of 2^-49 of a lattice unit, plus a
//! public shift. A slope in the family's own parameter adds a similar part. The sum over records is therefore `A` times the sum
//! of `w X`. It needs one product per predictor instead of one per entry of the frame. It is exact, and is rounded to the
//! lattice once, when noise is added.
//!
//! # Length
//!
//! The final rounding changes each of `d` components by at most 1/2, so it increases the distance of two sums by at most
//! `sqrt d`. Each vector is held to [`GRADIENT_UNITS`] less `sqrt d + 2`, so that neighbours' releases are no further apart
//! than the charged sensitivity. The vector is `w g + o h + b`, with `g = A X`, `h` the own parameter's part and `b` the shift.
//! Its squared length exceeds the shift's by `w^2 |g|^2 + 2 w (g.b + o g.h) + o^2 |h|^2 + 2 o h.b`. With the triangle
//! `R'R = A'A`, `|g|^2 = |R X|^2` takes half the work of `A X`.
//!
//! If a vector is too long, both `w` and `o` are multiplied by `f`, the permitted excess divided by the measured one. Along
//! this path the squared length is convex, and so below its chord. Then both weights are truncated towards 0. Without an own
//! parameter there is one weight, and truncation stays on the path. With two weights it leaves the path, and the vector may
//! grow if their parts oppose each other. Truncation changes
//! each weight by less than 1, so this growth is at most `u (|g| + |h|)`, where `u` is the size of a weight of 1. The limit for
//! such frames is reduced accordingly. A record of `p` predictors contributes only the shift if their squares are not numbers,
//! or sum to more than `p (1 + 1e-5)`.
//!
//! # Rounding
//!
//! The form above is computed in floats from unrounded predictors. Use units in which the greatest entry of `A` is about 1. Let
//! `|y|` be the root of the sum of squares of all entries of `y`. `R'R` is computed from `A'A` plus a diagonal term that bounds
//! the error of the triangle itself.
//!
//! In single precision, a sum over the predictors with weights `y` errs by less than `(p + 4) 2^-24 |y| sqrt p`. This includes
//! the rounding of predictors to `X`, but not that of weights below 2^-25 to 0. That adds at most `|z| sqrt p`, where `z` are
//! those weights, and so at most `2^-25 p`. For `|R X|^2` both are below `(8 p + 32) 2^-24 |R|^2 p`. For the products with the
//! shift and with the own parameter's part, twice the sum of both bounds is added.
//!
//! The rest, in double precision, errs by less than `2^-42 (|A| sqrt p + |h| + |b| + 1)^2 (w^2 + o^2 + 1)` for at most [`MOST`]
//! parameters. Four times that bound is added.
//!
//! Proof: `docs/explanation/design.md`, section 2.

use super::frame::Frame;
use super::row_sums::dropped;
use super::triangle::root;
use crate::mechanism::{FRACTION, GRADIENT_UNITS};

/// Lattice units of a vector of length 1. The margin to [`GRADIENT_UNITS`] covers arithmetic errors.
pub const GRADIENT_SCALE: f64 = GRADIENT_UNITS as f64 * (1.0 - 1.0 / 1_048_576.0);
/// Binary digits of a rounded predictor after the point.
pub(super) const DIGITS: i32 = 27;
/// Binary digits of the greatest entry of a rounded frame.
const ENTRY_DIGITS: i32 = 30;
/// Binary digits of a slope's weight when the slope and the greatest entry give a vector of length 1.
const WEIGHT_DIGITS: i32 = 20;
/// The greatest weight; a steeper slope is clamped to it.
pub(super) const MOST_WEIGHT: f64 = 8_388_608.0;
/// The lower limit of a frame's greatest entry; the upper limit is its reciprocal. A frame outside this range counts as 0.
const LEAST_ENTRY: f64 = 1e-30;
/// The maximum number of parameters for which the error bounds above are derived.
const MOST: usize = 128;

/// Returns 2 to the power `n`, for a normal result.
fn power(n: i32) -> f64 {
    f64::from_bits(((1023 + n) as u64) << 52)
}

/// A matrix of integers with a common binary exponent. Unless it is zero, its greatest magnitude is about 2^29 to 2^30.
struct Whole {
    entries: Vec<i64>,
    exponent: i32,
}

impl Whole {
    /// Rounds a matrix. It becomes zero if an entry is not a number or the greatest is out of range.
    fn of(entries: &[f64]) -> Self {
        let greatest =
            entries.iter().fold(0.0, |greatest: f64, x| if x.is_nan() { f64::INFINITY } else { greatest.max(x.abs()) });
        if !(LEAST_ENTRY..=LEAST_ENTRY.recip()).contains(&greatest) {
            return Self { entries: vec![0; entries.len()], exponent: 0 };
        }
        // The exponent of the least power of two above `greatest`.
        let binade = (greatest.to_bits() >> 52) as i32 - 1022;
        let exponent = binade - ENTRY_DIGITS;
        let scale = power(-exponent) * (GRADIENT_SCALE / GRADIENT_UNITS as f64);
        Self { entries: entries.iter().map(|x| (x * scale).round_ties_even() as i64).collect(), exponent }
    }

    /// Returns the factor from a slope to its weight.
    fn weight(&self) -> f64 {
        power(self.exponent + ENTRY_DIGITS + WEIGHT_DIGITS)
    }

    /// Returns the entries in units in which the greatest is about 1.
    fn units(&self) -> Vec<f64> {
        self.entries.iter().map(|x| *x as f64 * power(-ENTRY_DIGITS)).collect()
    }
}

/// A frame in integers.
pub struct WholeFrame {
    /// `A`: the weight of each coefficient in each component.
    rows: Whole,
    /// The weight of the own parameter in each component, if there is one.
    own: Whole,
    /// The shift, with the binary digits of the sums.
    shift: Vec<i128>,
}

impl WholeFrame {
    /// Rounds a frame. Its first parameters are coefficients; one more is the family's own parameter.
    ///
    /// # Panics
    /// For any other number of parameters, or for more than 128. The number is public.
    pub fn new(frame: Frame<'_>, coefficients: usize) -> Self {
        let d = frame.parameters();
        assert!(d <= MOST && (coefficients..=coefficients + 1).contains(&d), "a frame has the model's parameters");
        let rows: Vec<f64> = (0..d).flat_map(|k| &frame.row(k)[..coefficients]).copied().collect();
        let own: Vec<f64> = (0..d).flat_map(|k| &frame.row(k)[coefficients..]).copied().collect();
        let fine = |b: &f64| (b * power(28 + FRACTION as i32)) as i128;
        Self { rows: Whole::of(&rows), own: Whole::of(&own), shift: held_shift(frame.shift()).iter().map(fine).collect() }
    }

    pub(super) fn parameters(&self) -> usize {
        self.shift.len()
    }

    pub(super) fn coefficients(&self) -> usize {
        self.rows.entries.len() / self.parameters()
    }

    /// Returns the sum of `records` vectors, with [`FRACTION`] binary digits after the point. The arguments are the sums of
    /// weights times predictors and the sum of the own parameter's weights.
    pub(super) fn total(&self, records: usize, of_predictors: &[i128], of_own: i128) -> Vec<i128> {
        let coefficients = self.coefficients();
        let component = |k: usize| {
            let row = &self.rows.entries[k * coefficients..(k + 1) * coefficients];
            let predictors: i128 = row.iter().zip(of_predictors).map(|(a, sum)| i128::from(*a) * sum).sum();
            let own = self.own.entries.get(k).map_or(0, |h| i128::from(*h) * (of_own << DIGITS));
            predictors + own + self.shift[k] * records as i128
        };
        (0..self.parameters()).map(component).collect()
    }

    /// Returns the inner products of `components` with each part of a vector: predictors and own parameter at weight 1, and
    /// shift.
    pub fn along(&self, components: &[f64]) -> Along {
        let (d, coefficients, unit) = (self.parameters(), self.coefficients(), power(DIGITS - FRACTION as i32));
        let sum = |of: &dyn Fn(usize) -> f64| (0..d).map(|k| components[k] * of(k)).sum::<f64>();
        Along {
            predictors: (0..coefficients).map(|j| sum(&|k| self.rows.entries[k * coefficients + j] as f64 * unit)).collect(),
            own: sum(&|k| self.own.entries.get(k).map_or(0.0, |h| *h as f64 * unit)),
            shift: sum(&|k| self.shift[k] as f64 * power(-(FRACTION as i32))),
        }
    }

    /// Returns an upper bound of the rounding error of a record's vector in its inner product with `components`. The error comes
    /// from the rounding of slopes, predictors and frame.
    pub fn rounding(&self, components: &[f64]) -> f64 {
        let along = self.along(components);
        let all: f64 = components.iter().map(|w| w.abs()).sum();
        let of_predictors: f64 = along.predictors.iter().map(|v| v.abs()).sum();
        // Half a weight, half an entry of the frame, and half the last digit of a predictor times the greatest weight.
        let entry = 0.5 * MOST_WEIGHT * power(DIGITS - FRACTION as i32);
        let predictor = 0.5 * MOST_WEIGHT * power(-DIGITS);
        (0.5 + predictor) * of_predictors + 0.5 * along.own.abs() + entry * (self.coefficients() + 1) as f64 * all
    }
}

/// A frame with the public constants for measuring lengths.
pub struct LatticeFrame {
    pub(super) whole: WholeFrame,
    /// The factors from slopes to weights.
    pub(super) weights: [f64; 2],
    /// `R`, row after row; then `2 A'b`, and `2 A'h` if there is an own parameter.
    rows: Vec<Vec<f64>>,
    /// The size of a weight of 1 in the units of `rows`.
    pub(super) unit: f64,
    /// `|h|^2` with its slack, and `2 h.b`.
    pub(super) of_own: [f64; 2],
    /// The slack of `|g|^2`, and the slack of the constant term.
    pub(super) slack: [f64; 2],
    /// The greatest permitted excess of the squared length over the shift's.
    pub(super) room: f64,
    /// The same limit for a shortened vector, whose weights are then truncated to integers.
    pub(super) room_if_cut: f64,
    /// The greatest distance by which the rounding of weights moves a vector.
    rounding: f64,
}

impl LatticeFrame {
    /// Prepares a frame; see [`WholeFrame::new`].
    pub fn new(frame: Frame<'_>, coefficients: usize) -> Self {
        let whole = WholeFrame::new(frame, coefficients);
        let d = whole.parameters();
        let (units, h) = (whole.rows.units(), whole.own.units());
        let b = held_shift(frame.shift());
        let column = |of: &[f64], j: usize| (0..d).map(|k| of[k] * units[k * coefficients + j]).sum::<f64>();
        let crossed = |of: &[f64]| (0..coefficients).map(|j| 2.0 * column(of, j)).collect::<Vec<f64>>();
        let squares = |of: &[f64]| of.iter().map(|x| x * x).sum::<f64>();
        let mut all = root(&units, coefficients);
        let terms = coefficients as f64;
        let single = (8.0 * terms + 32.0) * power(-24) * all.iter().map(|row| squares(row)).sum::<f64>() * terms;
        all.extend((coefficients > 0).then(|| crossed(&b)));
        all.extend((coefficients > 0 && !h.is_empty()).then(|| crossed(&h)));
        let of_crossed: f64 = all.iter().skip(coefficients).map(|row| squares(row).sqrt()).sum();
        let of_dropped: f64 = all.iter().skip(coefficients).map(|row| dropped(row)).sum();
        let crossing = (2.0 * (terms + 4.0) * power(-24) * of_crossed + 2.0 * of_dropped) * terms.sqrt();
        let longest = (squares(&units) * terms).sqrt() + squares(&h).sqrt() + squares(&b).sqrt() + 1.0;
        let slack = power(-40) * longest * longest + crossing;
        let most = 1.0 - ((d as f64).sqrt() + 2.0) / GRADIENT_UNITS as f64;
        let room = most * most - squares(&b) * (1.0 + power(-40));
        // Bounds the growth of a vector of length at most 1 by a vector that is added to it.
        let grown = if h.is_empty() { 0.0 } else { power(-WEIGHT_DIGITS) * longest };
        Self {
            weights: [whole.rows.weight(), whole.own.weight()],
            rows: all,
            unit: power(-WEIGHT_DIGITS),
            of_own: [squares(&h) + slack, 2.0 * b.iter().zip(&h).map(|(b, h)| b * h).sum::<f64>()],
            slack: [slack + single, slack],
            room,
            rounding: 0.5 * power(-WEIGHT_DIGITS) * longest,
            room_if_cut: (room - grown * (2.0 + grown)).max(0.0),
            whole,
        }
    }

    /// Returns the factor by which to widen the frame so that no vector of length 1 is shortened, given the greatest slopes. It
    /// accounts for the slack in the squared length, for rounding, and for the limit on weights.
    pub fn widened(&self, most: [f64; 2]) -> f64 {
        let [w, o] = [0, 1].map(|j| most[j] * self.weights[j]);
        // A family without an own parameter may still pass a slope for it, whose weight is ignored.
        let greatest = if self.whole.own.entries.is_empty() { w } else { w.max(o) };
        // In a wider frame the unit of weights may be up to twice as fine relative to the entries.
        let held = if greatest > MOST_WEIGHT { 2.0 * greatest / MOST_WEIGHT } else { 1.0 };
        let [w, o] = [w, o].map(|weight| weight.min(MOST_WEIGHT) * self.unit);
        let slack = w * w * self.slack[0] + (o * o + 1.0) * self.slack[1];
        let squares = (1.0 + self.rounding) * (1.0 + self.rounding) + 2.0 * slack;
        held * squares.sqrt()
    }

    /// Returns the weights of sums over a record's predictors: first the rows of `R`, then twice the products with shift and
    /// own part.
    pub(super) fn rows(&self) -> (&[Vec<f64>], &[Vec<f64>]) {
        self.rows.split_at(self.whole.coefficients())
    }
}

/// Inner products with the parts of a vector; see [`WholeFrame::along`].
pub struct Along {
    /// The product with the predictors.
    pub predictors: Vec<f64>,
    /// The product with the own parameter's part.
    pub own: f64,
    /// The product with the shift.
    pub shift: f64,
}

/// Returns the shift in units of [`GRADIENT_UNITS`], shortened to the length of a vector of length 1; zero if it is not finite.
fn held_shift(shift: &[f64]) -> Vec<f64> {
    let length = shift.iter().map(|b| b * b).sum::<f64>().sqrt();
    let scale = GRADIENT_SCALE / GRADIENT_UNITS as f64;
    let scale = if length > 1.0 { scale / length } else { scale };
    if length.is_finite() { shift.iter().map(|b| b * scale).collect() } else { vec![0.0; shift.len()] }
}

#[cfg(test)]
#[path = "tests/lattice_frame.rs"]
mod tests;
