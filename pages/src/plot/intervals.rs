//! Intervals of several parameters on one axis.

use maud::{Markup, html};

use super::axis::Axis;
use super::figure::{Field, Figure, at, figure, left_out};
use super::label::Labels;
use super::measure::TICK;
use crate::ends::{headings, percentage};
use crate::precision::by_width;
use crate::table::{Cell, Column, Table};

const MAX_PARAMETERS: usize = 60;
const ROW: f64 = 20.0;
/// Greatest width of a label.
const LABEL: f64 = 170.0;

/// One parameter's interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// The parameter.
    pub name: String,
    /// Lower end, median and upper end; `NaN` if unknown.
    pub quantiles: [f64; 3],
}

/// Plots medians and central intervals of this level, one row per parameter; at most 60 are drawn.
#[must_use]
pub fn intervals(id: &str, scale: &str, level: f64, rows: &[Interval]) -> Markup {
    let [low, high] = headings(level);
    let drawn = &rows[..rows.len().min(MAX_PARAMETERS)];
    let labels = Labels::new(drawn.iter().map(|row| row.name.as_str()), LABEL, TICK);
    let row_height = ROW.max(labels.highest() + 5.0);
    let field = Field { left: (labels.width + 10.0).max(40.0), ..Field::new(440.0, drawn.len() as f64 * row_height + 52.0) };
    let x = Axis::around(drawn.iter().flat_map(|row| row.quantiles));
    let height = 1.0 / drawn.len().max(1) as f64;
    let layers = html! {
        @if let Some(zero) = x.share(0.0).filter(|_| x.least < 0.0 && x.greatest > 0.0) {
            path.zero d={ "M" (at(field.x(zero))) " " (at(field.y(0.0))) "V" (at(field.y(1.0))) } {}
        }
        @for (index, row) in drawn.iter().enumerate() {
            @let y = field.y(1.0 - (index as f64 + 0.5) * height);
            (labels.draw(index, "tick", (field.left - 6.0, y), "end"))
            @if let [Some(low), Some(middle), Some(high)] = row.quantiles.map(|q| x.share(q)) {
                path class="interval s0" d={ "M" (at(field.x(low))) " " (at(y)) "H" (at(field.x(high))) } {}
                circle class="dot s0" cx=(at(field.x(middle))) cy=(at(y)) r="4" {}
            }
        }
    };
    let end = |row: &Interval, at: usize| Cell::number(by_width(row.quantiles[at], row.quantiles[2] - row.quantiles[0]));
    let columns: [Column<'_, Interval>; 4] = [
        ("parameter", &|row| Cell::name(&row.name)),
        (&low, &|row| end(row, 0)),
        ("median", &|row| end(row, 1)),
        (&high, &|row| end(row, 2)),
    ];
    let more = left_out(MAX_PARAMETERS, rows.len(), "parameters");
    figure(&Figure {
        id,
        class: "chart intervals",
        field,
        title: &format!("Medians and {} intervals", percentage(level)),
        description: &format!(
            "For each parameter the posterior's median (dot) and the interval from its {low} to its {high} quantile (bar), on the {scale}.{more}"
        ),
        x: (&x, scale),
        y: (None, ""),
        layers,
        legend: &[],
        note: html! {},
        numbers: Table::new("Medians and intervals", drawn, &columns).html(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_intervals_make_a_plot() {
        let row = |name: &str, quantiles| Interval { name: name.to_owned(), quantiles };
        let odd = [f64::NAN, f64::INFINITY, f64::MAX];
        for rows in
            [vec![], vec![row("<i>", odd)], vec![row("a", [-1.0, 0.0, 2.0]), row("b", odd)], vec![row("x", [1.0; 3]); 900]]
        {
            let text = intervals("i", "scale of the priors", 0.9, &rows).into_string();
            assert!(!text.contains("NaN") && !text.contains("<i>") && text.len() < 80_000, "{text}");
        }
    }
}
