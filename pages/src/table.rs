//! Tables for pages and terminals.

use maud::{Markup, html};
use serde_json::Value;

use crate::text::{name, plain};

/// Maximum number of columns of a table that keeps its rows on a phone.
const NARROW_COLUMNS: usize = 4;

/// A cell's content.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Left-aligned text.
    Text(String),
    /// A left-aligned name from outside.
    Name(String),
    /// A right-aligned formatted number.
    Number(String),
    /// A right-aligned formatted number, with all its digits in the page for programs (`<data value>`).
    Exact {
        /// All digits.
        value: String,
        /// The formatted number.
        shown: String,
    },
    /// Left-aligned markup, for pages only.
    Markup(String),
    /// A right-aligned number as markup, for pages only.
    Marked(String),
}

impl Cell {
    /// Creates a cell of text.
    pub fn text(text: impl ToString) -> Self {
        Self::Text(text.to_string())
    }

    /// Creates a cell of a name from outside.
    pub fn name(name: impl ToString) -> Self {
        Self::Name(name.to_string())
    }

    /// Creates a cell of a formatted number.
    pub fn number(number: impl ToString) -> Self {
        Self::Number(number.to_string())
    }

    /// Creates a cell of a number in a JSON object, rounded by `show` for people; a dash for `null`.
    pub fn figure(value: &Value, show: impl Fn(f64) -> String) -> Self {
        match value.as_f64() {
            Some(x) => Self::Exact { value: value.to_string(), shown: show(x) },
            None => Self::number("-"),
        }
    }

    /// Creates a cell of markup.
    #[must_use]
    pub fn markup(markup: Markup) -> Self {
        Self::Markup(markup.into_string())
    }

    /// Creates a cell with a number as markup.
    #[must_use]
    pub fn marked(number: Markup) -> Self {
        Self::Marked(number.into_string())
    }

    fn is_number(&self) -> bool {
        matches!(self, Self::Number(_) | Self::Exact { .. } | Self::Marked(_))
    }

    fn html(&self) -> Markup {
        match self {
            Self::Text(text) | Self::Number(text) => html! { (text) },
            Self::Name(text) => name(text),
            Self::Exact { value, shown } => html! { data value=(value) { (shown) } },
            Self::Markup(markup) | Self::Marked(markup) => maud::PreEscaped(markup.clone()),
        }
    }

    /// Returns the words on one line, harmless on a terminal.
    fn words(&self) -> String {
        let (Self::Text(text) | Self::Name(text) | Self::Number(text) | Self::Markup(text) | Self::Marked(text)) = self else {
            let Self::Exact { shown, .. } = self else { return String::new() };
            return plain(shown, usize::MAX);
        };
        plain(text, usize::MAX)
    }
}

/// Builds a number of a JSON object within a sentence, as [`Cell::figure`] does in a table.
pub fn inline(value: &Value, show: impl Fn(f64) -> String) -> Markup {
    match value.as_f64() {
        Some(x) => html! { data value=(value.to_string()) { (show(x)) } },
        None => html! { "-" },
    }
}

/// A column: its heading, and its cell in the row of an item.
pub type Column<'a, T> = (&'a str, &'a dyn Fn(&T) -> Cell);

/// A table with a caption; the first cell of each row is its heading.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    caption: String,
    header: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Builds a table with a row per item. The caption is made harmless, as texts from outside are.
    pub fn new<T>(caption: impl Into<String>, items: &[T], columns: &[Column<'_, T>]) -> Self {
        let header = columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
        let rows = items.iter().map(|item| columns.iter().map(|(_, cell)| cell(item)).collect());
        Self { caption: plain(&caption.into(), usize::MAX), header, rows: rows.collect() }
    }

    /// Adds columns, from one item per row.
    #[must_use]
    pub fn beside<T>(mut self, items: &[T], columns: &[Column<'_, T>]) -> Self {
        columns.iter().for_each(|(heading, cell)| self.push(*heading, items.iter().map(cell)));
        self
    }

    /// Adds a column with its heading and cells.
    pub fn push(&mut self, heading: impl Into<String>, cells: impl IntoIterator<Item = Cell>) {
        self.header.push(heading.into());
        self.rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
    }

    /// Leaves out the column of a heading.
    #[must_use]
    pub fn without(mut self, heading: &str) -> Self {
        if let Some(column) = self.header.iter().position(|text| text == heading) {
            self.header.remove(column);
            self.rows.iter_mut().for_each(|row| drop(row.remove(column)));
        }
        self
    }

    /// Returns the caption.
    #[must_use]
    pub fn caption(&self) -> &str {
        &self.caption
    }

    /// Replaces the caption.
    #[must_use]
    pub fn with_caption(self, caption: String) -> Self {
        Self { caption: plain(&caption, usize::MAX), ..self }
    }

    /// Returns true for a table without rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Renders HTML. On a narrow page the table scrolls sideways, also by keyboard. A table with more than [`NARROW_COLUMNS`] columns
    /// may be wider than the text around it, and becomes a card per row on a phone: the first cell heads the card, and every other
    /// cell shows its column's heading.
    #[must_use]
    pub fn html(&self) -> Markup {
        // A column is aligned like its first cell.
        let right = |column: usize| self.rows.first().and_then(|row| row.get(column)).is_some_and(Cell::is_number);
        let wide = self.header.len() > NARROW_COLUMNS;
        // Browsers drop the roles of a table whose rows are displayed as blocks, so its elements state them.
        let role = |role: &'static str| wide.then_some(role);
        let label = |column: usize| self.header.get(column).filter(|_| wide);
        html! {
            p.caption aria-hidden="true" { (self.caption) }
            div class=(if wide { "scroll wide" } else { "scroll" }) tabindex="0" role="region" aria-label=(self.caption) {
                table aria-label=(self.caption) role=[role("table")] {
                    thead role=[role("rowgroup")] { tr role=[role("row")] { @for (column, text) in self.header.iter().enumerate() {
                        th scope="col" role=[role("columnheader")] class=[right(column).then_some("n")] { (text) }
                    } } }
                    tbody role=[role("rowgroup")] { @for row in &self.rows { tr role=[role("row")] { @for (column, cell) in row.iter().enumerate() {
                        @if column == 0 { th scope="row" role=[role("rowheader")] { (cell.html()) } }
                        @else { td role=[role("cell")] data-label=[label(column)] class=[cell.is_number().then_some("n")] { (cell.html()) } }
                    } } } }
                }
            }
        }
    }

    /// Renders aligned text for a terminal, without the caption: the first column to the left, the others to the right, two spaces
    /// between.
    #[must_use]
    pub fn text(&self) -> String {
        let rows = self.rows.iter().map(|row| row.iter().map(Cell::words).collect());
        let header = self.header.iter().map(|text| plain(text, usize::MAX)).collect();
        let lines: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
        let width = |column: usize| lines.iter().filter_map(|line| Some(line.get(column)?.chars().count())).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        let mut text = String::new();
        for line in &lines {
            let cell = |(column, (cell, width)): (usize, (&String, &usize))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("  {cell:>width$}"),
            };
            let aligned: String = line.iter().zip(&widths).enumerate().map(cell).collect();
            text += aligned.trim_end();
            text.push('\n');
        }
        text
    }
}

/// Builds a list of names and descriptions.
#[must_use]
pub fn facts(facts: &[(&str, Markup)]) -> Markup {
    html! { dl.facts { @for (name, words) in facts { div { dt { (name) } dd { (words) } } } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_escaped_and_aligned() {
        let exact = Cell::Exact { value: "0.30000000000000004".to_owned(), shown: "0.3000".to_owned() };
        let columns: [Column<'_, Cell>; 3] =
            [("a", &|_| Cell::name("<b>\"")), ("b", &|cell| cell.clone()), ("c", &|_| Cell::text("]]>&"))];
        let table = Table::new("x\"<", &[exact], &columns);
        let text = table.html().into_string();
        for part in
            ["<bdi>&lt;b&gt;&quot;</bdi>", "<data value=\"0.30000000000000004\">0.3000</data>", "]]&gt;&amp;", "x&quot;&lt;"]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(text.contains("<td class=\"n\">") && text.contains("<th scope=\"col\" class=\"n\">b"), "{text}");
        assert_eq!(table.text(), "a          b     c\n<b>\"  0.3000  ]]>&\n");
    }

    #[test]
    fn columns_line_up_in_text() {
        let mut table = Table::new("", &["a", "longer"], &[("name", &|name| Cell::name(name))]);
        table.push("n\r", ["1", "12\u{1b}[2J"].map(Cell::number));
        assert_eq!(table.text(), "name        n\na            1\nlonger  12 [2J\n");
        assert_eq!(table.without("name").without("none").text(), "n\n1\n12 [2J\n");
    }

    #[test]
    fn a_wide_table_states_roles_and_headings_for_its_cards() {
        let mut table = Table::new("wide", &["a"], &[("job", &|name| Cell::name(name))]);
        ["b", "c", "d\""].iter().for_each(|heading| table.push(*heading, [Cell::number("1")]));
        let narrow = table.html().into_string();
        assert!(
            !narrow.contains("role=\"table\"") && !narrow.contains("data-label") && !narrow.contains("wide\" tab"),
            "{narrow}"
        );
        table.push("e", [Cell::text("x")]);
        let wide = table.html().into_string();
        for part in [
            "class=\"scroll wide\"",
            "role=\"table\"",
            "role=\"rowheader\"",
            "<td role=\"cell\" data-label=\"d&quot;\" class=\"n\">1</td>",
            "<td role=\"cell\" data-label=\"e\">x</td>",
        ] {
            assert!(wide.contains(part), "{part} in {wide}");
        }
        assert!(!wide.contains("data-label=\"job\""), "{wide}");
    }
}
