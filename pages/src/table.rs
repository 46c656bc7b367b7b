//! Tables of numbers.

use maud::{Markup, html};

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
    /// Left-aligned markup.
    Markup(String),
    /// A right-aligned number as markup.
    Marked(String),
}

impl Cell {
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

    fn render(&self) -> Markup {
        match self {
            Self::Text(text) | Self::Number(text) => html! { (text) },
            Self::Name(name) => super::text::name(name),
            Self::Exact { value, shown } => html! { data value=(value) { (shown) } },
            Self::Markup(markup) | Self::Marked(markup) => maud::PreEscaped(markup.clone()),
        }
    }
}

/// Builds a table with a caption; the first cell of each row is its heading. On a narrow page it scrolls sideways, also by
/// keyboard.
#[must_use]
pub fn table(caption: &str, header: &[&str], rows: &[Vec<Cell>]) -> Markup {
    // A column is aligned like its first cell.
    let right = |column: usize| rows.first().and_then(|row| row.get(column)).is_some_and(Cell::is_number);
    html! {
        p.caption aria-hidden="true" { (caption) }
        div.scroll tabindex="0" role="region" aria-label=(caption) {
            table aria-label=(caption) {
                thead { tr { @for (column, text) in header.iter().enumerate() {
                    th scope="col" class=[right(column).then_some("n")] { (text) }
                } } }
                tbody { @for row in rows { tr { @for (column, cell) in row.iter().enumerate() {
                    @if column == 0 { th scope="row" { (cell.render()) } }
                    @else { td class=[cell.is_number().then_some("n")] { (cell.render()) } }
                } } } }
            }
        }
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
        let rows = vec![vec![Cell::Name("<b>\"".to_owned()), exact, Cell::Text("]]>&".to_owned())]];
        let text = table("x\"<", &["a", "b", "c"], &rows).into_string();
        for part in
            ["<bdi>&lt;b&gt;&quot;</bdi>", "<data value=\"0.30000000000000004\">0.3000</data>", "]]&gt;&amp;", "x&quot;&lt;"]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(text.contains("<td class=\"n\">") && text.contains("<th scope=\"col\" class=\"n\">b"), "{text}");
    }
}
