//! The picture of a forest plot.

use maud::{Markup, html};

use super::layout::{AXIS, BOLD, GAP, Layout, ROW, SIZE, boldness, indent};
use super::rows::{Estimate, Forest, ForestRow, figures};
use super::scale::Scale;
use crate::plot::figure::at;
use crate::plot::format_noise_share;
use crate::plot::label::Labels;
use crate::plot::measure::width;

/// A picture: width and height, and its content.
pub(super) struct Part {
    pub(super) size: (f64, f64),
    pub(super) content: Markup,
}

/// Draws the rows in pictures of at most this height, each with the axis.
pub(super) fn pictures(of: &Forest<'_>, narrow: bool, tallest: f64) -> Vec<Part> {
    let layout = if narrow { Layout::narrow(of) } else { Layout::wide(of) };
    let labels = labels(of, &layout);
    let scale = Scale::of(of);
    let height = |row: usize| row_height(of, &labels, row, &layout);
    let mut parts = Vec::new();
    let mut from = 0;
    while from < of.rows.len() {
        let mut used = height(from);
        let mut to = from + 1;
        while to < of.rows.len() && used + height(to) + AXIS + ROW <= tallest {
            used += height(to);
            to += 1;
        }
        parts.push(part(of, &layout, &labels, &scale, from..to));
        from = to;
    }
    parts
}

fn labels(of: &Forest<'_>, layout: &Layout) -> Labels {
    let room = |row: &ForestRow| (layout.label - indent(row)) / boldness(row);
    Labels::with_rooms(of.rows.iter().map(|row| (row.label(), room(row))), SIZE)
}

fn row_height(of: &Forest<'_>, labels: &Labels, row: usize, layout: &Layout) -> f64 {
    let below = if matches!(of.rows.get(row), Some(ForestRow::Heading(_))) { 0.0 } else { layout.below };
    (labels.height(row) + 6.0).max(ROW) + below
}

/// Draws the heading, some rows, and the axis below them.
fn part(of: &Forest<'_>, layout: &Layout, labels: &Labels, scale: &Scale, rows: std::ops::Range<usize>) -> Part {
    let mut tops = vec![ROW];
    for row in rows.clone() {
        tops.push(tops[tops.len() - 1] + row_height(of, labels, row, layout));
    }
    let bottom = tops[tops.len() - 1];
    let content = html! {
        (heading(of, layout))
        @for number in 0..rows.len() {
            @if number % 2 == 0 {
                rect.stripe x="0" y=(at(tops[number])) width=(at(layout.width)) height=(at(tops[number + 1] - tops[number])) {}
            }
        }
        @if layout.below == 0.0 { (neutral(of, layout, scale, ROW, bottom)) }
        @for (number, row) in rows.enumerate() {
            (drawn(of, layout, scale, labels, row, (tops[number], tops[number + 1])))
        }
        (axis(of, layout, scale, bottom))
    };
    Part { size: (layout.width, bottom + AXIS), content }
}

/// Returns the position of a share of the axis.
fn place(layout: &Layout, share: f64) -> f64 {
    layout.plot.0 + share * (layout.plot.1 - layout.plot.0)
}

fn heading(of: &Forest<'_>, layout: &Layout) -> Markup {
    let middle = 0.5 * (layout.plot.0 + layout.plot.1);
    let scale = if of.quantity.is_ratio() { " (log scale)" } else { "" };
    let name = format!("{}{scale}", of.quantity.name);
    let is_short = |name: &str| BOLD * width(name, SIZE) <= layout.plot.1 - layout.plot.0 + GAP;
    let name = if is_short(&name) { name } else { of.quantity.short.clone() };
    html! {
        @if layout.below == 0.0 {
            text.head x="8" y="15" { "Predictor" }
            text.head x=(at(middle)) y="15" text-anchor="middle" { (name) }
        } @else {
            text.head x="8" y="15" { (of.quantity.short) @if of.quantity.is_ratio() { " (log scale)" } }
        }
        text.head x=(at(layout.figures)) y="15" text-anchor="end" { (of.figures_heading()) }
        @if let Some(right) = layout.above { text.head x=(at(right)) y="15" text-anchor="end" { (of.above_heading()) } }
        @if let Some(right) = layout.noise { text.head x=(at(right)) y="15" text-anchor="end" { "noise" } }
    }
}

/// Draws the line of the neutral value between two heights.
fn neutral(of: &Forest<'_>, layout: &Layout, scale: &Scale, top: f64, bottom: f64) -> Markup {
    let x = of.quantity.neutral.and_then(|value| scale.share(value)).map(|share| place(layout, share));
    html! { @if let Some(x) = x { path.zero d={ "M" (at(x)) " " (at(top)) "V" (at(bottom)) } {} } }
}

/// Draws one row between two heights.
fn drawn(of: &Forest<'_>, layout: &Layout, scale: &Scale, labels: &Labels, index: usize, (top, bottom): (f64, f64)) -> Markup {
    let row = &of.rows[index];
    let has_line_below = layout.below > 0.0 && !matches!(row, ForestRow::Heading(_));
    let (middle, line) = match has_line_below {
        true => (0.5 * (top + bottom - layout.below), bottom - 0.5 * layout.below - 2.0),
        false => (0.5 * (top + bottom), 0.5 * (top + bottom)),
    };
    let class = if matches!(row, ForestRow::Heading(_)) { "head" } else { "name" };
    let figure = |right: f64, class: &str, words: &str| html! { text class=(class) x=(at(right)) y=(at(line + 4.5)) text-anchor="end" { (words) } };
    html! {
        (labels.draw(index, class, (8.0 + indent(row), middle), "start"))
        // In a narrow picture the line would cross the labels.
        @if has_line_below { (neutral(of, layout, scale, line - 9.0, line + 9.0)) }
        @match row {
            ForestRow::Heading(_) => {}
            ForestRow::Reference(_) => {
                @if let Some(x) = of.quantity.neutral.and_then(|value| scale.share(value)) {
                    rect.mean x=(at(place(layout, x) - 4.0)) y=(at(line - 4.0)) width="8" height="8" {}
                }
                @let words = of.quantity.neutral.map_or_else(|| "reference".to_owned(), |value| format!("{value} (reference)"));
                (figure(layout.figures, "quiet", &words))
            }
            ForestRow::Estimate(estimate) => {
                (marks(layout, scale, estimate, line))
                (figure(layout.figures, "figure", &figures(estimate, of.quantity.is_ratio())))
                @if let Some(right) = layout.above { (figure(right, "figure", &estimate.above_words())) }
                @if let Some(right) = layout.noise { (figure(right, "quiet", &estimate.noise.map_or_else(|| "unknown".to_owned(), format_noise_share))) }
            }
        }
    }
}

/// Draws an interval, its inner half, and the median.
fn marks(layout: &Layout, scale: &Scale, estimate: &Estimate, y: f64) -> Markup {
    let x = |value: f64| scale.share(value).map(|share| place(layout, share));
    html! {
        @if let [Some(low), Some(high)] = estimate.ends.map(x) { path.whisker d={ "M" (at(low)) " " (at(y)) "H" (at(high)) } {} }
        @if let Some([Some(low), Some(high)]) = estimate.half.map(|half| half.map(x)) {
            path.half d={ "M" (at(low)) " " (at(y)) "H" (at(high)) } {}
        }
        @if let Some(middle) = x(estimate.median) { circle.median cx=(at(middle)) cy=(at(y)) r="4" {} }
    }
}

/// Draws the axis with its ticks, and the words at both sides of the neutral value.
fn axis(of: &Forest<'_>, layout: &Layout, scale: &Scale, top: f64) -> Markup {
    let (left, right) = layout.plot;
    let y = top + 4.0;
    let neutral = of.quantity.neutral.and_then(|value| scale.share(value)).map(|share| place(layout, share));
    let [below, above] = &of.quantity.sides;
    let words = [format!("← {below}"), format!("{above} →")];
    // The words stand where they neither overlap nor leave the picture.
    let fits = |x: f64| x - 8.0 - width(&words[0], SIZE) >= 2.0 && x + 8.0 + width(&words[1], SIZE) <= layout.width - 2.0;
    html! {
        path.axis d={ "M" (at(left)) " " (at(y)) "H" (at(right)) } {}
        @for (share, text) in scale.ticks(right - left, SIZE) {
            path.axis d={ "M" (at(place(layout, share))) " " (at(y)) "v4" } {}
            text.quiet x=(at(place(layout, share))) y=(at(y + 16.0)) text-anchor="middle" { (text) }
        }
        @if let Some(x) = neutral.filter(|x| !below.is_empty() && fits(*x)) {
            text.quiet x=(at(x - 8.0)) y=(at(y + 31.0)) text-anchor="end" { (words[0]) }
            text.quiet x=(at(x + 8.0)) y=(at(y + 31.0)) text-anchor="start" { (words[1]) }
        }
    }
}

/// The look of a file of its own.
const FILE_STYLE: &str = "text{font:13px \"Segoe UI\",\"Helvetica Neue\",Arial,sans-serif;fill:#1b1f24}.head{font-weight:600}.quiet{fill:#565d66}\
    .stripe{fill:#f5f6f8}.zero{stroke:#565d66;stroke-dasharray:2 3;fill:none}.axis{stroke:#565d66;fill:none}.whisker{stroke:#0072b2;stroke-width:1.6;fill:none}\
    .half{stroke:#0072b2;stroke-width:6;fill:none}.median{fill:#fff;stroke:#0072b2;stroke-width:1.6}.mean{fill:#fff;stroke:#1b1f24;stroke-width:1.2}";

/// Returns the whole plot as one SVG file.
pub(super) fn file(of: &Forest<'_>) -> String {
    let Some(part) = pictures(of, false, f64::INFINITY).pop() else { return String::new() };
    let (width, height) = (at(part.size.0), at(part.size.1));
    let drawn = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } role="img" {
            title { (crate::text::plain(&of.caption(), usize::MAX)) }
            style { (maud::PreEscaped(FILE_STYLE)) }
            rect width="100%" height="100%" fill="#fff" {}
            (part.content)
        }
    };
    drawn.into_string()
}
