//! The different texts of a column, each held once.

use std::collections::HashMap;

/// A column's words, numbered in the order in which they appear.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Words {
    list: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Words {
    /// The number of a text, which is taken in where it is new.
    pub(super) fn number(&mut self, text: &str) -> f64 {
        if let Some(number) = self.numbers.get(text) {
            return f64::from(*number);
        }
        // More words than that don't fit into memory.
        let number = self.list.len() as u32;
        self.list.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        f64::from(number)
    }

    /// The words, by number.
    pub(super) fn list(&self) -> &[String] {
        &self.list
    }
}
