//! A column of texts holds each different text once.

use std::collections::HashMap;

/// A column's words, numbered in the order of appearance.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Words {
    list: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Words {
    /// Returns the number of a text, which is added where it is new.
    pub(super) fn number(&mut self, text: &str) -> f64 {
        if let Some(number) = self.numbers.get(text) {
            return f64::from(*number);
        }
        // More words than that do not fit into memory.
        let number = self.list.len() as u32;
        self.list.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        f64::from(number)
    }

    /// Maps numbers of another list's words to numbers of these; unused words are not added, and NaN stays NaN.
    pub(super) fn renumber(&mut self, others: &Words, numbers: &mut [f64]) {
        let mut known = vec![None; others.list.len()];
        for number in numbers.iter_mut().filter(|number| !number.is_nan()) {
            let at = *number as usize;
            *number = *known[at].get_or_insert_with(|| self.number(&others.list[at]));
        }
    }

    /// Returns the words, by number.
    pub(super) fn list(&self) -> &[String] {
        &self.list
    }
}
