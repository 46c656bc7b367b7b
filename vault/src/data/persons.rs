//! Gathers rows by person while they are read; a person's rows beyond the limit are left out, in the order of the file.
//!
//! The number of persons is public, so it must not depend on an unusable value: a person all of whose rows are bad is present with one
//! inert row, and a row without a person is a separate, inert person. Beside a usable row an inert one is not needed, and takes no place.

use std::collections::HashMap;

use conclave_privacy::pass::Persons;

/// The person of each kept row.
pub(super) struct Gathering {
    limit: u32,
    /// Persons by name, without the blanks around it, numbered in the order of their appearance.
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
    /// Place of the person's inert row among the kept rows.
    inert: Option<usize>,
}

impl Count {
    /// Counts the rows that stay in the end.
    fn staying(&self) -> usize {
        (self.usable as usize).max(usize::from(self.inert.is_some()))
    }
}

impl Gathering {
    pub(super) fn new(limit: u32) -> Self {
        Self { limit, numbers: HashMap::new(), counts: Vec::new(), of_row: Vec::new() }
    }

    /// Adds a usable row of a person; returns false where the person is at its limit.
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

    /// Adds an inert row, with or without a person; returns false where the person is present already.
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

    /// Returns the number of a person; a new one where no person is named.
    fn number(&mut self, person: Option<&[u8]>) -> u32 {
        if let Some(number) = person.and_then(|person| self.numbers.get(person)) {
            return *number;
        }
        // More persons than that do not fit into memory.
        let number = self.counts.len() as u32;
        if let Some(person) = person {
            self.numbers.insert(person.into(), number);
        }
        self.counts.push(Count::default());
        number
    }

    /// Returns the order in which each person's rows are side by side, in the order of the file within a person, and the persons.
    pub(super) fn group(self) -> (Grouped, Option<Persons>) {
        let (mut end, mut next) = (0, Vec::with_capacity(self.counts.len()));
        let end_of = |count: &Count| {
            next.push(end);
            end += count.staying();
            end
        };
        let ends: Vec<usize> = self.counts.iter().map(end_of).collect();
        let place = |(row, person): (usize, &u32)| {
            let (count, next) = (&self.counts[*person as usize], &mut next[*person as usize]);
            // An inert row has no place beside usable ones.
            let stays = count.inert != Some(row) || count.usable == 0;
            *next += usize::from(stays);
            stays.then(|| *next - 1)
        };
        let places = self.of_row.iter().enumerate().map(place).collect();
        (Grouped { places, rows: end }, Persons::new(ends, self.limit))
    }
}

/// The places of the kept rows beside their persons' other rows.
pub(super) struct Grouped {
    places: Vec<Option<usize>>,
    rows: usize,
}

impl Grouped {
    /// Returns a column in this order.
    pub(super) fn of(&self, column: &[f64]) -> Vec<f64> {
        let mut grouped = vec![0.0; self.rows];
        for (to, value) in self.places.iter().zip(column) {
            to.iter().for_each(|to| grouped[*to] = *value);
        }
        grouped
    }
}
