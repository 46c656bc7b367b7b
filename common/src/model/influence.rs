//! Bounded influence: weights by a record's predictors and clipped residuals, by which each record's score and information stay
//! within a public ball whatever its predictors are.
//!
//! At a public point, let `z = sqrt(I) x` be a record's predictors times the root of its Fisher information, and `v = T z` their
//! image in a public frame `T`. With `r = |v|`, the record has the weight `w = min(1, 1/r, R/r^2)`. Its score is `psi w v`, where
//! `psi` is its standardised residual, within `[-c, c]`. Its information is `w kappa v v'`, where `kappa` is between 0 and 1. So the
//! score is no longer than `c`, and the trace of the information is at most `R`, for every `x`.
//!
//! The information may be taken half way to the answer, with the weights of the query's point: kappa is then
//! `-d psi / d eta` there, over the root of the information at the query's point, and at most 1.3. The sum of `w kappa^2 |v|^2`, one
//! number, is about the variance of the score of a binary outcome under the model, which has the squared weight.
//!
//! For a count, psi is the clipped residual less its expectation, and kappa is an expectation too; a [`SlopeTable`] in the query
//! states both. The score is then no longer than `c` plus the largest expectation of the table. A frame whose only entry is that of
//! the family's own parameter asks for the slope in its logarithm instead, clipped and centred likewise, or for the sum of its kappa.
//!
//! A weight is a function of the predictors alone. Under the model the score has expectation 0 whatever the frame is (Mallows 1975).

use super::slope_table::SlopeTable;
use crate::parameter::LEAST_MAGNITUDE;
use conclave_privacy::pass::frame::Frame;

/// The public numbers of a query of bounded influence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Influence<'a> {
    /// T: its rows map a record's predictors, times the root of its information, to the ball. It has no shift.
    frame: Frame<'a>,
    /// c, the limit of a standardised residual.
    pub(super) clip: f64,
    /// R, the limit of a weight times its squared length.
    pub(super) trace: f64,
    /// The point at whose linear predictor an information is taken, if that is not the query's point.
    pub(super) half_way: Option<&'a [f64]>,
    /// The expectation of psi before it is centred and kappa, for a count.
    pub(super) table: Option<SlopeTable<'a>>,
}

impl<'a> Influence<'a> {
    /// The greatest entry of a frame. With it, no weight, score or root of information that differs from 0 is subnormal: arithmetic on
    /// such numbers takes a time that depends on the record.
    pub const MOST_ENTRY: f64 = 1e9;
    /// The greatest clip.
    pub const MOST_CLIP: f64 = 1e3;
    /// The greatest R.
    pub const MOST_TRACE: f64 = 16.0;
    /// The greatest kappa half way to an answer. At the query's point itself it is 1.
    pub const MOST_HALF_WAY: f64 = 1.3;
    /// The greatest number of edges of a table of residuals or lengths.
    pub const MOST_EDGES: usize = 64;

    /// Returns the number of values that encode it: a frame, c and R.
    #[must_use]
    pub fn length(parameters: usize) -> usize {
        Frame::length(parameters) + 2
    }

    /// Reads it from the second part of a query: frame, c and R, and a table for a count. Returns `None` unless the number of values
    /// fits, the frame has no shift and entries of 0 or from [`LEAST_MAGNITUDE`] to [`Influence::MOST_ENTRY`] in magnitude,
    /// `0 < c <= 1000`, `1 <= R <= 16`, and the table fits c.
    #[must_use]
    pub fn new(numbers: &'a [f64], parameters: usize) -> Option<Self> {
        let (numbers, table) = numbers.split_at_checked(Self::length(parameters))?;
        let (frame, rest) = numbers.split_at(Frame::length(parameters));
        let (frame, clip, trace) = (Frame::new(frame, parameters)?, *rest.first()?, *rest.get(1)?);
        let fits = frame.shift().iter().all(|b| *b == 0.0)
            && frame.rows().iter().all(is_moderate)
            && (LEAST_MAGNITUDE..=Self::MOST_CLIP).contains(&clip)
            && (1.0..=Self::MOST_TRACE).contains(&trace);
        let influence = Self { frame, clip, trace, half_way: None, table: SlopeTable::new(table, clip) };
        (fits && (table.is_empty() || influence.table.is_some())).then_some(influence)
    }

    /// Reads it with the coordinates of a point half way to the answer, at whose linear predictor the information is taken. The weights
    /// remain those at the query's point. Returns `None` unless the first numbers fit [`Influence::new`] and the coordinates are as
    /// large as entries of a frame may be.
    #[must_use]
    pub fn half_way(numbers: &'a [f64], parameters: usize) -> Option<Self> {
        let (numbers, point) = numbers.split_at_checked(numbers.len().checked_sub(parameters)?)?;
        let fits = point.iter().all(is_moderate);
        Self::new(numbers, parameters).filter(|_| fits).map(|influence| Self { half_way: Some(point), ..influence })
    }

    /// Returns the frame.
    #[must_use]
    pub fn frame(&self) -> Frame<'a> {
        self.frame
    }

    /// Returns whether a table states the expectations of a count.
    #[must_use]
    pub fn has_table(&self) -> bool {
        self.table.is_some()
    }

    /// Returns the largest magnitude of psi.
    #[must_use]
    pub fn limit(&self) -> f64 {
        self.clip + self.table.map_or(0.0, |table| table.most_centre())
    }

    /// Returns whether the only entry of the frame is that of the family's own parameter.
    #[must_use]
    pub fn is_of_own(&self) -> bool {
        let entries = self.frame.rows();
        self.table.is_some() && entries.split_last().is_some_and(|(own, rest)| *own != 0.0 && rest.iter().all(|x| *x == 0.0))
    }

    /// Returns the factor by which the vectors of an information are shortened, so that rounding moves none beyond its limit.
    #[must_use]
    pub fn shortened(parameters: usize) -> f64 {
        1.0 - (parameters as f64).sqrt() / 65_536.0
    }

    /// Returns the weight of a record whose image has this squared length.
    #[must_use]
    #[inline(always)]
    pub fn weight(trace: f64, square: f64) -> f64 {
        1.0_f64.min(square.sqrt().recip()).min(trace / square)
    }
}

/// Returns whether a number is 0, or from [`LEAST_MAGNITUDE`] to [`Influence::MOST_ENTRY`] in magnitude.
fn is_moderate(number: &f64) -> bool {
    *number == 0.0 || (LEAST_MAGNITUDE..=Influence::MOST_ENTRY).contains(&number.abs())
}

#[cfg(test)]
#[path = "tests/influence.rs"]
mod tests;

#[cfg(test)]
#[path = "tests/influence_of_counts.rs"]
mod tests_of_counts;

#[cfg(test)]
#[path = "tests/influence_of_logistic.rs"]
mod tests_of_logistic;
