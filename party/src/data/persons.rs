//! Rows are gathered by person while they are read; a person's rows beyond the limit are left out, in the
//! order of the file.

use std::collections::HashMap;

use conclave_common::model::Persons;

/// Whose each kept row is.
pub(super) struct Gathering {
    limit: u32,
    /// Persons by name as it is written, numbered in the order in which they appear.
    numbers: HashMap<Box<[u8]>, u32>,
    /// Rows kept of each person.
    counts: Vec<u32>,
    /// The person of each kept row, in the order of the file.
    of_row: Vec<u32>,
}

impl Gathering {
    pub(super) fn new(limit: u32) -> Self {
        Self { limit, numbers: HashMap::new(), counts: Vec::new(), of_row: Vec::new() }
    }

    /// Takes a row of a person's in; false where the person has as many already.
    pub(super) fn keep(&mut self, person: &[u8]) -> bool {
        let number = match self.numbers.get(person) {
            Some(number) => *number,
            None => {
                // More persons than that don't fit into memory.
                let number = self.counts.len() as u32;
                self.numbers.insert(person.into(), number);
                self.counts.push(0);
                number
            }
        };
        let count = &mut self.counts[number as usize];
        if *count >= self.limit {
            return false;
        }
        *count += 1;
        self.of_row.push(number);
        true
    }

    /// Puts each person's rows side by side, in the order of the file within a person, in every column.
    pub(super) fn group(self, columns: &mut [Vec<f64>]) -> Option<Persons> {
        let mut end = 0_usize;
        let ends: Vec<usize> = self
            .counts
            .iter()
            .map(|count| {
                end += *count as usize;
                end
            })
            .collect();
        let mut next: Vec<usize> = ends.iter().zip(&self.counts).map(|(end, count)| end - *count as usize).collect();
        let place: Vec<usize> = self
            .of_row
            .iter()
            .map(|person| {
                let next = &mut next[*person as usize];
                *next += 1;
                *next - 1
            })
            .collect();
        for column in columns {
            let mut grouped = vec![0.0; column.len()];
            place.iter().zip(column.iter()).for_each(|(to, value)| grouped[*to] = *value);
            *column = grouped;
        }
        Persons::new(ends, self.limit)
    }
}
