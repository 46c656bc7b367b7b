//! What is public about one party's data.

use conclave_privacy::accounting::{Adjacency, PrivacyUnit};

/// What is public about one party's data: what its guarantee protects, and how many such units there are.
///
/// Replacing one unit changes nothing here. The count of rows is therefore public only where rows are
/// replaced, and where persons are replaced the count of persons is, since two persons may have different
/// numbers of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartyMetadata {
    unit: PrivacyUnit,
    count: Option<u64>,
}

impl PartyMetadata {
    /// `count` units; dropped where neighbours differ by addition or removal.
    #[must_use]
    pub fn new(unit: PrivacyUnit, count: u64) -> Self {
        Self { unit, count: (unit.adjacency == Adjacency::Replace).then_some(count) }
    }

    /// Rows, each protected against replacement.
    #[must_use]
    pub fn rows(count: u64) -> Self {
        Self::new(PrivacyUnit::default(), count)
    }

    /// One party for each of these counts of rows.
    #[must_use]
    pub fn of_rows(counts: &[u64]) -> Vec<Self> {
        counts.iter().map(|count| Self::rows(*count)).collect()
    }

    /// The same party with this many times as many units, where their number is public.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        // Beyond 2^64 it stays there.
        Self { count: self.count.map(|count| (count as f64 * factor).ceil() as u64), ..self }
    }

    /// What is protected.
    #[must_use]
    pub fn unit(&self) -> PrivacyUnit {
        self.unit
    }

    /// Number of records, where it is public.
    #[must_use]
    pub fn records(&self) -> Option<u64> {
        self.count.filter(|_| self.unit.records_per_person().is_none())
    }

    /// Number of persons, where it is public.
    #[must_use]
    pub fn persons(&self) -> Option<u64> {
        self.count.filter(|_| self.unit.records_per_person().is_some())
    }

    /// The most records that there can be, where a count is public.
    #[must_use]
    pub fn most_records(&self) -> Option<u64> {
        self.count.map(|count| count.saturating_mul(u64::from(self.unit.records_per_person().unwrap_or(1))))
    }

    /// The most records of all these parties together, where a count of each of them is public.
    #[must_use]
    pub fn most_records_of_all(parties: &[Self]) -> Option<f64> {
        parties.iter().map(|party| party.most_records().map(|n| n as f64)).sum()
    }
}
