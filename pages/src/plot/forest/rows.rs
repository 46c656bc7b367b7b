//! The rows of a forest plot.

use crate::ends::{headings, percentage};
use crate::precision::{by_width, probability, ratio};

/// The quantity of a plot's axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantity {
    /// Its name, at the head of the axis: `Odds ratio`.
    pub name: String,
    /// Its short name, at the head of the figures: `OR`.
    pub short: String,
    /// The value of no effect: 1 for ratios, 0 for differences; `None` for a parameter without one.
    pub neutral: Option<f64>,
    /// The words at both sides of the neutral value: `lower odds`, `higher odds`.
    pub sides: [String; 2],
}

impl Quantity {
    /// Returns true for a ratio, whose axis is logarithmic.
    pub(super) fn is_ratio(&self) -> bool {
        self.neutral == Some(1.0)
    }
}

/// The figures of one coefficient.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// The label.
    pub label: String,
    /// True for a level below the heading of its factor.
    pub indented: bool,
    /// The median; `NaN` if unknown.
    pub median: f64,
    /// Both ends of the interval of the plot's level; `NaN` if unknown.
    pub ends: [f64; 2],
    /// Both ends of the central 50% interval, if known.
    pub half: Option<[f64; 2]>,
    /// The probability of a value above the neutral one, if known.
    pub above: Option<f64>,
    /// The number of effective draws, which limits the digits of the probability; `NaN` if unknown.
    pub effective: f64,
    /// The share of the variance due to the noise, if known.
    pub noise: Option<f64>,
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub enum ForestRow {
    /// A factor, or a coefficient that varies by party.
    Heading(String),
    /// A factor's reference level.
    Reference(String),
    /// A coefficient.
    Estimate(Estimate),
}

impl ForestRow {
    /// Returns the label.
    #[must_use]
    pub fn label(&self) -> &str {
        match self {
            Self::Heading(label) | Self::Reference(label) => label,
            Self::Estimate(estimate) => &estimate.label,
        }
    }

    /// Returns true for a row below a heading.
    pub(super) fn is_indented(&self) -> bool {
        match self {
            Self::Heading(_) => false,
            Self::Reference(_) => true,
            Self::Estimate(estimate) => estimate.indented,
        }
    }

    /// Returns the figures, if the row has any.
    #[must_use]
    pub fn estimate(&self) -> Option<&Estimate> {
        if let Self::Estimate(estimate) = self { Some(estimate) } else { None }
    }
}

/// The content of a forest plot.
#[derive(Debug, Clone)]
pub struct Forest<'a> {
    /// Distinguishes the plot from others on the page: letters, digits and `-`.
    pub id: &'a str,
    /// The quantity of the axis.
    pub quantity: Quantity,
    /// The level of the intervals.
    pub level: f64,
    /// The rows from top to bottom.
    pub rows: Vec<ForestRow>,
    /// The sentence below the plot, without the words on its lines.
    pub subject: String,
}

impl Forest<'_> {
    /// Returns true if any row states the share of the noise.
    pub(super) fn has_noise(&self) -> bool {
        self.estimates().any(|estimate| estimate.noise.is_some())
    }

    /// Returns true if any row has a 50% interval.
    pub(super) fn has_half(&self) -> bool {
        self.estimates().any(|estimate| estimate.half.is_some())
    }

    /// Returns true if any row states the probability of a value above the neutral one.
    pub(super) fn has_above(&self) -> bool {
        self.quantity.neutral.is_some() && self.estimates().any(|estimate| estimate.above.is_some())
    }

    pub(super) fn estimates(&self) -> impl Iterator<Item = &Estimate> {
        self.rows.iter().filter_map(ForestRow::estimate)
    }

    /// Returns the heading of the figures: `OR [5%, 95%]`.
    pub(super) fn figures_heading(&self) -> String {
        let [low, high] = headings(self.level);
        format!("{} [{low}, {high}]", self.quantity.short)
    }

    /// Returns the heading of the probabilities: `Pr(OR > 1)`.
    pub(super) fn above_heading(&self) -> String {
        format!("Pr({} > {})", self.quantity.short, self.quantity.neutral.unwrap_or(0.0))
    }

    /// Returns the caption.
    #[must_use]
    pub fn caption(&self) -> String {
        let bar = if self.has_half() { ", bar 50%" } else { "" };
        let scale = if self.quantity.is_ratio() { "; logarithmic scale" } else { "" };
        format!("{} Circle: posterior median; line {}{bar} interval{scale}.", self.subject, percentage(self.level))
    }

    /// Returns the description for screen readers.
    pub(super) fn description(&self) -> String {
        let row = |estimate: &Estimate| format!("{}: {}", estimate.label, figures(estimate, self.quantity.is_ratio()));
        let rows: Vec<String> = self.estimates().take(60).map(row).collect();
        let more = if self.estimates().count() > rows.len() { "; more in the table" } else { "" };
        crate::text::plain(&format!("{} {}: {}{more}.", self.caption(), self.figures_heading(), rows.join("; ")), usize::MAX)
    }
}

impl Estimate {
    /// Formats the probability; `-` if it is not known.
    pub(super) fn above_words(&self) -> String {
        self.above.map_or_else(|| "-".to_owned(), |p| probability(p, self.effective))
    }
}

/// Formats a row's median and interval: `0.96 [0.86, 1.08]`.
pub(super) fn figures(estimate: &Estimate, is_ratio: bool) -> String {
    let [low, high] = estimate.ends;
    let show = |x: f64| if is_ratio { ratio(x, high - low) } else { shown(x, high - low) };
    format!("{} [{}, {}]", show(estimate.median), show(low), show(high))
}

/// Formats a figure by the width of its interval, with a minus sign.
pub(super) fn shown(x: f64, width: f64) -> String {
    let text = by_width(x, width);
    if text.len() > 1 && !text.contains('e') { text.replace('-', "−") } else { text }
}
