//! Errors of formulas, each with its place in the text.

use super::span::Span;
use crate::text::shown;

/// An error in a formula.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FormulaError {
    pub(crate) span: Span,
    /// The fault and its remedy.
    pub(crate) message: String,
}

/// The most characters of a formula that an error shows.
const WIDTH: usize = 100;
/// The characters that it shows before the fault in a longer formula.
const BEFORE: usize = 40;

impl FormulaError {
    pub(crate) fn new(span: Span, message: impl Into<String>) -> Self {
        Self { span, message: message.into() }
    }

    /// Returns the message, the formula, and a line of carets under the fault.
    pub(crate) fn render(&self, text: &str) -> String {
        let letters: Vec<char> = text.chars().map(shown).collect();
        let column = |at: usize| text.get(..at).map_or(letters.len(), |before| before.chars().count());
        let (start, end) = (column(self.span.start), column(self.span.end));
        let first = if letters.len() > WIDTH { start.saturating_sub(BEFORE) } else { 0 };
        let last = letters.len().min(first + WIDTH);
        let (before, after) = (if first > 0 { "…" } else { "" }, if last < letters.len() { "…" } else { "" });
        let line: String = letters[first..last].iter().collect();
        let blanks = " ".repeat(start - first + before.chars().count());
        let carets = "^".repeat(end.min(last).saturating_sub(start).max(1));
        format!("{}\n  {before}{line}{after}\n  {blanks}{carets}", self.message)
    }
}
