//! The columns of a forest plot's picture.

use super::rows::{Forest, ForestRow, figures};
use crate::plot::measure::width;

/// Font size of a picture.
pub(super) const SIZE: f64 = 13.0;
/// Height of a row's first line, and the width of an indentation.
pub(super) const ROW: f64 = 22.0;
const INDENT: f64 = 14.0;
/// Height of the axis with its labels.
pub(super) const AXIS: f64 = 40.0;
/// Widths of a picture for pages and of one for phones.
const WIDE: f64 = 860.0;
const NARROW: f64 = 350.0;
/// Distance between columns.
pub(super) const GAP: f64 = 14.0;
/// A bold text is at most this much wider.
pub(super) const BOLD: f64 = 1.16;

/// The columns of a picture.
pub(super) struct Layout {
    pub(super) width: f64,
    /// Greatest width of a label.
    pub(super) label: f64,
    /// Ends of the axis.
    pub(super) plot: (f64, f64),
    /// Right ends of the columns of figures, probabilities and noise; `None` if absent.
    pub(super) figures: f64,
    pub(super) above: Option<f64>,
    pub(super) noise: Option<f64>,
    /// Height of the figures' line below the label; 0 in a wide picture, in which all stands on one line.
    pub(super) below: f64,
}

impl Layout {
    pub(super) fn wide(of: &Forest<'_>) -> Self {
        let column = |heading: &str, widest: f64| (BOLD * width(heading, SIZE)).max(widest);
        let widest = of
            .estimates()
            .map(|estimate| width(&figures(estimate, of.quantity.is_ratio()), SIZE))
            .fold(width("1 (reference)", SIZE), f64::max);
        let noise = of.has_noise().then(|| column("noise", width("unknown", SIZE)));
        let above = of.has_above().then(|| column(&of.above_heading(), 0.0));
        let right = WIDE - 6.0;
        let above_right = right - noise.map_or(0.0, |noise| noise + GAP);
        let figures_right = above_right - above.map_or(0.0, |above| above + GAP);
        let plot_right = figures_right - column(&of.figures_heading(), widest) - 2.0 * GAP;
        let widths = of.rows.iter().map(|row| width(row.label(), SIZE) * boldness(row) + indent(row));
        // The axis takes at least a fifth of the picture.
        let label = widths.fold(80.0, f64::max).min(plot_right - 0.2 * WIDE - 2.0 * GAP).max(80.0);
        Self {
            width: WIDE,
            label,
            plot: (label + 8.0 + GAP, plot_right),
            figures: figures_right,
            above: above.map(|_| above_right),
            noise: noise.map(|_| right),
            below: 0.0,
        }
    }

    pub(super) fn narrow(of: &Forest<'_>) -> Self {
        let widest = of
            .estimates()
            .map(|estimate| width(&figures(estimate, of.quantity.is_ratio()), SIZE))
            .fold(width("1 (reference)", SIZE), f64::max);
        let right = NARROW - 4.0;
        let plot = (10.0, (right - widest - GAP).max(120.0));
        Self { width: NARROW, label: NARROW - 12.0, plot, figures: right, above: None, noise: None, below: 20.0 }
    }
}

/// Returns the indentation of a row's label.
pub(super) fn indent(row: &ForestRow) -> f64 {
    if row.is_indented() { INDENT } else { 0.0 }
}

/// Returns the factor by which a label's weight widens it.
pub(super) fn boldness(row: &ForestRow) -> f64 {
    if matches!(row, ForestRow::Heading(_)) { BOLD } else { 1.0 }
}
