//! A contribution is what one unit of privacy adds to the sum of a step: the public constants that price it.

use crate::accounting::{Adjacency, PrivacyUnit};
use crate::job::{ClipRule, PrivacySpec};
use crate::mechanism::{MechanismError, Sensitivity, sensitivity};
use crate::model::Model;

/// The public constants of one query at one party. Both sides compute them with this code.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contribution {
    /// The most that one unit of privacy contributes, lattice units.
    pub sensitivity: Sensitivity,
    /// What each record's log ratio is taken from before it is rounded and clamped. The receiver adds it back once per record.
    pub centre: f64,
}

/// What one unit contributes to the sum of the step `from` to `to`, at a party that protects `unit`.
///
/// A centre is used where the number of records is public: where rows are protected against replacement. The sensitivity is symmetric
/// in the step and the centre antisymmetric, bit for bit.
///
/// # Errors
/// As [`sensitivity`] and [`PrivacyUnit::sensitivity`].
pub fn contribution(
    model: &dyn Model,
    privacy: &PrivacySpec,
    unit: PrivacyUnit,
    from: &[f64],
    to: &[f64],
) -> Result<Contribution, MechanismError> {
    let (bound, centre) =
        if is_centred(unit) { (model.half_range(from, to), model.centre(from, to)) } else { (model.bound(from, to), 0.0) };
    let clip = privacy.clip.map(|clip| match clip {
        ClipRule::PerRecord(log_units) => log_units,
        ClipRule::Slope(slope) => slope * distance(from, to),
    });
    let per_record = sensitivity(bound, clip)?;
    Ok(Contribution { sensitivity: unit.sensitivity(per_record)?, centre })
}

/// Whether a party that protects `unit` takes the model's centre off each record's log ratio: where the number of records is public.
#[must_use]
pub fn is_centred(unit: PrivacyUnit) -> bool {
    unit == PrivacyUnit::row(Adjacency::Replace)
}

/// Euclidean length of the step, the same both ways.
fn distance(from: &[f64], to: &[f64]) -> f64 {
    from.iter().zip(to).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}
