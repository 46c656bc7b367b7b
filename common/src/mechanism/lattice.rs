//! The lattice: rounding, clamping, sensitivity and the sum that has no way out but through noise.

use serde::{Deserialize, Serialize};

use super::{MechanismError, NoiseDraw};

/// The lattice step: log likelihood ratios are counted in multiples of 2^-32.
pub const STEP: f64 = 1.0 / STEPS_PER_UNIT;

/// Lattice steps in one log-likelihood unit, 2^32. A power of two, so that multiplying by it is exact.
const STEPS_PER_UNIT: f64 = 4_294_967_296.0;

/// The largest clip or sensitivity, 2^50 lattice units (262,144 log-likelihood units).
///
/// Below it an integer in an `f64` is exact, and [`quantise`] may round by adding a constant.
pub const MAX_SENSITIVITY: u64 = 1 << 50;

/// Adding this to a number of magnitude at most 2^51 leaves a float whose unit in the last place is 1, so the addition itself rounds
/// to an integer, ties to even; the integer then stands in the low bits. 1.5 * 2^52.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// The owner's or the job's clip per record, in lattice units: 1 to 2^50.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Clip(u64);

impl Clip {
    /// The clip `B`, in log-likelihood units per record, rounded down to the lattice.
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

    /// The clip in lattice units.
    #[must_use]
    pub fn units(self) -> u64 {
        self.0
    }
}

/// The most that one record can contribute to a lattice sum, `K_t`, in lattice units: 1 to 2^50.
///
/// Replacing one record moves the sum by at most twice this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Sensitivity(u64);

impl Sensitivity {
    /// A sensitivity from lattice units.
    ///
    /// # Errors
    /// [`MechanismError::TooWide`] unless `1 <= units <= 2^50`.
    pub fn from_units(units: u64) -> Result<Self, MechanismError> {
        if (1..=MAX_SENSITIVITY).contains(&units) { Ok(Self(units)) } else { Err(MechanismError::TooWide(units as f64 * STEP)) }
    }

    /// Lattice units.
    #[must_use]
    pub fn units(self) -> u64 {
        self.0
    }

    /// Log-likelihood units.
    #[must_use]
    pub fn log_units(self) -> f64 {
        self.0 as f64 * STEP
    }
}

impl TryFrom<u64> for Sensitivity {
    type Error = MechanismError;
    fn try_from(units: u64) -> Result<Self, MechanismError> {
        Self::from_units(units)
    }
}

impl From<Sensitivity> for u64 {
    fn from(value: Sensitivity) -> u64 {
        value.0
    }
}

/// The sensitivity of one query: the smaller of the clip and the model's public bound, in lattice units and at least 1.
///
/// `bound` is the model's bound on one record's absolute log ratio, already rounded outward, `+inf` where the model has none; `clip`
/// is in log-likelihood units per record. Both are public, so the result is too.
///
/// # Errors
/// [`MechanismError::Clip`] for an unusable clip, [`MechanismError::Unbounded`] for a bound that is infinite (without a clip), negative
/// or not a number, [`MechanismError::TooWide`] for one above 2^50 lattice units (without a clip).
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

/// Whether a shard of `records` records can be summed at sensitivity `k_t`: `records * K_t < 2^62`.
///
/// Both are public. A party refuses a query that does not fit.
#[must_use]
pub fn sum_fits(records: u64, k_t: Sensitivity) -> bool {
    u128::from(records) * u128::from(k_t.units()) < 1 << 62
}

/// One record's contribution: `ratio / STEP` rounded half to even and clamped to `[-k_t, k_t]`; not-a-number gives 0.
///
/// `ratio` is in log-likelihood units, `k_t` in lattice units and an integer from 1 to 2^50. The function is odd, free of branches, and
/// depends on this record and on public values alone. The clamp is what privacy rests on: whatever a kernel computes, the result is
/// an integer within the sensitivity.
#[inline(always)]
#[must_use]
pub fn quantise(ratio: f64, k_t: f64) -> f64 {
    (clamp(ratio, k_t) + ROUNDER) - ROUNDER
}

/// [`quantise`] as an integer, in a form that every vector unit can add: the rounded integer is read off the low bits.
#[inline(always)]
#[must_use]
pub fn quantise_units(ratio: f64, k_t: f64) -> i64 {
    // No overflow: both bit patterns belong to numbers of one binade, and their difference is the rounded integer.
    ((clamp(ratio, k_t) + ROUNDER).to_bits() as i64).wrapping_sub(ROUNDER.to_bits() as i64)
}

/// Whether [`quantise`] cuts the ratio: it lies beyond the clamp. Not-a-number does not: that is a record which is left out, a row of
/// no declared level, and no clip is to blame for it. Free of branches.
#[inline(always)]
#[must_use]
pub fn beyond(ratio: f64, k_t: f64) -> bool {
    (ratio * STEPS_PER_UNIT).abs() > k_t
}

/// Puts the log ratios of one step on the lattice: what depends on the step alone is worked out once.
///
/// [`Quantiser::units`] of a ratio is [`quantise_units`] of `power * ratio - centre`, to a rounding where the power is not 1, and
/// [`Quantiser::beyond`] is [`beyond`] of it. Negating ratio and centre negates the integer exactly. Free of branches.
#[derive(Debug, Clone, Copy)]
pub struct Quantiser {
    scale: f64,
    centre: f64,
    k_t: f64,
    missing: f64,
}

impl Quantiser {
    /// What [`Quantiser::bits`] adds to every integer.
    pub(crate) const OFFSET: u64 = ROUNDER.to_bits();

    /// For ratios that are multiplied by `power`, less `centre` (log-likelihood units) and clamped at `k_t` lattice units, an integer from
    /// 1 to 2^50. Not-a-number counts as 0 lattice units or, `left_out`, as a ratio of 0: then what the centre takes off is in the
    /// sum, as it is of every other record.
    #[must_use]
    pub fn new(power: f64, centre: f64, k_t: f64, left_out: bool) -> Self {
        let centre = centre * STEPS_PER_UNIT;
        Self { scale: power * STEPS_PER_UNIT, centre, k_t, missing: if left_out { -centre } else { 0.0 } }
    }

    #[inline(always)]
    fn scaled(self, ratio: f64) -> f64 {
        let x = ratio.mul_add(self.scale, -self.centre);
        if x.is_nan() { self.missing } else { x }
    }

    /// The integer in the low bits of a float, plus [`Quantiser::OFFSET`]: a sum of so many has as many offsets to take off.
    #[inline(always)]
    pub(crate) fn bits(self, ratio: f64) -> u64 {
        let x = self.scaled(ratio);
        let x = if x > self.k_t { self.k_t } else { x };
        let x = if x < -self.k_t { -self.k_t } else { x };
        // At most 2^50 in magnitude: the sum is an integer, rounded half to even, in one binade.
        (x + ROUNDER).to_bits()
    }

    /// The lattice units of a record's ratio, within the clamp.
    #[inline(always)]
    #[must_use]
    pub fn units(self, ratio: f64) -> i64 {
        (self.bits(ratio) as i64).wrapping_sub(Self::OFFSET as i64)
    }

    /// Whether the clamp cuts the ratio.
    #[inline(always)]
    #[must_use]
    pub fn beyond(self, ratio: f64) -> bool {
        self.scaled(ratio).abs() > self.k_t
    }
}

/// Scales to lattice units and clamps. Clamping before rounding is the same as after it, since `k_t` is an integer.
#[inline(always)]
fn clamp(ratio: f64, k_t: f64) -> f64 {
    let x = ratio * STEPS_PER_UNIT;
    let x = if x > k_t { k_t } else { x };
    let x = if x < -k_t { -k_t } else { x };
    if x.is_nan() { 0.0 } else { x }
}

/// Un-noised sums that are asked for again and again, as Algorithm 3 does: computed once, and released under fresh noise and a charge
/// each time. As closed as [`LatticeSum`] is.
#[derive(Default)]
pub struct SumCache(Vec<i64>);

impl SumCache {
    /// Keeps these sums.
    #[must_use]
    pub fn new(sums: Vec<LatticeSum>) -> Self {
        Self(sums.into_iter().map(|sum| sum.0).collect())
    }

    /// One of them, to be noised; `None` beyond the last.
    #[must_use]
    pub fn sum(&self, at: usize) -> Option<LatticeSum> {
        self.0.get(at).copied().map(LatticeSum)
    }
}

/// The un-noised sum of a shard, in lattice units.
///
/// It cannot be printed, compared, copied or serialised: the only way out is to add noise to it.
pub struct LatticeSum(i64);

impl LatticeSum {
    /// Wraps a sum. Only kernels make one.
    pub(crate) fn new(units: i64) -> Self {
        Self(units)
    }

    /// The sum of two parts of a shard (saturating, and exact wherever [`sum_fits`] holds for the whole).
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The release: the sum plus noise, saturating at the ends of `i64` (post-processing of the exact sum).
    ///
    /// The draw is used up. Its scale must be the one that was charged: the caller draws for a charge, never for a sum.
    #[must_use]
    pub fn add_noise(self, noise: NoiseDraw) -> i64 {
        self.0.saturating_add(noise.into_units())
    }

    /// The sum without noise, for tests on made-up records alone: no shipped crate enables `test-util`.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn open_for_test(self) -> i64 {
        self.0
    }

    /// Any number as a sum, for tests that plant a broken kernel.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn from_units_for_test(units: i64) -> Self {
        Self(units)
    }
}
