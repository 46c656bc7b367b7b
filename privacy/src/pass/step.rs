//! A step is a pair of points whose log likelihood ratio is summed over a shard.

use crate::mechanism::Sensitivity;

/// What of a step's ratios is summed over the units of privacy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Summed {
    /// The ratios: of each unit its part, clamped.
    #[default]
    Ratios,
    /// The units at which the clamp bites, each as 2^20 lattice units ([`crate::mechanism::QueryKind::COUNT_UNIT`]).
    Clipped,
    /// The squares of the units' clamped parts, in units of 1 / [`crate::mechanism::QueryKind::SQUARE_UNITS`] of the square of the clamp.
    Squares,
}

/// A step of one chain, and the public constants of what a unit of privacy contributes to its sum.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// theta, one value per parameter.
    pub from: &'a [f64],
    /// theta'.
    pub to: &'a [f64],
    /// What one unit's contribution is clamped to: the most that it adds, which is what is charged for.
    pub clamp: Sensitivity,
    /// What is taken off each record's log ratio before it is rounded and clamped; 0 where the model
    /// gives no centre.
    pub centre: f64,
    /// What of the ratios is summed.
    pub of: Summed,
    /// What each record's log ratio is multiplied by before that: the likelihood's power. 1 but for a
    /// tempered model, which sets it.
    pub power: f64,
}

impl<'a> Step<'a> {
    /// A step whose ratios are not centred.
    #[must_use]
    pub fn new(from: &'a [f64], to: &'a [f64], clamp: Sensitivity) -> Self {
        Self { from, to, clamp, centre: 0.0, of: Summed::Ratios, power: 1.0 }
    }
}
