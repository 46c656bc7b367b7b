//! Predictions for a terminal.

use conclave_pages::document::{self, Block};
use conclave_pages::ends::{headings, percentage};
use conclave_pages::precision::{by_sd, ratio};
use conclave_pages::table::{Cell, Column, Table};
use conclave_pages::text::thousands;
use conclave_predict::{AverageEffect, Contrast, Summary};

use super::answer::Answer;

/// The label of predictions from a weighted fit.
const WEIGHTED: &str = "Estimand: weighted. Records with unusual predictors or residuals count less, so the predictions are those of the \
                        weighted fit.";

/// Formats the predictions.
pub(super) fn text(job: &str, answer: &Answer) -> String {
    let site = answer.site.as_ref().map(|site| format!(", at {site}")).unwrap_or_default();
    let mut blocks = vec![Block::Text(format!(
        "Predictions of job {job} ({} model), from {} draws{site}.",
        answer.model,
        thousands(answer.draws as u64)
    ))];
    if answer.averages.is_empty() {
        blocks.push(Block::Table(predictions(answer)));
    } else {
        blocks.push(Block::Table(averages(answer)));
    }
    if !answer.contrasts.is_empty() {
        blocks.push(Block::Table(differences(answer)));
        blocks.extend(ratios(answer).map(Block::Table));
    }
    if answer.estimand.as_deref() == Some("weighted") {
        blocks.push(Block::Text(WEIGHTED.to_owned()));
    }
    document::text(&blocks)
}

/// Describes the quantity of a table, and the level of its intervals.
fn caption(answer: &Answer, what: &str) -> String {
    let quantity = match answer.quantities.as_slice() {
        [one] => format!("{what}{}", one.words),
        _ => format!("{what}each quantity"),
    };
    let mut letters = quantity.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}, with {} intervals", letters.as_str(), percentage(answer.level.get()))
}

/// The prediction of one quantity at one row.
struct Line<'a> {
    row: usize,
    quantity: &'a str,
    summary: &'a Summary,
    outcome: Option<&'a Summary>,
}

fn predictions(answer: &Answer) -> Table {
    let mut lines = Vec::new();
    for (row, expected) in answer.expected.iter().enumerate() {
        for (quantity, summary) in answer.quantities.iter().zip(expected) {
            lines.push(Line { row, quantity: &quantity.name, summary, outcome: answer.outcomes.get(row) });
        }
    }
    let mut table = Table::new(caption(answer, ""), &lines, &[("row", &|line| Cell::text(line.row + 1))]);
    for name in answer.columns() {
        table.push(name, lines.iter().map(|line| covariate(answer, line.row, name)));
    }
    if answer.quantities.len() > 1 {
        table.push("quantity", lines.iter().map(|line| Cell::name(line.quantity)));
    }
    let table = figures(table, answer, &lines.iter().map(|line| line.summary).collect::<Vec<_>>(), value);
    if answer.outcomes.is_empty() {
        return table;
    }
    let [low, high] = headings(answer.level.get()).map(|end| format!("new record {end}"));
    let end = |of: fn(&Summary) -> f64| {
        move |line: &Line<'_>| line.outcome.map_or_else(|| Cell::number("-"), |of_row| value(of_row, of(of_row)))
    };
    let (at_low, at_high) = (end(|of| of.low), end(|of| of.high));
    table.beside(&lines, &[(&low, &at_low), (&high, &at_high)])
}

/// Returns the cell of a covariate; a dash for an exposure that the row does not state.
fn covariate(answer: &Answer, row: usize, name: &str) -> Cell {
    let stated = answer.rows[row].iter().find(|(column, _)| column == name);
    stated.map_or_else(|| Cell::text("-"), |(_, value)| Cell::name(value))
}

/// Creates the cell of one figure of a summary.
type Figure = fn(&Summary, f64) -> Cell;

/// Adds mean, sd, median and interval to a table, from a summary per row.
fn figures(table: Table, answer: &Answer, summaries: &[&Summary], show: Figure) -> Table {
    let [low, high] = headings(answer.level.get());
    let columns: [Column<'_, &Summary>; 5] = [
        ("mean", &|of| show(of, of.mean)),
        ("sd", &|of| value(of, of.sd)),
        (&low, &|of| show(of, of.low)),
        ("median", &|of| show(of, of.median)),
        (&high, &|of| show(of, of.high)),
    ];
    table.beside(summaries, &columns)
}

/// Formats a figure with the digits of its row's sd.
fn value(of: &Summary, x: f64) -> Cell {
    Cell::number(by_sd(x, of.sd))
}

/// Formats a ratio with the digits of its interval, and never as 1 unless it is 1.
fn of_ratio(of: &Summary, x: f64) -> Cell {
    Cell::number(ratio(x, of.high - of.low))
}

fn differences(answer: &Answer) -> Table {
    let mut lines = Vec::new();
    for contrast in &answer.contrasts {
        for (quantity, summary) in answer.quantities.iter().zip(&contrast.differences) {
            lines.push(Line { row: contrast.row, quantity: &quantity.name, summary, outcome: None });
        }
    }
    let mut table = Table::new(caption(answer, "difference from row 1: "), &lines, &[("row", &|line| Cell::text(line.row + 1))]);
    if answer.quantities.len() > 1 {
        table.push("quantity", lines.iter().map(|line| Cell::name(line.quantity)));
    }
    figures(table, answer, &lines.iter().map(|line| line.summary).collect::<Vec<_>>(), value)
}

/// Builds the table of ratios on the scale of the link; `None` for a model without a logit or log link.
fn ratios(answer: &Answer) -> Option<Table> {
    let kind = answer.contrasts.first()?.ratio.as_ref()?.kind;
    let words = match kind {
        "odds_ratio" => "Odds ratio to row 1",
        "hazard_ratio" => "Hazard ratio to row 1",
        _ => "Rate ratio to row 1",
    };
    let caption = format!("{words}, with {} intervals", percentage(answer.level.get()));
    let table = Table::new(caption, &answer.contrasts, &[("row", &|contrast: &Contrast| Cell::text(contrast.row + 1))]);
    let summaries: Vec<&Summary> =
        answer.contrasts.iter().filter_map(|contrast| contrast.ratio.as_ref()).map(|ratio| &ratio.summary).collect();
    Some(figures(table, answer, &summaries, of_ratio))
}

fn averages(answer: &Answer) -> Table {
    let mut lines = Vec::new();
    for average in &answer.averages {
        for (quantity, summary) in answer.quantities.iter().zip(&average.effects) {
            lines.push((average, quantity.name.as_str(), summary));
        }
    }
    let what = format!("average change over {} rows: ", thousands(answer.rows.len() as u64));
    let columns: [Column<'_, (&AverageEffect, &str, &Summary)>; 2] = [
        ("predictor", &|(average, _, _)| Cell::name(&average.column)),
        ("change", &|(average, _, _)| Cell::name(&average.change)),
    ];
    let mut table = Table::new(caption(answer, &what), &lines, &columns);
    if answer.quantities.len() > 1 {
        table.push("quantity", lines.iter().map(|(_, quantity, _)| Cell::name(quantity)));
    }
    figures(table, answer, &lines.iter().map(|(_, _, summary)| *summary).collect::<Vec<_>>(), value)
}
