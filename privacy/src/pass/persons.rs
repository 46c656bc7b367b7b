//! Records grouped by person, where a person is the unit of privacy.

use std::ops::Range;

use crate::accounting::{Adjacency, PrivacyUnit};

/// Which records belong together: the records of one person stand side by side.
#[derive(Clone, PartialEq, Eq)]
pub struct Persons {
    /// Where each person's records end, ascending.
    ends: Vec<usize>,
    limit: u32,
}

impl Persons {
    /// Persons whose records end at `ends`, the first person's beginning at 0; `limit` is the most that one may have.
    ///
    /// `None` where a person has no record or more than `limit`, or where `limit` is not one of [`PrivacyUnit::person`].
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

    /// Number of persons.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Where each person's records end, ascending.
    #[must_use]
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// Number of records of all persons together.
    #[must_use]
    pub fn records(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Some of them, by their numbers, as if there were no others.
    pub(super) fn gathered(&self, persons: &[usize]) -> Self {
        let begin = |person: usize| person.checked_sub(1).map_or(0, |last| self.ends[last]);
        let after = |end: &mut usize, person: &usize| {
            *end += self.ends[*person] - begin(*person);
            Some(*end)
        };
        Self { ends: persons.iter().scan(0, after).collect(), limit: self.limit }
    }

    /// The most records that one person may have.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limit
    }
}

/// Shows nothing that depends on a record.
impl std::fmt::Debug for Persons {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Persons").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// Adds one step's lattice values person by person, over blocks of records that come in order.
#[derive(Clone)]
pub struct PersonSum {
    total: i64,
    /// The sum of the person whose records the last block broke off in.
    open: i64,
    /// That person's number.
    person: usize,
}

impl PersonSum {
    /// A sum that begins with the records of this person, by its number.
    pub fn beginning(person: usize) -> Self {
        Self { total: 0, open: 0, person }
    }

    /// Takes in the values of records `rows`; `part` bounds what one person adds, given their sum.
    #[inline(always)]
    pub fn add(&mut self, persons: &Persons, rows: Range<usize>, values: &[i64], part: impl Fn(i64) -> i64) {
        let mut from = rows.start;
        while from < rows.end {
            let end = persons.ends[self.person];
            let to = end.min(rows.end);
            // No partial sum overflows: a person's records are few, and each value is within a share of the clamp.
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

    /// Returns the sum over all persons who are complete.
    pub fn total(&self) -> i64 {
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
