//! The sensitivity, which bounds the movement of a lattice sum by the model's public bound and the job's clip.

use super::MechanismError;
use super::clamp::MAX_UNITS;
use super::step::{STEP, STEPS_PER_UNIT};

/// The largest clip or sensitivity, 2^50 lattice units (262,144 log-likelihood units). It is the limit of a clamp.
pub const MAX_SENSITIVITY: u64 = MAX_UNITS;

/// The owner's or the job's clip per record, in lattice units: 1 to 2^50.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Clip(u64);

impl Clip {
    /// Creates the clip `B`, in log-likelihood units per record, rounded down to the lattice.
    ///
    /// # Errors
    /// [`MechanismError::Clip`] unless `2^-32 <= B <= 2^18`.
    pub fn new(log_units: f64) -> Result<Self, MechanismError> {
        let units = (log_units * STEPS_PER_UNIT).floor();
        if units >= 1.0 && units <= MAX_SENSITIVITY as f64 {
            Ok(Self(units as u64))
        } else {
            Err(MechanismError::Clip(log_units))
        }
    }

    /// Returns the clip in lattice units.
    #[must_use]
    pub fn units(self) -> u64 {
        self.0
    }
}

/// The sensitivity `K_t` by which a release is charged, in lattice units: 1 to 2^50.
///
/// For a ratio, a remainder and a gradient, also over a sample, it is the largest contribution of one unit of privacy.
/// Replacing a unit then moves the sum by at most `2 K_t`, and adding or removing one by at most `K_t`. For a choice it is the
/// largest contribution of one unit to a log weight. For the other kinds it is the largest distance between the sums of
/// neighbours. Vectors are measured in L2.
///
/// Proof: `docs/explanation/proofs.md`, section 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sensitivity(u64);

impl Sensitivity {
    /// Creates a sensitivity from lattice units.
    ///
    /// # Errors
    /// [`MechanismError::TooWide`] unless `1 <= units <= 2^50`.
    pub fn from_units(units: u64) -> Result<Self, MechanismError> {
        if (1..=MAX_SENSITIVITY).contains(&units) { Ok(Self(units)) } else { Err(MechanismError::TooWide(units as f64 * STEP)) }
    }

    /// Returns the sensitivity in lattice units.
    #[must_use]
    pub fn units(self) -> u64 {
        self.0
    }

    /// Returns the sensitivity in log-likelihood units.
    #[must_use]
    pub fn log_units(self) -> f64 {
        self.0 as f64 * STEP
    }
}

/// Returns the sensitivity of one query: the smaller of the clip and the model's public bound, in lattice units and at least 1.
///
/// `bound` is the model's bound on one record's absolute log ratio, already rounded outward; `+inf` if the model has none. `clip`
/// is in log-likelihood units per record. Both are public, so the result is public.
///
/// Proof: `docs/explanation/proofs.md`, section 1.
///
/// # Errors
/// [`MechanismError::Clip`] for a clip out of range. [`MechanismError::Unbounded`] for a bound that is negative, not a number, or
/// infinite without a clip. [`MechanismError::TooWide`] for a bound above 2^50 lattice units without a clip.
pub fn sensitivity(bound: f64, clip: Option<f64>) -> Result<Sensitivity, MechanismError> {
    if bound.is_nan() || bound < 0.0 {
        return Err(MechanismError::Unbounded(bound));
    }
    let bound_units = (bound * STEPS_PER_UNIT).ceil().max(1.0);
    let limit = match clip {
        Some(log_units) => Clip::new(log_units)?.units() as f64,
        None if bound.is_infinite() => return Err(MechanismError::Unbounded(bound)),
        None if bound_units > MAX_SENSITIVITY as f64 => return Err(MechanismError::TooWide(bound)),
        None => MAX_SENSITIVITY as f64,
    };
    Ok(Sensitivity(bound_units.min(limit) as u64))
}

/// Returns whether a shard of `records` records can be summed at sensitivity `k_t`: `records * K_t < 2^62`.
///
/// Both are public. A party refuses a query that does not fit.
#[must_use]
pub fn sum_fits(records: u64, k_t: Sensitivity) -> bool {
    u128::from(records) * u128::from(k_t.units()) < 1 << 62
}
