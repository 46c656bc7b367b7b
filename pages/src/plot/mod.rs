//! Plots as SVG: small however many draws they show, legible in light and dark, by colour and by dashes, with their numbers in a table.
//!
//! Colours are those of Okabe & Ito (2008), "Color universal design", darkened or lightened where the page's background asks for it.

mod axis;
mod bars;
mod density;
mod figure;
mod intervals;
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
pub use density::{Densities, density};
pub use intervals::{Interval, intervals};
pub use noisy::{NoisyInterval, noisy_intervals, share_of_noise};
pub use pairs::{MOST_PARAMETERS, Pairs, pairs};
pub use sample::{Sample, evenly};
pub use stack::{Bar, Part, Stack, millis, stack};
pub use stages::{LearntStage, Stages, stages};
pub use trace::{Trace, Traces, trace};

/// How many columns each trace of a page may have so that the page stays small: all traces together have at most some 34,000.
#[must_use]
pub fn columns(traces: usize) -> usize {
    (34_000 / traces.max(1)).clamp(24, 300)
}

/// Plots beside each other where there is room.
#[must_use]
pub fn row(plots: &[Markup]) -> Markup {
    html! { div.plots { @for plot in plots { (plot) } } }
}
