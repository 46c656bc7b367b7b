//! Trace plots: a chain's range and running mean, in a bounded number of columns.

use maud::{Markup, html};

use super::axis::Axis;
use super::figure::{Field, Figure, class_of, figure};
use super::path::Path;
use crate::precision::by_sd;
use crate::table::{Cell, Table};
use crate::text::{plain_name, thousands};

/// The summary of consecutive draws.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Column {
    /// Least draw; above `greatest` if no draw was finite.
    least: f64,
    greatest: f64,
    /// Mean of all draws up to the last of this column.
    mean: f64,
}

impl Column {
    const EMPTY: Self = Self { least: f64::INFINITY, greatest: f64::NEG_INFINITY, mean: f64::NAN };

    fn with(self, later: Self) -> Self {
        let mean = if later.mean.is_nan() { self.mean } else { later.mean };
        Self { least: self.least.min(later.least), greatest: self.greatest.max(later.greatest), mean }
    }
}

/// The draws of one parameter in one chain, summarised online: the least and greatest draw of each column, and the running mean
/// at its end.
///
/// Memory is bounded for any number of draws: when all columns are in use, adjacent pairs are merged.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    columns: Vec<Column>,
    capacity: usize,
    width: u64,
    draws: u64,
    finite: u64,
    mean: f64,
    /// Sum of squared distances from the mean (Welford 1962).
    squares: f64,
}

impl Trace {
    /// Creates an empty trace of at most `columns` columns, which is raised to 2.
    #[must_use]
    pub fn new(columns: usize) -> Self {
        let capacity = columns.max(2).next_multiple_of(2);
        Self { columns: Vec::new(), capacity, width: 1, draws: 0, finite: 0, mean: f64::NAN, squares: 0.0 }
    }

    /// Creates the trace of a complete chain.
    #[must_use]
    pub fn from_draws(draws: &[f64], columns: usize) -> Self {
        let mut trace = Self::new(columns);
        // The width that just fits all draws, so that all columns are used.
        trace.width = (draws.len() as u64).div_ceil(trace.capacity as u64).max(1);
        draws.iter().for_each(|draw| trace.push(*draw));
        trace
    }

    /// Adds a draw.
    pub fn push(&mut self, draw: f64) {
        let mut column = Column::EMPTY;
        if draw.is_finite() {
            self.finite += 1;
            let before = if self.finite == 1 { draw } else { self.mean };
            self.mean = before + (draw - before) / self.finite as f64;
            self.squares += (draw - before) * (draw - self.mean);
            column = Column { least: draw, greatest: draw, mean: self.mean };
        }
        if self.draws.is_multiple_of(self.width) {
            if self.columns.len() == self.capacity {
                self.columns = self
                    .columns
                    .chunks(2)
                    .map(|pair| pair.iter().copied().reduce(Column::with).unwrap_or(Column::EMPTY))
                    .collect();
                self.width *= 2;
            }
            self.columns.push(column);
        } else if let Some(last) = self.columns.last_mut() {
            *last = last.with(column);
        }
        self.draws += 1;
    }

    /// Returns the number of draws so far.
    #[must_use]
    pub fn draws(&self) -> u64 {
        self.draws
    }

    /// Returns the mean of the finite draws so far; `NaN` before the first.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the standard deviation of the finite draws (divisor: count minus one); `NaN` for fewer than two.
    #[must_use]
    pub fn sd(&self) -> f64 {
        if self.finite < 2 { f64::NAN } else { (self.squares / (self.finite - 1) as f64).sqrt() }
    }

    /// Returns the least and the greatest draw.
    #[must_use]
    pub fn range(&self) -> (f64, f64) {
        let all = self.columns.iter().copied().fold(Column::EMPTY, Column::with);
        (all.least, all.greatest)
    }

    /// Returns the index of the draw in the middle of a column.
    fn middle(&self, column: usize) -> f64 {
        (column as f64 + 0.5) * self.width as f64 - 0.5
    }
}

/// The content of a trace plot.
#[derive(Debug, Clone, Copy)]
pub struct Traces<'a> {
    /// Distinguishes the plot from others on the page: letters, digits and `-`.
    pub id: &'a str,
    /// The parameter.
    pub parameter: &'a str,
    /// The scale, in a few words: `scale of the priors`.
    pub scale: &'a str,
    /// One entry per chain. Those after the eighth are drawn together as one grey band.
    pub chains: &'a [Trace],
    /// True for draws of the warm-up.
    pub warmup: bool,
}

const APART: usize = 8;

/// Plots for every chain the band of its draws and its running mean.
#[must_use]
pub fn trace(traces: &Traces<'_>) -> Markup {
    let Traces { id, scale, chains, warmup, .. } = *traces;
    let parameter = plain_name(traces.parameter);
    let draws = chains.iter().map(Trace::draws).max().unwrap_or(0);
    let x = Axis::between(0.0, draws.max(1) as f64);
    let y = Axis::around(chains.iter().flat_map(|chain| <[f64; 2]>::from(chain.range())));
    let field = Field::new(390.0, 180.0).beside(&y);
    let apart = &chains[..chains.len().min(APART)];
    let layers = html! {
        @if chains.len() > APART { path.rest d=(rest(&chains[APART..], &field, &x, &y)) {} }
        @for (series, chain) in apart.iter().enumerate() { path class={ "band " (class_of(series)) } d=(band(chain, &field, &x, &y)) {} }
        @for (series, chain) in apart.iter().enumerate() { path class={ "line " (class_of(series)) } d=(means(chain, &field, &x, &y)) {} }
    };
    let mut legend: Vec<String> = (1..=apart.len()).map(|chain| format!("chain {chain}")).collect();
    if chains.len() > APART {
        legend[0] += &format!(" (grey: range of chains {} to {})", APART + 1, chains.len());
    }
    figure(&Figure {
        id,
        class: "chart",
        field,
        title: &format!("Trace of {parameter}"),
        description: &format!(
            "Draws of {parameter} in order, {} per chain {} the warm-up. Bands: least and greatest of {} consecutive draws. Lines: \
             mean of all draws so far. Chains that mix cover the same band, and their means converge.",
            thousands(draws),
            if warmup { "in" } else { "after" },
            thousands(chains.first().map_or(1, |chain| chain.width)),
        ),
        x: (&x, "draw"),
        y: (Some(&y), scale),
        layers,
        legend: &legend,
        note: html! {},
        numbers: numbers(&parameter, chains),
    })
}

fn numbers(parameter: &str, chains: &[Trace]) -> Markup {
    let chains: Vec<(usize, &Trace)> = (1..).zip(chains).collect();
    let table = Table::new(
        format!("Draws of {parameter} by chain"),
        &chains,
        &[
            ("chain", &|(chain, _)| Cell::text(chain)),
            ("draws", &|(_, trace)| Cell::number(thousands(trace.draws))),
            ("mean", &|(_, trace)| Cell::number(by_sd(trace.mean, trace.sd()))),
            ("sd", &|(_, trace)| Cell::number(by_sd(trace.sd(), trace.sd()))),
            ("least", &|(_, trace)| Cell::number(by_sd(trace.range().0, trace.sd()))),
            ("greatest", &|(_, trace)| Cell::number(by_sd(trace.range().1, trace.sd()))),
        ],
    );
    table.html()
}

/// Draws the band, with one closed line for each run of columns with finite draws.
fn band(trace: &Trace, field: &Field, x: &Axis, y: &Axis) -> String {
    let mut path = Path::default();
    let filled = |column: &Column| column.least <= column.greatest;
    let mut at = 0;
    for stretch in trace.columns.chunk_by(|a, b| filled(a) == filled(b)) {
        let places = || stretch.iter().enumerate().map(|(i, column)| (trace.middle(at + i), column));
        if filled(&stretch[0]) {
            for (draw, column) in places() {
                to(&mut path, field, (x, y), (draw, column.greatest));
            }
            // With one draw per column the lower edge retraces the upper one. It is drawn nevertheless: a band is filled, and an
            // open line would be filled up to the straight line between its ends.
            for (draw, column) in places().rev() {
                to(&mut path, field, (x, y), (draw, column.least));
            }
            path.close();
        }
        path.lift();
        at += stretch.len();
    }
    path.finish()
}

fn means(trace: &Trace, field: &Field, x: &Axis, y: &Axis) -> String {
    let mut path = Path::default();
    for (column, summary) in trace.columns.iter().enumerate().filter(|(_, summary)| summary.mean.is_finite()) {
        let end = ((column as u64 + 1) * trace.width).min(trace.draws) as f64;
        to(&mut path, field, (x, y), (end, summary.mean));
    }
    path.finish()
}

/// Draws the joint range of several chains.
fn rest(chains: &[Trace], field: &Field, x: &Axis, y: &Axis) -> String {
    let Some(longest) = chains.iter().max_by_key(|chain| chain.columns.len()) else { return String::new() };
    let mut together = longest.clone();
    for chain in chains.iter().filter(|chain| chain.width == longest.width) {
        together.columns.iter_mut().zip(&chain.columns).for_each(|(a, b)| *a = a.with(*b));
    }
    band(&together, field, x, y)
}

fn to(path: &mut Path, field: &Field, (x, y): (&Axis, &Axis), (draw, value): (f64, f64)) {
    if let (Some(across), Some(up)) = (x.share(draw), y.share(value)) {
        path.to(field.x(across), field.y(up));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_statistics_are_exact() {
        let mut live = Trace::new(100);
        let values: Vec<f64> = (0..12_345).map(|i| ((i * 7919) % 1000) as f64).collect();
        values.iter().for_each(|x| live.push(*x));
        assert!(live.columns.len() <= 100 && live.columns.len() > 45, "{}", live.columns.len());
        assert_eq!((live.draws(), live.range()), (12_345, (0.0, 999.0)));
        let whole = Trace::from_draws(&values, 100);
        assert!(whole.columns.len() <= 100 && whole.columns.len() > 95);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        for trace in [&live, &whole] {
            assert!((trace.mean() - mean).abs() < 1e-9 && (trace.sd() - 288.7).abs() < 1.0);
        }
    }

    #[test]
    fn columns_summarise_their_draws() {
        let trace = Trace::from_draws(&[1.0, 3.0, f64::NAN, 2.0, f64::INFINITY, f64::NAN], 3);
        let of = |c: &Column| (c.least, c.greatest);
        // Three columns are rounded up to four, of two draws each.
        assert_eq!(trace.columns.iter().map(of).collect::<Vec<_>>()[..2], [(1.0, 3.0), (2.0, 2.0)]);
        assert_eq!((trace.mean(), trace.finite, trace.draws()), (2.0, 3, 6));
        assert!(trace.columns[2].least > trace.columns[2].greatest);
    }

    #[test]
    fn a_band_of_single_draws_encloses_nothing() {
        let (field, y) = (Field::new(390.0, 180.0), Axis::between(0.0, 4.0));
        let drawn = |draws: &[f64]| band(&Trace::from_draws(draws, 10), &field, &Axis::between(0.0, 3.0), &y);
        assert_eq!(drawn(&[1.0, 3.0, 2.0]), "M52 110l106.7-68l106.6 34l0 0l-106.6-34l-106.7 68Z");
        // A draw that is not finite breaks the band in two.
        assert_eq!(drawn(&[1.0, f64::NAN, 2.0]).matches('Z').count(), 2);
    }

    #[test]
    fn any_draws_make_a_plot_of_bounded_size() {
        let long: Vec<f64> = (0..200_000).map(|i| f64::from(i).sin()).collect();
        let odd = [vec![], vec![1.0], vec![2.0; 50], vec![f64::NAN; 9], vec![f64::MAX, f64::MIN, 0.0], long];
        for draws in &odd {
            for chains in [1, 4, 40] {
                let chains = vec![Trace::from_draws(draws, 200); chains];
                let text = trace(&Traces { id: "t", parameter: "<b>", scale: "x", chains: &chains, warmup: true }).into_string();
                assert!(!text.contains("NaN") && !text.contains("inf") && !text.contains("<b>"), "{text}");
                assert!(text.len() < 60_000, "{}", text.len());
            }
        }
        assert!(
            trace(&Traces { id: "t", parameter: "a", scale: "", chains: &[], warmup: false })
                .into_string()
                .contains("role=\"img\"")
        );
    }
}
