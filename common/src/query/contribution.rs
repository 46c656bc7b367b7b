//! A contribution is what one unit of privacy adds to the sum of a step: the public constants that price it.

use crate::job::{ClipRule, PrivacySpec};
use crate::model::Model;
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::{MechanismError, Sensitivity, sensitivity};

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
/// A centre is used where the number of records is public, which is where rows are protected against
/// replacement, and where the clip leaves the model's half range whole. A tighter clip holds each record's log
/// ratio around 0 instead: the middle of what is possible may lie far from where records are, and a clip around
/// it would cut nearly all of them, and a row that is left out, too. The sensitivity is symmetric in the step
/// and the centre antisymmetric, bit for bit.
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
    let clip = clip(privacy, from, to);
    if is_centred(unit) {
        let half_range = model.half_range(from, to);
        let clipped = sensitivity(half_range, clip)?;
        if clip.is_none() || sensitivity(half_range, None) == Ok(clipped) {
            return Ok(Contribution { sensitivity: unit.sensitivity(clipped)?, centre: model.centre(from, to) });
        }
    }
    let per_record = record_bound(model, privacy, from, to)?;
    Ok(Contribution { sensitivity: unit.sensitivity(per_record)?, centre: 0.0 })
}

/// What one record contributes at most to the sum of the step `from` to `to`, where nothing is taken off its log ratio.
///
/// # Errors
/// As [`sensitivity`].
pub fn record_bound(model: &dyn Model, privacy: &PrivacySpec, from: &[f64], to: &[f64]) -> Result<Sensitivity, MechanismError> {
    sensitivity(model.bound(from, to), clip(privacy, from, to))
}

/// The explicit clip of one record's log ratio, in log-likelihood units.
fn clip(privacy: &PrivacySpec, from: &[f64], to: &[f64]) -> Option<f64> {
    privacy.clip.map(|clip| match clip {
        ClipRule::PerRecord(log_units) => log_units,
        ClipRule::Slope(slope) => slope * distance(from, to),
    })
}

/// What one unit contributes at most to the sum of the step `from` to `to` over a sample of the units, and then what is charged for it:
/// the same in all releases of a block, and so the clip alone, which no step's own bound lowers. `None` for a job without a clip per record.
///
/// No centre is taken off: how many of the units are in a sample is hidden, so nobody could add it back.
///
/// # Errors
/// As [`sensitivity`] and [`PrivacyUnit::sensitivity`].
pub(super) fn sampled_contribution(
    model: &dyn Model,
    privacy: &PrivacySpec,
    unit: PrivacyUnit,
    from: &[f64],
    to: &[f64],
) -> Result<Option<[Sensitivity; 2]>, MechanismError> {
    let Some(ClipRule::PerRecord(clip)) = privacy.clip else { return Ok(None) };
    let held = |bound| unit.sensitivity(sensitivity(bound, Some(clip))?);
    Ok(Some([held(model.bound(from, to))?, held(f64::INFINITY)?]))
}

/// The centre that a party of public record count takes off each record's log ratio, and that its receiver adds
/// back; 0 where the step has no price.
#[must_use]
pub fn centre(model: &dyn Model, privacy: &PrivacySpec, from: &[f64], to: &[f64]) -> f64 {
    contribution(model, privacy, PrivacyUnit::row(Adjacency::Replace), from, to).map_or(0.0, |part| part.centre)
}

/// Whether a party that protects `unit` may take the model's centre off each record's log ratio: where the number of
/// records is public.
#[must_use]
pub fn is_centred(unit: PrivacyUnit) -> bool {
    unit == PrivacyUnit::row(Adjacency::Replace)
}

/// Euclidean length of the step, the same both ways.
fn distance(from: &[f64], to: &[f64]) -> f64 {
    from.iter().zip(to).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}
