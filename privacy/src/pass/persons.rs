//! Records grouped by person, where a person is the unit of privacy.

use std::ops::Range;

use crate::accounting::{Adjacency, PrivacyUnit};

/// The grouping of records by person. The records of one person are adjacent.
#[derive(Clone, PartialEq, Eq)]
pub struct Persons {
    /// The end of each person's records, ascending.
    ends: Vec<usize>,
    limit: u32,
}

impl Persons {
    /// Creates a grouping from the ends of each person's records. The first person's records begin at 0. `limit` is the maximum
    /// number of records per person.
    ///
    /// Returns `None` if a person has no record or more than `limit`, or if [`PrivacyUnit::person`] does not accept `limit`.
    #[must_use]
    pub fn new(ends: Vec<usize>, limit: u32) -> Option<Self> {
        PrivacyUnit::person(Adjacency::Replace, limit)?;
        let mut start = 0;
        for end in &ends {
            if *end <= start || end - start > limit as usize {
                return None;
            }
            start = *end;
        }
        Some(Self { ends, limit })
    }

    /// Returns the number of persons.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Returns the end of each person's records, ascending.
    #[must_use]
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// Returns the number of records of all persons.
    #[must_use]
    pub fn records(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns the grouping of a subset of persons, whose records are then adjacent.
    pub(super) fn gathered(&self, persons: &[usize]) -> Self {
        let begin = |person: usize| person.checked_sub(1).map_or(0, |last| self.ends[last]);
        let after = |end: &mut usize, person: &usize| {
            *end += self.ends[*person] - begin(*person);
            Some(*end)
        };
        Self { ends: persons.iter().scan(0, after).collect(), limit: self.limit }
    }

    /// Returns the maximum number of records per person.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limit
    }
}

/// Prints nothing that depends on a record.
impl std::fmt::Debug for Persons {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Persons").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// A sum of lattice values over consecutive ranges of records, with each person's contribution bounded.
#[derive(Clone)]
pub struct PersonSum {
    total: i64,
    /// The partial sum of the person whose records continue in the next range.
    open: i64,
    /// The number of that person.
    person: usize,
}

impl PersonSum {
    /// Creates a sum whose first record is the first of this person, given by its number.
    pub fn beginning(person: usize) -> Self {
        Self { total: 0, open: 0, person }
    }

    /// Adds the values of records `rows`. `part` bounds a person's contribution, given the sum of the person's values.
    #[inline(always)]
    pub fn add(&mut self, persons: &Persons, rows: Range<usize>, values: &[i64], part: impl Fn(i64) -> i64) {
        let mut from = rows.start;
        while from < rows.end {
            let end = persons.ends[self.person];
            let to = end.min(rows.end);
            // No partial sum overflows: a person has few records, and each value is a fraction of the clamp.
            let sum = values[from - rows.start..to - rows.start].iter().fold(self.open, |sum, value| sum.wrapping_add(*value));
            self.open = sum;
            if to == end {
                self.total = self.total.wrapping_add(part(sum));
                self.open = 0;
                self.person += 1;
            }
            from = to;
        }
    }

    /// Returns the sum over all persons whose records are complete.
    pub(in crate::pass) fn total(&self) -> i64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::mechanism::Clamp;

    #[test]
    fn groups_are_checked() {
        assert!(Persons::new(vec![1, 3, 6], 3).is_some());
        assert!(Persons::new(vec![], 3).is_some());
        for bad in [vec![0], vec![4], vec![2, 2], vec![3, 1], vec![1, 5]] {
            assert!(Persons::new(bad, 3).is_none());
        }
        assert!(Persons::new(vec![1], 0).is_none());
        assert!(!format!("{:?}", Persons::new(vec![1, 17], 16).unwrap()).contains("17"));
    }

    #[test]
    fn a_persons_sum_is_clamped_wherever_blocks_break() {
        let values = [5, 5, 5, -9, 2, 2, 2, 2, 1];
        let persons = Persons::new(vec![3, 4, 8, 9], 4).unwrap();
        let whole = |breaks: &[usize]| {
            let mut sum = PersonSum::beginning(0);
            let mut from = 0;
            for to in breaks {
                sum.add(&persons, from..*to, &values[from..*to], |sum| Clamp::symmetric(7).sum(sum));
                from = *to;
            }
            sum.total()
        };
        for breaks in [&[9][..], &[1, 2, 3, 4, 5, 6, 7, 8, 9], &[4, 9], &[2, 6, 9]] {
            // 15 and 8 are clamped to 7, -9 to -7, and 1 stays.
            assert_eq!(whole(breaks), 8);
        }
    }
}
