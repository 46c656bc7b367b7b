//! Rows are gathered by person while they are read; a person's rows beyond the limit are left out, in the
//! order of the file.
//!
//! The number of persons is public, so it may not tell of a value that can't be used: a person all of whose rows are bad is there
//! with one inert row, and a row that names nobody is a person of its own, who is inert. Beside a usable row an inert one is not
//! needed, and takes nobody's place.

use std::collections::HashMap;

use conclave_privacy::pass::Persons;

/// Whose each kept row is.
pub(super) struct Gathering {
    limit: u32,
    /// Persons by name as it is written, numbered in the order in which they appear.
    numbers: HashMap<Box<[u8]>, u32>,
    /// Rows kept of each person.
    counts: Vec<Count>,
    /// The person of each kept row, in the order of the file.
    of_row: Vec<u32>,
}

/// Rows of one person.
#[derive(Default)]
struct Count {
    usable: u32,
    /// Where among the kept rows the person's inert one is.
    inert: Option<usize>,
}

impl Count {
    /// Rows that stay in the end.
    fn staying(&self) -> usize {
        (self.usable as usize).max(usize::from(self.inert.is_some()))
    }
}

impl Gathering {
    pub(super) fn new(limit: u32) -> Self {
        Self { limit, numbers: HashMap::new(), counts: Vec::new(), of_row: Vec::new() }
    }

    /// Takes a usable row of a person's in; false where the person has as many already.
    pub(super) fn keep(&mut self, person: &[u8]) -> bool {
        let number = self.number(Some(person));
        let count = &mut self.counts[number as usize];
        if count.usable >= self.limit {
            return false;
        }
        count.usable += 1;
        self.of_row.push(number);
        true
    }

    /// Takes an inert row in, of a person's or of nobody's; false where the person is there already.
    pub(super) fn keep_inert(&mut self, person: Option<&[u8]>) -> bool {
        let number = self.number(person);
        let count = &mut self.counts[number as usize];
        if count.staying() > 0 {
            return false;
        }
        count.inert = Some(self.of_row.len());
        self.of_row.push(number);
        true
    }

    /// The number of a person; a new one where nobody is named.
    fn number(&mut self, person: Option<&[u8]>) -> u32 {
        if let Some(number) = person.and_then(|person| self.numbers.get(person)) {
            return *number;
        }
        // More persons than that don't fit into memory.
        let number = self.counts.len() as u32;
        if let Some(person) = person {
            self.numbers.insert(person.into(), number);
        }
        self.counts.push(Count::default());
        number
    }

    /// Puts each person's rows side by side, in the order of the file within a person, in every column.
    pub(super) fn group(self, columns: &mut [Vec<f64>]) -> Option<Persons> {
        let mut end = 0_usize;
        let ends: Vec<usize> = self
            .counts
            .iter()
            .map(|count| {
                end += count.staying();
                end
            })
            .collect();
        let mut next: Vec<usize> = ends.iter().zip(&self.counts).map(|(end, count)| end - count.staying()).collect();
        let place: Vec<Option<usize>> = self
            .of_row
            .iter()
            .enumerate()
            .map(|(row, person)| {
                let count = &self.counts[*person as usize];
                if count.inert == Some(row) && count.usable > 0 {
                    return None;
                }
                let next = &mut next[*person as usize];
                *next += 1;
                Some(*next - 1)
            })
            .collect();
        for column in columns {
            let mut grouped = vec![0.0; end];
            for (to, value) in place.iter().zip(column.iter()) {
                if let Some(to) = to {
                    grouped[*to] = *value;
                }
            }
            *column = grouped;
        }
        Persons::new(ends, self.limit)
    }
}
