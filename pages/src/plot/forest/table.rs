//! The figures of a forest plot as a table, and as text to copy.

use serde_json::Value;

use super::rows::{Estimate, Forest, ForestRow, figures, shown};
use crate::ends::headings;
use crate::plot::format_noise_share;
use crate::precision::{probability, ratio};
use crate::table::{Cell, Table};
use crate::text::plain;

/// The figures of a plot.
#[derive(Clone, Copy)]
pub struct ForestTable<'a, 'b>(pub &'a Forest<'b>);

impl ForestTable<'_, '_> {
    /// Builds the table for the page, with all digits for programs.
    #[must_use]
    pub fn table(&self) -> Table {
        let Self(of) = self;
        let [low, high] = headings(of.level);
        let mut table = Table::new("Figures of the plot", &of.rows, &[("predictor", &|row: &ForestRow| Cell::name(row.label()))]);
        let mut push = |heading: &str, cell: &dyn Fn(&Estimate) -> Cell| {
            let cells = of.rows.iter().map(|row| row.estimate().map_or_else(|| blank(row, heading, of), cell));
            table.push(heading, cells);
        };
        let show = if of.quantity.is_ratio() { ratio } else { shown };
        let figure =
            |estimate: &Estimate, x: f64| Cell::figure(&Value::from(x), |x| show(x, estimate.ends[1] - estimate.ends[0]));
        let half =
            |estimate: &Estimate, end: usize| estimate.half.map_or_else(|| Cell::number("-"), |ends| figure(estimate, ends[end]));
        push(&of.quantity.short, &|estimate| figure(estimate, estimate.median));
        push(&low, &|estimate| figure(estimate, estimate.ends[0]));
        push(&high, &|estimate| figure(estimate, estimate.ends[1]));
        if of.has_half() && low != "25%" {
            push("25%", &|estimate| half(estimate, 0));
            push("75%", &|estimate| half(estimate, 1));
        }
        let share = |of: Option<f64>, show: fn(f64) -> String| {
            of.map_or_else(|| Cell::number("-"), |x| Cell::figure(&Value::from(x), show))
        };
        if of.has_above() {
            push(&of.above_heading(), &|estimate| match estimate.above {
                Some(p) => Cell::figure(&Value::from(p), |p| probability(p, estimate.effective)),
                None => Cell::number("-"),
            });
        }
        if of.has_noise() {
            push("noise", &|estimate| share(estimate.noise, format_noise_share));
        }
        table
    }

    /// Returns the heading of each column to copy, and the rows: names, median, both ends, and the probability if it is known.
    fn cells(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let Self(of) = self;
        let mut header = vec!["predictor".to_owned(), of.figures_heading()];
        header.extend(of.has_above().then(|| of.above_heading()));
        let mut heading = "";
        let mut rows = Vec::new();
        for row in &of.rows {
            let label = plain(row.label(), usize::MAX);
            let name = if row.is_indented() && !heading.is_empty() { format!("{heading}: {label}") } else { label };
            let (shown, above) = match row {
                ForestRow::Heading(text) => {
                    heading = text;
                    continue;
                }
                ForestRow::Reference(_) => (self.reference(), None),
                ForestRow::Estimate(estimate) => {
                    (figures(estimate, of.quantity.is_ratio()), estimate.above.map(|_| estimate.above_words()))
                }
            };
            let mut cells = vec![plain(&name, usize::MAX), shown];
            if of.has_above() {
                cells.push(above.unwrap_or_default());
            }
            rows.push(cells);
        }
        (header, rows)
    }

    /// Returns the words of a reference level's row: `1 (reference)`.
    fn reference(&self) -> String {
        self.0.quantity.neutral.map_or_else(|| "reference".to_owned(), |value| format!("{value} (reference)"))
    }

    /// Returns the table as CSV, with all digits.
    #[must_use]
    pub fn csv(&self) -> String {
        let Self(of) = self;
        let [low, high] = headings(of.level);
        let mut text = format!("group,predictor,{},{},{}", quoted(&of.quantity.name), quoted(&low), quoted(&high));
        text += if of.has_half() { ",25%,75%" } else { "" };
        if of.has_above() {
            text += &format!(",{}", quoted(&of.above_heading()));
        }
        text.push('\n');
        let mut group = "";
        for row in &of.rows {
            let estimate = match row {
                ForestRow::Heading(heading) => {
                    group = heading;
                    continue;
                }
                row => row.estimate(),
            };
            let of_group = if row.is_indented() { group } else { "" };
            let mut cells = vec![quoted(of_group), quoted(row.label())];
            let written = |x: Option<f64>| x.filter(|x| x.is_finite()).map(|x| x.to_string()).unwrap_or_default();
            let neutral = estimate.is_none().then_some(of.quantity.neutral).flatten();
            cells.push(written(estimate.map(|e| e.median).or(neutral)));
            cells.extend([0, 1].map(|end| written(estimate.map(|e| e.ends[end]))));
            if of.has_half() {
                cells.extend([0, 1].map(|end| written(estimate.and_then(|e| Some(e.half?[end])))));
            }
            if of.has_above() {
                cells.push(written(estimate.and_then(|e| e.above)));
            }
            text += &(cells.join(",") + "\n");
        }
        text
    }

    /// Returns the table as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let (header, rows) = self.cells();
        let line = |cells: &[String]| {
            format!("| {} |\n", cells.iter().map(|cell| cell.replace('|', "\\|")).collect::<Vec<_>>().join(" | "))
        };
        let rule = format!("|---|{}\n", "--:|".repeat(header.len() - 1));
        rows.iter().fold(line(&header) + &rule, |text, row| text + &line(row))
    }

    /// Returns the table as LaTeX, for `booktabs`.
    #[must_use]
    pub fn latex(&self) -> String {
        let (header, rows) = self.cells();
        let line = |cells: &[String]| format!("{} \\\\\n", cells.iter().map(|cell| latex(cell)).collect::<Vec<_>>().join(" & "));
        let begin = format!("\\begin{{tabular}}{{l{}}}\n\\toprule\n{}\\midrule\n", "r".repeat(header.len() - 1), line(&header));
        rows.iter().fold(begin, |text, row| text + &line(row)) + "\\bottomrule\n\\end{tabular}\n"
    }
}

/// Returns the cell of a row without figures.
fn blank(row: &ForestRow, heading: &str, of: &Forest<'_>) -> Cell {
    let is_reference = matches!(row, ForestRow::Reference(_)) && heading == of.quantity.short;
    Cell::number(if is_reference { ForestTable(of).reference() } else { String::new() })
}

/// Quotes a field of a CSV file where it must be.
fn quoted(text: &str) -> String {
    let text = plain(text, usize::MAX);
    if text.contains(['"', ',', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// Escapes text for LaTeX.
fn latex(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => out.extend(['\\', c]),
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '<' => out.push_str("$<$"),
            '>' => out.push_str("$>$"),
            '−' => out.push_str("$-$"),
            '×' => out.push_str("$\\times$"),
            c => out.push(c),
        }
    }
    out
}
