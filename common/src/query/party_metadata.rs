//! The public facts about one party's data.

use conclave_privacy::accounting::{Adjacency, PrivacyUnit};

/// The public facts about one party's data: the unit that its guarantee protects, and the number of units.
///
/// Replacing one unit changes none of them. So the number of rows is public only where rows are replaced. Where persons are
/// replaced, the number of persons is public instead, since two persons may have different numbers of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartyMetadata {
    unit: PrivacyUnit,
    count: Option<u64>,
}

impl PartyMetadata {
    /// Creates the facts for `count` units. The count is dropped where neighbours differ by addition or removal.
    #[must_use]
    pub fn new(unit: PrivacyUnit, count: u64) -> Self {
        Self { unit, count: (unit.adjacency == Adjacency::Replace).then_some(count) }
    }

    /// Creates the facts for `count` rows, each protected against replacement.
    #[must_use]
    pub fn rows(count: u64) -> Self {
        Self::new(PrivacyUnit::default(), count)
    }

    /// Creates one party for each number of rows.
    #[must_use]
    pub fn of_rows(counts: &[u64]) -> Vec<Self> {
        counts.iter().map(|count| Self::rows(*count)).collect()
    }

    /// Returns the same party with `factor` times as many units, if their number is public.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        // Saturates at the largest integer.
        Self { count: self.count.map(|count| (count as f64 * factor).ceil() as u64), ..self }
    }

    /// Returns the unit that is protected.
    #[must_use]
    pub fn unit(&self) -> PrivacyUnit {
        self.unit
    }

    /// Returns the number of records, if it is public.
    #[must_use]
    pub fn records(&self) -> Option<u64> {
        self.count.filter(|_| self.unit.records_per_person().is_none())
    }

    /// Returns the number of persons, if it is public.
    #[must_use]
    pub fn persons(&self) -> Option<u64> {
        self.count.filter(|_| self.unit.records_per_person().is_some())
    }

    /// Returns the largest possible number of records, if a count is public.
    #[must_use]
    pub fn most_records(&self) -> Option<u64> {
        self.count.map(|count| count.saturating_mul(u64::from(self.unit.records_per_person().unwrap_or(1))))
    }

    /// Returns the largest possible total number of records of all parties, if each has a public count.
    #[must_use]
    pub fn most_records_of_all(parties: &[Self]) -> Option<f64> {
        parties.iter().map(|party| party.most_records().map(|n| n as f64)).sum()
    }
}
