//! Plots as SVG: of bounded size for any number of draws, legible on light and dark backgrounds, distinguished by both colour and
//! dashes, with their numbers in a table.
//!
//! The colours are those of Okabe & Ito (2008), "Color universal design", darkened or lightened for the page's background.

mod axis;
mod bars;
mod curves;
mod density;
mod effective;
mod figure;
mod forest;
mod intervals;
mod label;
mod measure;
mod noisy;
mod pairs;
mod path;
mod sample;
mod stack;
mod stages;
mod trace;

use maud::{Markup, html};

pub use axis::Axis;
pub use bars::{Budget, budget, spark, spark_text, spark_texts};
pub use curves::{Curve, CurvePoint, curves};
pub use density::{Densities, density};
pub use forest::{Estimate, Forest, ForestRow, ForestTable, Quantity, forest, forest_file};
pub use intervals::{Interval, intervals};
pub use noisy::{NoisyInterval, format_noise_share, noisy_intervals};
pub use pairs::{MAX_PARAMETERS, Pairs, pairs};
pub use sample::{Sample, evenly_spaced};
pub use stack::{Bar, Part, Stack, format_millis, stack};
pub use stages::{StageEstimate, Stages, stages};
pub use trace::{Trace, Traces, trace};

/// Returns the number of columns per trace that keeps a page small: all its traces together have about 34,000 columns at most.
#[must_use]
pub fn columns(traces: usize) -> usize {
    (34_000 / traces.max(1)).clamp(24, 300)
}

/// Arranges plots side by side if there is room.
#[must_use]
pub fn row(plots: &[Markup]) -> Markup {
    html! { div.plots { @for plot in plots { (plot) } } }
}
