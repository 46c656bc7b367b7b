//! A run's result object as blocks and tables: the same figures for the terminal, the report and the dashboard.

use conclave_common::epsilon;
use serde_json::Value;

use crate::document::{Block, fact};
use crate::ends::Ends;
use crate::object::{rows, text};
use crate::precision::{by_width, of_row, ratio, rough};
use crate::released::noise_columns;
use crate::table::{Cell, Column, Table};
use crate::text::{as_written, effective, plain, thousands, thousandths, whole};
use crate::{barker, gradients};

/// Names with values to show beside those of a run: the true ones of simulated records.
pub type Truth<'a> = &'a [(&'a str, f64)];

/// The columns of a party's spending.
pub const SPENDING: [Column<'static, Value>; 6] = [
    ("releases", &|party| Cell::figure(&party["queries"], whole)),
    ("epsilon (GDP)", &|party| Cell::figure(&party["epsilon_spent"], epsilon::spent)),
    ("epsilon (zCDP)", &|party| Cell::figure(&party["epsilon_zcdp"], epsilon::spent)),
    ("μ²", &|party| Cell::figure(&party["mu_squared_spent"], rough)),
    ("delta", &|party| Cell::figure(&party["delta"], as_written)),
    ("epsilon allowed", &|party| Cell::figure(&party["epsilon_budget"], as_written)),
];

fn shown(value: &Value) -> String {
    value.as_f64().map_or_else(|| "-".to_owned(), rough)
}

/// Builds the table of the parameters, with the true values and the errors of `moments` (mean and sd) in sds.
fn named(caption: &str, rows: &[Value], truth: Option<Truth<'_>>, moments: impl Fn(&Value) -> [Value; 2]) -> Table {
    let mut table = Table::new(caption, rows, &[("parameter", &|row| Cell::name(text(row, "name")))]);
    if let Some(truth) = truth {
        let value = |row: &Value| truth.iter().find(|(name, _)| *name == text(row, "name")).map(|(_, value)| *value);
        let off = |row: &Value| {
            let [mean, sd] = moments(row);
            Some(format!("{:+.1} sd", (mean.as_f64()? - value(row)?) / sd.as_f64()?))
        };
        let cell = |shown: Option<String>| Cell::number(shown.unwrap_or_else(|| "-".to_owned()));
        table.push("true", rows.iter().map(|row| cell(value(row).map(as_written))));
        table.push("off by", rows.iter().map(|row| cell(off(row))));
    }
    table
}

/// Returns the reason for the end of a run, in words.
#[must_use]
pub fn ended(result: &Value) -> &str {
    match result["stopped_by"].as_str() {
        Some("budget") => "ended by the budget",
        Some("draws") => "all draws made",
        Some("until") => "stopped as asked, at the job’s own target, with the rest of the budget unspent",
        // Older runs wrote the alias.
        Some("futility" | "hopeless") => "stopped for futility, the rest of the budget not spent",
        Some("released") if result["ops"].is_object() => "all draws made, each chosen by an owner",
        Some("released") => "the whole budget released, and all draws made from the releases",
        Some("policy") => "ended by a data owner",
        Some("clip") => "stopped because the clip truncates too much: the draws target another posterior",
        Some("cancelled") => "cancelled by the analyst",
        Some("failure") => "ended by a failure",
        Some(other) => other,
        None => "ended early",
    }
}

/// Builds the posterior's table: the figures of at most `limit` parameters.
#[must_use]
pub fn posterior(result: &Value, caption: &str, truth: Option<Truth<'_>>, limit: usize) -> Table {
    let rows = rows(result, "posterior");
    let rows = &rows[..rows.len().min(limit)];
    let ends = Ends::of(rows);
    let [low, high] = &ends.headings;
    let figures: [Column<'_, Value>; 8] = [
        ("mean", &|row| rounded(row, &row["mean"])),
        ("sd", &|row| rounded(row, &row["sd"])),
        (low, &|row| rounded(row, ends.low(row))),
        ("median", &|row| rounded(row, &row["median"])),
        (high, &|row| rounded(row, ends.high(row))),
        ("ESS bulk", &|row| mixing(row, "ess_bulk", effective)),
        ("ESS tail", &|row| mixing(row, "ess_tail", effective)),
        ("R-hat", &|row| mixing(row, "rhat", thousandths)),
    ];
    let moments = |row: &Value| [row["mean"].clone(), row["sd"].clone()];
    named(caption, rows, truth, moments).beside(rows, &figures).beside(rows, noise_columns(result))
}

/// Creates the cell of a figure with the digits of its row's sd.
fn rounded(row: &Value, value: &Value) -> Cell {
    Cell::figure(value, |x| of_row(row, x))
}

/// Creates the cell of a figure of mixing, which a chain that never moved does not have.
fn mixing(row: &Value, key: &str, show: impl Fn(f64) -> String) -> Cell {
    let still = row["sd"].as_f64() == Some(0.0) && row[key].is_null();
    if still { Cell::number("not defined") } else { Cell::figure(&row[key], show) }
}

/// Builds the table of odds, rate or hazard ratios of one unit of each predictor; nothing for a model without them.
#[must_use]
pub fn ratios(result: &Value) -> Option<Table> {
    let rows = rows(result, "ratios");
    let kind = text(rows.first()?, "kind").replace('_', " ");
    let caption =
        format!("The {kind} of one unit of each predictor, in the units of the data; of a derived term, of one unit of the term");
    let ends = Ends::of(rows);
    let [low, high] = &ends.headings;
    let columns: [Column<'_, Value>; 4] = [
        ("predictor", &|ratio| Cell::name(text(ratio, "name"))),
        (low, &|row| within(ends.ends(row), ends.low(row), ratio)),
        ("median", &|row| within(ends.ends(row), &row["median"], ratio)),
        (high, &|row| within(ends.ends(row), ends.high(row), ratio)),
    ];
    Some(Table::new(caption, rows, &columns))
}

/// Builds the table of the restricted mean survival times; nothing for a model without survival curves.
#[must_use]
pub fn restricted_means(result: &Value) -> Option<Table> {
    let rows = rows(result, "survival");
    let longest = rows.first()?["points"].as_array()?.last()?["time"].as_f64()?;
    let of = match rows.iter().any(|curve| text(curve, "of") == "baseline") {
        true => {
            "of the baseline (numeric predictors at the middle of their bounds, binary ones 0, levels the reference), and where one level or binary \
             predictor differs from it"
        }
        false => "of each group",
    };
    let caption = format!("Mean survival time up to {}, in the units of the data: {of}", as_written(longest));
    let columns: [Column<'_, Value>; 4] = [
        ("records", &|curve| Cell::name(text(curve, "of"))),
        ("5%", &|curve| mean_of(curve, "q5")),
        ("median", &|curve| mean_of(curve, "median")),
        ("95%", &|curve| mean_of(curve, "q95")),
    ];
    Some(Table::new(caption, rows, &columns))
}

/// Creates the cell of a quantile of a curve's restricted mean.
fn mean_of(curve: &Value, key: &str) -> Cell {
    let of = &curve["restricted_mean"];
    let ends = ["q5", "q95"].map(|key| of[key].as_f64().unwrap_or(f64::NAN));
    within(ends, &of[key], by_width)
}

/// Creates the cell of a figure with the digits of an interval with these ends.
fn within(ends: [f64; 2], value: &Value, show: fn(f64, f64) -> String) -> Cell {
    Cell::figure(value, |x| show(x, ends[1] - ends[0]))
}

/// Describes the quadratic fitted to the releases, or why it is not shown; `None` without one.
#[must_use]
pub fn surrogate(result: &Value) -> Option<String> {
    let of = &result["surrogate"];
    if !of.is_object() {
        return None;
    }
    let quantity = match result["gradients"].is_null() && result["stochastic_gradients"].is_null() {
        true => "log ratios",
        false => "components of gradients",
    };
    if let Some(reason) = of["suppressed"].as_str() {
        return Some(format!("No quadratic fitted to the released {quantity} is shown: {}.", plain(reason, 1000)));
    }
    Some(format!(
        "Surrogate: the same posterior by a quadratic fitted to {} released {quantity}, at no further charge. Its sd includes the noise's \
         share, noise sd. Both posteriors rest on the same releases: compare them, don't average them (cubic terms: p = {}).",
        thousands(of["answers"].as_u64().unwrap_or(0)),
        shown(&of["p_value"])
    ))
}

/// Returns the rows of the posterior that the fitted quadratic has too, at most `limit`.
#[must_use]
pub fn fitted(result: &Value, limit: usize) -> Vec<Value> {
    let fitted = |row: &&Value| result["surrogate"]["parameters"][text(row, "name")].is_object();
    rows(result, "posterior").iter().take(limit).filter(fitted).cloned().collect()
}

/// Builds the table of the fitted quadratic beside the chains, with a row for each of [`fitted`]; `None` if none is shown.
#[must_use]
pub fn surrogate_table(result: &Value, truth: Option<Truth<'_>>, limit: usize) -> Option<Table> {
    let rows = fitted(result, limit);
    let of = |row: &Value, key: &str| result["surrogate"]["parameters"][text(row, "name")][key].clone();
    let moments = |row: &Value| [of(row, "mean"), of(row, "sd")];
    let fitted = |row: &Value, key: &str| rounded(&result["surrogate"]["parameters"][text(row, "name")], &of(row, key));
    let columns: [Column<'_, Value>; 5] = [
        ("mean", &|row| fitted(row, "mean")),
        ("sd", &|row| fitted(row, "sd")),
        ("noise sd", &|row| fitted(row, "noise_sd")),
        ("chains' mean", &|row| rounded(row, &row["mean"])),
        ("chains' sd", &|row| rounded(row, &row["sd"])),
    ];
    let caption = "Posterior from a quadratic fitted to all releases (“surrogate”)";
    (!rows.is_empty()).then(|| named(caption, &rows, truth, moments).beside(&rows, &columns))
}

/// Describes how gradients drove the chains, and how steps were decided; empty for chains of another kind.
#[must_use]
pub fn chains(result: &Value) -> Vec<Block> {
    let driven: Vec<_> = gradients::diagnostics(result).into_iter().map(|(name, words)| fact(name, words)).collect();
    let driven = (!driven.is_empty()).then(|| [Block::Heading("Gradient-driven chains".to_owned()), Block::Facts(driven)]);
    let decided = barker::summary(result).map(|words| [Block::Heading("Decision of steps".to_owned()), Block::Text(words)]);
    driven.into_iter().chain(decided).flatten().collect()
}
