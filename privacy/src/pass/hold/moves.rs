//! The largest movement of a sum by one unit of privacy, given by the set that its contribution is held to.

use crate::accounting::{Adjacency, PrivacyUnit};
use crate::mechanism::{GRADIENT_UNITS, MechanismError, QueryKind, Sensitivity};
use crate::pass::shard::Block;

/// Lattice units of 1 in a record's vector, 2^16: a product is in units of 2^-32.
pub(super) const UNIT: u64 = 1 << 16;

/// The largest L2 distance between the sums of neighbours, in lattice units, if one unit is replaced and if one is added or
/// removed. A distance beyond 64 bits counts as the greatest integer.
///
/// Each function states the theorem for one admissible set. Proofs: `docs/explanation/design.md`, section 2. A unit with
/// several records contributes the sum of their vectors. By the triangle inequality, the distances of vectors are multiplied by
/// the number of records. An interval already bounds the whole unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moves {
    replaced: u64,
    added: u64,
    /// The integer closest to zero that a component may have.
    closest: i64,
    /// The largest number of records per unit for which the distances hold.
    records: u32,
}

impl Moves {
    fn of(replaced: u128, added: u128, records: u32) -> Self {
        let all = |one: u128| u64::try_from(one.saturating_mul(records.max(1).into())).unwrap_or(u64::MAX);
        Self { replaced: all(replaced), added: all(added), closest: 0, records: u32::MAX }
    }

    /// Returns the distances of an interval. A unit contributes an integer from `least` to `greatest`. Replacing it moves the
    /// sum by at most their difference, and adding it by at most the greater magnitude.
    #[must_use]
    pub fn interval(least: i64, greatest: i64) -> Self {
        let added = least.unsigned_abs().max(greatest.unsigned_abs());
        let closest = 0.clamp(least.min(greatest), greatest);
        Self { closest, ..Self::of(greatest.abs_diff(least).into(), added.into(), 1) }
    }

    /// Returns the distances of a ball. A record contributes a vector of length at most [`GRADIENT_UNITS`], with the rounding
    /// of the sum included. Replacing it moves the sum by at most twice that length, and adding it by at most that length.
    #[must_use]
    pub fn ball(records: u32) -> Self {
        Self::of(2 * u128::from(GRADIENT_UNITS), GRADIENT_UNITS.into(), records)
    }

    /// Returns the distances of a trace. A record contributes the upper triangle of a positive semidefinite integer matrix `A`
    /// of trace at most `M^2`, which is `squares` times 2^32. Diagonal entries are multiplied by [`super::DIAGONAL`], a little
    /// less than `1/sqrt 2`, and rounded down.
    ///
    /// For two such matrices `sum_{a<b} (A_ab - B_ab)^2 + 1/2 sum_a (A_aa - B_aa)^2 = 1/2 |A - B|^2 <= M^4`, since the trace of
    /// `A B` is not negative. Let two diagonal entries differ by the integer `d_a`. Rounding moves their difference by less
    /// than 1, and not at all if `d_a = 0`. Since `sum |d_a| <= 2 M^2`, replacing a record moves the triangle by at most
    /// `M^2 + 3`. Adding one moves it by at most `M^2 / sqrt 2`.
    #[must_use]
    pub fn trace(squares: u64, records: u32) -> Self {
        let trace = u128::from(squares) * u128::from(UNIT * UNIT);
        // 46341 / 65536 is a little more than 1 / sqrt 2.
        Self::of(trace + 3, (trace * 46_341).div_ceil(65_536), records)
    }

    /// Returns the distances of one-hot counts. A record contributes [`QueryKind::COUNT_UNIT`] in one cell of each of `tables`
    /// tables, or in the one cell of unusable records. Replacing a usable record by another moves the counts by at most
    /// `sqrt(2 tables)` units. Replacing a usable record by an unusable one, or the reverse, moves them by `sqrt(tables + 1)`.
    /// Adding one moves them by at most `sqrt(tables)`.
    #[must_use]
    pub fn one_hot(tables: usize, records: u32) -> Self {
        let root = |changes: u128| {
            let square = changes * u128::from(QueryKind::COUNT_UNIT * QueryKind::COUNT_UNIT);
            square.isqrt() + u128::from(square.isqrt() * square.isqrt() < square)
        };
        Self::of(root(2 * tables as u128), root(tables as u128), records)
    }

    /// Returns the distance between neighbours' sums, lattice units.
    #[must_use]
    pub fn between(self, adjacency: Adjacency) -> u64 {
        match adjacency {
            Adjacency::Replace => self.replaced,
            Adjacency::AddRemove => self.added,
        }
    }

    /// Returns the sensitivity by which a vector of this set is charged, where `unit` is protected.
    ///
    /// # Errors
    /// [`MechanismError::TooWide`] beyond 2^50 lattice units.
    pub fn sensitivity(self, unit: PrivacyUnit) -> Result<Sensitivity, MechanismError> {
        Sensitivity::from_units(self.between(unit.adjacency))
    }

    /// Returns these distances, valid up to the number of records per unit of this block. A block without records sets no
    /// limit.
    pub(super) fn grouped(self, block: &Block<'_>) -> Self {
        if block.records() == 0 { self } else { Self { records: records_per_unit(block), ..self } }
    }

    /// Returns the largest number of records per unit for which the distances hold. A sum without records has no limit.
    #[must_use]
    pub fn records(self) -> u32 {
        self.records
    }

    /// Returns the integer closest to zero that a component of an admissible contribution may have.
    pub(super) fn closest_to_zero(self) -> i64 {
        self.closest
    }

    /// Returns the greater distances of two. They hold for the sum of two disjoint parts of a shard, since neighbours differ in
    /// one unit.
    pub(super) fn or(self, other: Self) -> Self {
        let records = self.records.min(other.records);
        Self { replaced: self.replaced.max(other.replaced), added: self.added.max(other.added), records, ..self }
    }
}

/// Returns the largest permitted number of records per unit in this block.
pub(super) fn records_per_unit(block: &Block<'_>) -> u32 {
    block.persons().map_or(1, |(persons, _)| persons.limit())
}
