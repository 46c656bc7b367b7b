//! The contribution of one unit of privacy to the sum of a step: the public constants that price it.

use crate::job::{ClipRule, PrivacySpec};
use crate::model::{Leverage, Model, RatioRange};
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::{MechanismError, Sensitivity, sensitivity};

/// The public constants of one query at one party. Both sides compute them with this code.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contribution {
    /// The most that one unit of privacy contributes, lattice units.
    pub sensitivity: Sensitivity,
    /// The constant subtracted from each record's log ratio before rounding and clamping. The receiver adds it back once per
    /// record.
    pub centre: f64,
}

/// Returns the bound and the centre of one unit's contribution to the sum of the step `from` to `to`, at a party that protects
/// `unit`.
///
/// A centre is used if the number of records is public, which holds where rows are protected against replacement, and if the clip
/// does not narrow the model's half range. A tighter clip is centred on 0 instead. The middle of the possible range may lie far
/// from the actual records, and a clip around it would cut nearly all of them, inert rows included. The sensitivity is symmetric
/// in the step and the centre antisymmetric, bit for bit.
///
/// Leverage weights may follow `to`. Each record's log ratio then has its weight as a factor, which is at most 1: the weighted ratio
/// lies between 0 and the ratio, and within the reach of the frame.
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
    if let Some((to, leverage)) = Leverage::after_point(to, from.len()) {
        return weighted_contribution(model, unit, [from, to], &leverage);
    }
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

/// Returns the same for records with leverage weights, whose chains have no clip.
fn weighted_contribution(
    model: &dyn Model,
    unit: PrivacyUnit,
    [from, to]: [&[f64]; 2],
    leverage: &Leverage<'_>,
) -> Result<Contribution, MechanismError> {
    let reach = model.scores().and_then(|scores| scores.leverage_reach([from, to], leverage)).unwrap_or(f64::INFINITY);
    let range = model.ratios(from, to).or_none().and(RatioRange::of([-reach, reach]));
    let (bound, centre) = if is_centred(unit) { (range.half_range(), range.centre()) } else { (range.bound(), 0.0) };
    Ok(Contribution { sensitivity: unit.sensitivity(sensitivity(bound, None)?)?, centre })
}

/// Returns the largest contribution of one record to the sum of the step `from` to `to`, if no centre is subtracted.
///
/// # Errors
/// As [`sensitivity`].
pub fn record_bound(model: &dyn Model, privacy: &PrivacySpec, from: &[f64], to: &[f64]) -> Result<Sensitivity, MechanismError> {
    sensitivity(model.bound(from, to), clip(privacy, from, to))
}

/// Returns the explicit clip of one record's log ratio, in log-likelihood units.
fn clip(privacy: &PrivacySpec, from: &[f64], to: &[f64]) -> Option<f64> {
    privacy.clip.map(|clip| match clip {
        ClipRule::PerRecord(log_units) => log_units,
        ClipRule::Slope(slope) => slope * distance(from, to),
    })
}

/// Returns the largest contribution of one unit to the sum of the step `from` to `to` over a sample of the units, and the
/// sensitivity that is charged for it. `None` for a job without a clip per record.
///
/// The charged sensitivity is the same for all releases of a block, so it is the clip alone; a step's own bound does not lower
/// it. No centre is subtracted: the number of sampled units is hidden, so nobody could add it back.
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

/// Returns the centre that a party with a public record count subtracts from each record's log ratio, and that the receiver adds
/// back. 0 if the step has no price.
#[must_use]
pub fn centre(model: &dyn Model, privacy: &PrivacySpec, from: &[f64], to: &[f64]) -> f64 {
    contribution(model, privacy, PrivacyUnit::row(Adjacency::Replace), from, to).map_or(0.0, |part| part.centre)
}

/// Returns whether a party that protects `unit` may subtract the model's centre from each record's log ratio: the number of
/// records must be public.
#[must_use]
pub fn is_centred(unit: PrivacyUnit) -> bool {
    unit == PrivacyUnit::row(Adjacency::Replace)
}

/// Returns the Euclidean length of the step, identical in both directions.
fn distance(from: &[f64], to: &[f64]) -> f64 {
    from.iter().zip(to).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}
