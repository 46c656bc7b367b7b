//! A gradient's frame in whole numbers, and the public constants that hold each record's vector to its length.
//!
//! A record's vector is not rounded component by component. Its predictors are rounded to `X`, whole multiples of 2^-27, its slope to a whole
//! number `w`, and the frame's rows to whole numbers `A`: the vector is `w A X` in units of 2^-49 of a lattice unit, a public shift besides, and
//! a like part for the slope in the family's own parameter. So the sum over records is `A` times the sum of `w X`, by one product a predictor
//! in the place of a row of the frame, and no digit of it is lost: it is rounded to the lattice once, when noise is added.
//!
//! Length. What is rounded at the end moves by `sqrt d` more than the sum does at most, each component by 1. So each vector is held to
//! [`GRADIENT_UNITS`] less that, and neighbours' releases are no farther apart than is charged for. The vector is `w g + o h + b`, with
//! `g = A X`, `h` of the own parameter and `b` the shift, and what its squared length is beyond the shift's is
//! `w^2 |g|^2 + 2 w (g.b + o g.h) + o^2 |h|^2 + 2 o h.b`. With `A'A` as a triangle `R'R`, `|g|^2 = |R X|^2` takes half of what `A X` would.
//! A vector that is too long has both `w` and `o` multiplied by `f`, what is allowed over what there is: along that way the squared length is
//! convex, and so below its chord. Then both are cut towards 0. A weight alone goes on along the same way by that. Two of them leave it, and where
//! their parts are against each other the vector may grow by what is cut, less than a weight of 1 of each: it is `u (|g| + |h|)` at most, for `u`
//! what a weight of 1 is, and of such frames so much less is allowed. A record of `p` predictors whose squares add up to more than `p`, or which are no numbers, has
//! no vector but the shift.
//!
//! Rounding. The form above is computed in floats, of the predictors as they are. In units in which `A`'s greatest entry is about 1, `|y|` the root
//! of the sum of squares of all entries of `y`: `R'R` is made of `A'A` plus as much on the diagonal as the triangle's own error comes to. In single
//! precision a sum over the predictors by the weights `y` is off by less than `(p + 4) 2^-24 |y| sqrt p`, what rounding predictors to `X` and weights
//! below 2^-25 to 0 comes to included, and rows of sums with weights `R` by that with `|R|`, but twice where they are short of the smallest entries.
//! So `|R X|^2` is off by less than `(8 p + 32) 2^-24 |R|^2 p`. The rest, in double precision, is off by less than
//! `2^-42 (|A| sqrt p + |h| + |b| + 1)^2 (w^2 + o^2 + 1)`, of up to [`MOST`] parameters; four times that is added.

use super::frame::Frame;
use super::triangle::root;
use crate::mechanism::{FRACTION, GRADIENT_UNITS};

/// Lattice units of a vector of length 1: what is left is for the arithmetic's error.
pub const GRADIENT_SCALE: f64 = GRADIENT_UNITS as f64 * (1.0 - 1.0 / 1_048_576.0);
/// Binary digits of a rounded predictor behind the point.
pub(super) const DIGITS: i32 = 27;
/// Binary digits of the greatest entry of a rounded frame.
const ENTRY_DIGITS: i32 = 30;
/// Binary digits of a slope's weight where slope and greatest entry make a vector of length 1.
const WEIGHT_DIGITS: i32 = 20;
/// The greatest weight: a steeper slope counts as this.
pub(super) const MOST_WEIGHT: f64 = 8_388_608.0;
/// A frame's greatest entry lies between this and its reciprocal, or the frame is 0.
const LEAST_ENTRY: f64 = 1e-30;
/// Parameters at most; more have a proof of their own to find.
const MOST: usize = 128;

/// 2 to the power `n`, of a normal number.
fn power(n: i32) -> f64 {
    f64::from_bits(((1023 + n) as u64) << 52)
}

/// Whole numbers of a matrix, and what they are multiplied by: the greatest is at least 2^29 in magnitude and below 2^30.
struct Whole {
    entries: Vec<i64>,
    exponent: i32,
}

impl Whole {
    /// Zeros where an entry is no number, or the greatest out of range.
    fn of(entries: &[f64]) -> Self {
        let greatest =
            entries.iter().fold(0.0, |greatest: f64, x| if x.is_nan() { f64::INFINITY } else { greatest.max(x.abs()) });
        if !(LEAST_ENTRY..=LEAST_ENTRY.recip()).contains(&greatest) {
            return Self { entries: vec![0; entries.len()], exponent: 0 };
        }
        // The exponent of the number of one binade below which it lies.
        let binade = (greatest.to_bits() >> 52) as i32 - 1022;
        let exponent = binade - ENTRY_DIGITS;
        let scale = power(-exponent) * (GRADIENT_SCALE / GRADIENT_UNITS as f64);
        Self { entries: entries.iter().map(|x| (x * scale).round_ties_even() as i64).collect(), exponent }
    }

    /// What a slope is multiplied by to be a weight.
    fn weight(&self) -> f64 {
        power(self.exponent + ENTRY_DIGITS + WEIGHT_DIGITS)
    }

    /// Entries in units of about the greatest.
    fn units(&self) -> Vec<f64> {
        self.entries.iter().map(|x| *x as f64 * power(-ENTRY_DIGITS)).collect()
    }
}

/// A frame in whole numbers.
pub struct WholeFrame {
    /// `A`: per component a weight of each coefficient.
    rows: Whole,
    /// Per component its weight of the own parameter, where there is one.
    own: Whole,
    /// The shift, with the sums' digits.
    shift: Vec<i128>,
}

impl WholeFrame {
    /// Of a frame whose first parameters are coefficients; one more is the family's own.
    ///
    /// # Panics
    /// Where there are others, or more than 128, which is public.
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

    /// The sums of so many records' vectors, with [`FRACTION`] binary digits behind the point, of the sums of their weights times their
    /// predictors and of the own parameter's weights.
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

    /// What the weights of a vector come to along these, which are those of its components: per predictor that of a weight of 1, of the own
    /// parameter's, and the shift's.
    pub fn along(&self, components: &[f64]) -> Along {
        let (d, coefficients, unit) = (self.parameters(), self.coefficients(), power(DIGITS - FRACTION as i32));
        let sum = |of: &dyn Fn(usize) -> f64| (0..d).map(|k| components[k] * of(k)).sum::<f64>();
        Along {
            predictors: (0..coefficients).map(|j| sum(&|k| self.rows.entries[k * coefficients + j] as f64 * unit)).collect(),
            own: sum(&|k| self.own.entries.get(k).map_or(0.0, |h| *h as f64 * unit)),
            shift: sum(&|k| self.shift[k] as f64 * power(-(FRACTION as i32))),
        }
    }

    /// How far a record's vector is from what it stands for at most, along these weights of its components: by the rounding of its slopes, its
    /// predictors and the frame.
    pub fn rounding(&self, components: &[f64]) -> f64 {
        let along = self.along(components);
        let all: f64 = components.iter().map(|w| w.abs()).sum();
        let of_predictors: f64 = along.predictors.iter().map(|v| v.abs()).sum();
        // Half of a weight, and of an entry of the frame, and half of a predictor's last digit times the greatest weight.
        let entry = 0.5 * MOST_WEIGHT * power(DIGITS - FRACTION as i32);
        let predictor = 0.5 * MOST_WEIGHT * power(-DIGITS);
        (0.5 + predictor) * of_predictors + 0.5 * along.own.abs() + entry * (self.coefficients() + 1) as f64 * all
    }
}

/// A frame with the public constants that lengths are measured by.
pub struct LatticeFrame {
    pub(super) whole: WholeFrame,
    /// What the slopes are multiplied by to be weights.
    pub(super) weights: [f64; 2],
    /// `R`, row after row; then `2 A'b`, and with an own parameter `2 A'h`.
    rows: Vec<Vec<f64>>,
    /// What a weight is in the units of these.
    pub(super) unit: f64,
    /// `|h|^2` with its slack, and `2 h.b`.
    pub(super) of_own: [f64; 2],
    /// The slack of `|g|^2`, and of the whole.
    pub(super) slack: [f64; 2],
    /// The greatest squared length beyond the shift's.
    pub(super) room: f64,
    /// The same for a vector that is shortened, whose weights are cut to whole numbers after that.
    pub(super) room_if_cut: f64,
    /// How far a vector moves by the rounding of its weights at most.
    rounding: f64,
}

impl LatticeFrame {
    /// As [`WholeFrame::new`].
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
        let crossing = 2.0 * (terms + 4.0) * power(-24) * of_crossed * terms.sqrt();
        let longest = (squares(&units) * terms).sqrt() + squares(&h).sqrt() + squares(&b).sqrt() + 1.0;
        let slack = power(-40) * longest * longest + crossing;
        let most = 1.0 - ((d as f64).sqrt() + 2.0) / GRADIENT_UNITS as f64;
        let room = most * most - squares(&b) * (1.0 + power(-40));
        // Of a vector no longer than 1, and one that is added to it.
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

    /// How much wider the frame is to be so that no vector of length 1 is shortened, its slopes no greater than these: by what is added to its
    /// squared length, which is off by as much itself, and where a weight is held to the greatest.
    pub fn widened(&self, most: [f64; 2]) -> f64 {
        let [w, o] = [0, 1].map(|j| most[j] * self.weights[j]);
        // A family without a parameter of its own may have a slope in it all the same, whose weight counts for nothing.
        let greatest = if self.whole.own.entries.is_empty() { w } else { w.max(o) };
        // In a wider frame the weights' unit is up to twice as fine for the entries.
        let held = if greatest > MOST_WEIGHT { 2.0 * greatest / MOST_WEIGHT } else { 1.0 };
        let [w, o] = [w, o].map(|weight| weight.min(MOST_WEIGHT) * self.unit);
        let slack = w * w * self.slack[0] + (o * o + 1.0) * self.slack[1];
        let squares = (1.0 + self.rounding) * (1.0 + self.rounding) + 2.0 * slack;
        held * squares.sqrt()
    }

    /// What sums over a record's predictors are taken with: first the rows of `R`, and then twice the product with the shift, and with the own
    /// parameter's part.
    pub(super) fn rows(&self) -> (&[Vec<f64>], &[Vec<f64>]) {
        self.rows.split_at(self.whole.coefficients())
    }
}

/// See [`WholeFrame::along`].
pub struct Along {
    /// The product with the predictors.
    pub predictors: Vec<f64>,
    /// The product with the own parameter's part.
    pub own: f64,
    /// The product with the shift.
    pub shift: f64,
}

/// The shift in units of [`GRADIENT_UNITS`], no longer than what a vector of length 1 is; 0 where it is no number.
fn held_shift(shift: &[f64]) -> Vec<f64> {
    let length = shift.iter().map(|b| b * b).sum::<f64>().sqrt();
    let scale = GRADIENT_SCALE / GRADIENT_UNITS as f64;
    let scale = if length > 1.0 { scale / length } else { scale };
    if length.is_finite() { shift.iter().map(|b| b * scale).collect() } else { vec![0.0; shift.len()] }
}

#[cfg(test)]
#[path = "tests/lattice_frame.rs"]
mod tests;
