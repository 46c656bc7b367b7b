//! Leverage weights: chains on a likelihood in which records with unusual predictors count less.
//!
//! Let `v = T x` be the image of a record's predictors in a public frame `T`, and `r = |v|`. The record has the weight
//! `w = min(1, 1/r, R/r²)`, that of [`Influence`], and its log likelihood is `w log p(y | x)`. The weight depends on neither the
//! outcome nor the parameters, so a chain on such ratios has the posterior `prior prod p^w` as its target.
//!
//! A query carries the frame `F` in which its gradient is released, and `R`. `T` is `m F`, where `m` is the factor of
//! [`LatticeFrame::widened`] for slopes of at most 1. So the vector of a record, `w (y - p) F x`, is at most `1/m` long, and none is
//! shortened. Ratios, gradients and remainders with the same numbers have the same bits of `w`.
//!
//! # Bounds
//! Let a step move the coefficients by `a`, and let `s` be any vector, `e = a - T's`. Then `x'a = v's + x'e`. With `w |v|² <= R`,
//! `sqrt(w) |x'a| <= sqrt(R) |s| + sup |x'e|` over the declared columns; with `w |v| <= 1`, `w |x'a| <= |s| + sup |x'e|`. `s` is the solution of `T's = a` up to rounding, which `e` accounts for. Negating a step negates `s` and
//! `e` bit for bit.

use super::influence::Influence;
use super::linear_predictor::LinearPredictor;
use super::weighted::WeightedSum;
use crate::parameter::LEAST_MAGNITUDE;
use conclave_privacy::pass::frame::Frame;
use conclave_privacy::pass::hold::Sloped;
use conclave_privacy::pass::lattice_frame::LatticeFrame;
use conclave_privacy::pass::small_tile::{SMALL_TILE, TileLane};
use conclave_privacy::pass::tile::Tile;

/// Factor by which a bound is raised to cover the rounding of its own arithmetic.
const OUTWARD: f64 = 1.0 + 1e-12;

/// The public numbers of leverage weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Leverage<'a> {
    /// F
    frame: Frame<'a>,
    /// m
    widening: f64,
    /// R
    trace: f64,
}

impl<'a> Leverage<'a> {
    /// The greatest entry of F. With it, the weight of a slope of at most 1 in an integer vector is not limited.
    pub const MOST_ENTRY: f64 = 7.9;
    /// The greatest m.
    pub const MOST_WIDENING: f64 = 1.1;

    /// Returns the number of values that encode it: a frame and R.
    #[must_use]
    pub fn length(parameters: usize) -> usize {
        Frame::length(parameters) + 1
    }

    /// Reads it from the second part of a gradient query. Returns `None` unless the number of values fits; see [`Self::of`].
    #[must_use]
    pub fn new(numbers: &'a [f64], parameters: usize) -> Option<Self> {
        if numbers.len() != Self::length(parameters) {
            return None;
        }
        let (frame, rest) = numbers.split_at(Frame::length(parameters));
        Self::of(Frame::new(frame, parameters)?, *rest.first()?)
    }

    /// Splits the second part of a ratio's query into a point and the weights that follow it. Returns `None` unless the number of values
    /// fits; see [`Self::of`].
    #[must_use]
    pub fn after_point(numbers: &'a [f64], parameters: usize) -> Option<(&'a [f64], Self)> {
        let (point, rest) = numbers.split_at_checked(parameters)?;
        Some((point, Self::new(rest, parameters)?))
    }

    /// Creates the weights of a frame and an R. Returns `None` unless the frame has no shift, its entries are 0 or from
    /// [`LEAST_MAGNITUDE`] to [`Self::MOST_ENTRY`] in magnitude, m is at most [`Self::MOST_WIDENING`], and
    /// `1 <= R <= `[`Influence::MOST_TRACE`].
    #[must_use]
    pub fn of(frame: Frame<'a>, trace: f64) -> Option<Self> {
        let is_moderate = |entry: &f64| *entry == 0.0 || (LEAST_MAGNITUDE..=Self::MOST_ENTRY).contains(&entry.abs());
        let fits = frame.shift().iter().all(|b| *b == 0.0)
            && frame.rows().iter().all(is_moderate)
            && (1.0..=Influence::MOST_TRACE).contains(&trace);
        if !fits {
            return None;
        }
        let widening = Self::widening(frame);
        (widening <= Self::MOST_WIDENING).then_some(Self { frame, widening, trace })
    }

    /// Returns m.
    #[must_use]
    pub fn widening(frame: Frame<'_>) -> f64 {
        LatticeFrame::new(frame, frame.parameters()).widened([1.0, 0.0])
    }

    /// Returns F.
    #[must_use]
    pub fn frame(&self) -> Frame<'a> {
        self.frame
    }

    /// Returns the rows of T, one after the other.
    fn rows(&self) -> Vec<f64> {
        self.frame.rows().iter().map(|entry| self.widening * entry).collect()
    }

    /// Returns the numbers that identify a gradient with these weights at a point in a cache, beside those of the frame.
    pub(super) fn key(&self, at: &[f64]) -> Vec<f64> {
        at.iter().copied().chain([self.trace]).collect()
    }

    /// Returns the images of a record's predictors, and R.
    pub(super) fn weigher(&self, predictor: &LinearPredictor) -> Weigher {
        let rows = self.rows();
        Weigher { lengths: SquaredLengths::new(predictor, rows.chunks(self.frame.parameters())), trace: self.trace }
    }

    /// Returns the bound of `sqrt(w) |x'a|` over all records, for a step `a` of the coefficients. `sup` returns the
    /// least and the greatest value of a weighted sum of predictors over the declared columns, each of which is at most 1.
    pub(super) fn movement(&self, step: &[f64], sup: impl Fn(&[f64]) -> (f64, f64)) -> f64 {
        let (length, beside) = self.parts(step, sup);
        (self.trace.sqrt() * length + beside) * OUTWARD
    }

    /// Returns the bound of `w |x'a|` over all records, as [`Self::movement`].
    pub(super) fn reach(&self, step: &[f64], sup: impl Fn(&[f64]) -> (f64, f64)) -> f64 {
        let (length, beside) = self.parts(step, sup);
        (length + beside) * OUTWARD
    }

    /// Returns `|s|`, and the bound of `|x'e|` over the declared columns.
    fn parts(&self, step: &[f64], sup: impl Fn(&[f64]) -> (f64, f64)) -> (f64, f64) {
        let (order, rows) = (step.len(), self.rows());
        let entry = |i: usize, j: usize| rows[i * order + j];
        let s = solve(order, |i, j| entry(j, i), step).unwrap_or_else(|| vec![0.0; order]);
        let along = |j: usize, of: fn(f64) -> f64| (0..order).map(|k| of(entry(k, j) * s[k])).sum::<f64>();
        let rest: Vec<f64> = (0..order).map(|j| step[j] - along(j, |x| x)).collect();
        // The rounding of each component of the rest.
        let size = |j: usize| step[j].abs() + along(j, f64::abs);
        let rounding = (order + 2) as f64 * f64::EPSILON * (0..order).map(size).sum::<f64>();
        let (low, high) = sup(&rest);
        (s.iter().map(|x| x * x).sum::<f64>().sqrt(), high.max(-low) + rounding)
    }
}

/// Solves a system of linear equations by elimination; `None` if the matrix is singular.
fn solve(order: usize, entry: impl Fn(usize, usize) -> f64, right: &[f64]) -> Option<Vec<f64>> {
    let mut rows: Vec<Vec<f64>> = (0..order).map(|i| (0..order).map(|j| entry(i, j)).chain([right[i]]).collect()).collect();
    for k in 0..order {
        let pivot = (k..order).max_by(|a, b| rows[*a][k].abs().total_cmp(&rows[*b][k].abs()))?;
        rows.swap(k, pivot);
        let (upper, lower) = rows.split_at_mut(k + 1);
        for row in lower {
            let factor = row[k] / upper[k][k];
            row[k..].iter_mut().zip(&upper[k][k..]).for_each(|(x, above)| *x -= factor * above);
        }
    }
    let mut solution = vec![0.0; order];
    for k in (0..order).rev() {
        let known: f64 = (k + 1..order).map(|j| rows[k][j] * solution[j]).sum();
        solution[k] = (rows[k][order] - known) / rows[k][k];
    }
    solution.iter().all(|x| x.is_finite()).then_some(solution)
}

/// The squared lengths of records' images in a frame.
pub(super) struct SquaredLengths {
    /// The components of an image.
    pub(super) images: Vec<WeightedSum>,
}

impl SquaredLengths {
    /// Creates them from the rows of a frame.
    pub(super) fn new<'r>(predictor: &LinearPredictor, rows: impl Iterator<Item = &'r [f64]>) -> Self {
        Self { images: rows.map(|row| predictor.weighted_without_offset(row)).collect() }
    }

    /// Fills in the squared length of each of `rows`.
    #[inline(always)]
    pub(super) fn fill(&self, rows: &Tile<'_>, image: &mut [f64], squares: &mut [f64]) {
        squares.fill(0.0);
        for one in &self.images {
            one.fill(rows, image);
            squares.iter_mut().zip(&*image).for_each(|(square, part)| *square += part * part);
        }
    }
}

/// Computes the weights of a block's records.
pub(super) struct Weigher {
    lengths: SquaredLengths,
    trace: f64,
}

impl Weigher {
    /// Fills in the weights of a small tile's records.
    #[inline(always)]
    pub(super) fn fill(&self, rows: &Tile<'_>, weights: &mut [f64]) {
        let mut image = [0.0; SMALL_TILE];
        self.lengths.fill(rows, &mut image[..weights.len()], weights);
        weights.iter_mut().for_each(|weight| *weight = Influence::weight(self.trace, *weight));
    }
}

/// Slopes times the weights of the records, if they have any.
pub(super) struct Weighed<S> {
    pub(super) slopes: S,
    pub(super) weigher: Option<Weigher>,
}

impl<S: Sloped> Sloped for Weighed<S> {
    #[inline(always)]
    fn slopes(&self, rows: &Tile<'_>, slopes: &mut [TileLane<f64>; 2]) {
        self.slopes.slopes(rows, slopes);
        if let Some(weigher) = &self.weigher {
            let mut weights = [0.0; SMALL_TILE];
            weigher.fill(rows, &mut weights[..rows.len()]);
            slopes[0].0.iter_mut().zip(&weights[..rows.len()]).for_each(|(slope, weight)| *slope *= weight);
        }
    }
}

#[cfg(test)]
#[path = "tests/leverage.rs"]
pub(super) mod tests;
