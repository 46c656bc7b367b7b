//! A step: a pair of points whose log likelihood ratio is summed over a shard.

use crate::mechanism::Sensitivity;

/// The function of the ratios that is summed over the units of privacy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Summed {
    /// The clamped ratios.
    #[default]
    Ratios,
    /// The number of clipped units, each as 2^20 lattice units ([`crate::mechanism::QueryKind::COUNT_UNIT`]).
    Clipped,
    /// The squares of the clamped ratios, in units of 1 / [`crate::mechanism::QueryKind::SQUARE_UNITS`] of the squared clamp.
    Squares,
}

/// A step of one chain, with the public constants of a unit's contribution to its sum.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// theta, one value per parameter.
    pub from: &'a [f64],
    /// theta'.
    pub to: &'a [f64],
    /// The clamp on one unit's contribution, by which the release is charged.
    pub clamp: Sensitivity,
    /// The constant subtracted from each record's log ratio before rounding and clamping; 0 if the model has no centre.
    pub centre: f64,
    /// The function of the ratios that is summed.
    pub of: Summed,
    /// The factor on each record's log ratio, applied first: the power of the likelihood. It is 1 except in a tempered model.
    pub power: f64,
}

impl<'a> Step<'a> {
    /// Creates a step whose ratios are not centred.
    #[must_use]
    pub fn new(from: &'a [f64], to: &'a [f64], clamp: Sensitivity) -> Self {
        Self { from, to, clamp, centre: 0.0, of: Summed::Ratios, power: 1.0 }
    }
}
