//! Stacked bars of durations: the breakdown of the time of a round or an answer.

use maud::{Markup, html};

use super::axis::Axis;
use super::figure::{Field, Figure, at, figure, left_out};
use super::label::Labels;
use super::measure::TICK;
use crate::table::{Cell, Table};

/// Number of kinds of parts distinguishable by colour and pattern.
const KINDS: usize = 6;
/// Maximum number of bars in a plot.
const MAX_BARS: usize = 60;
/// Height of one row, and of the bar in it.
const ROW: f64 = 26.0;
const BAR: f64 = 14.0;
/// Greatest width of a label.
const LABEL: f64 = 170.0;

/// A part of a bar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// The index of its kind in the plot's list.
    pub kind: usize,
    /// The median and the 95% quantile in milliseconds. The bar shows the median.
    pub quantiles: (f64, f64),
}

/// A bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// The bar's label.
    pub name: String,
    /// The parts from left to right.
    pub parts: Vec<Part>,
}

/// The content of a plot of stacked bars.
#[derive(Debug, Clone, Copy)]
pub struct Stack<'a> {
    /// Distinguishes the plot from others on the page: letters, digits and `-`.
    pub id: &'a str,
    /// The title of the plot.
    pub title: &'a str,
    /// The measured events, as in "the latest answers".
    pub events: &'a str,
    /// The kinds of parts, at most six.
    pub kinds: &'a [&'a str],
    /// The bars; at most 60 are drawn.
    pub bars: &'a [Bar],
}

/// Plots the bars, with a legend of the kinds that occur.
#[must_use]
pub fn stack(of: &Stack<'_>) -> Markup {
    let bars = &of.bars[..of.bars.len().min(MAX_BARS)];
    let kinds: Vec<usize> = (0..of.kinds.len().min(KINDS)).filter(|kind| occurs(bars, *kind)).collect();
    let labels = Labels::new(bars.iter().map(|bar| bar.name.as_str()), LABEL, TICK);
    let row = ROW.max(labels.highest() + 4.0);
    let field = Field { left: (labels.width + 10.0).max(60.0), ..Field::new(620.0, bars.len() as f64 * row + 52.0) };
    let longest = bars.iter().map(|bar| bar.parts.iter().map(|part| length(part.quantiles.0)).sum::<f64>()).fold(0.0, f64::max);
    let x = Axis { least: 0.0, greatest: if longest > 0.0 { longest } else { 1.0 } };
    let more = left_out(MAX_BARS, of.bars.len(), "bars");
    let words: Vec<String> = kinds.iter().map(|kind| of.kinds[*kind].to_owned()).collect();
    figure(&Figure {
        id: of.id,
        class: "chart stack",
        field,
        title: of.title,
        description: &format!(
            "Each bar consists of {}: medians over {}, in milliseconds, which need not add up to the median of the total.{more}",
            words.join("; "),
            of.events
        ),
        x: (&x, "milliseconds, medians"),
        y: (None, ""),
        layers: html! { @for (index, bar) in bars.iter().enumerate() {
            @let middle = field.top + (index as f64 + 0.5) * row;
            (labels.draw(index, "tick", (field.left - 6.0, middle), "end"))
            (drawn(bar, middle, &field, &x))
        } },
        legend: &[],
        note: legend(&kinds, of.kinds),
        numbers: numbers(bars, &kinds, of.kinds),
    })
}

/// Clamps a duration to a range that can be drawn.
fn length(ms: f64) -> f64 {
    if ms.is_finite() { ms.clamp(0.0, 1e12) } else { 0.0 }
}

fn occurs(bars: &[Bar], kind: usize) -> bool {
    bars.iter().any(|bar| bar.parts.iter().any(|part| part.kind == kind))
}

fn drawn(bar: &Bar, middle: f64, field: &Field, x: &Axis) -> Markup {
    let top = middle - BAR / 2.0;
    let place = |ms: f64| field.x(x.share(ms).unwrap_or(0.0));
    let mut from = 0.0;
    let parts = bar.parts.iter().filter(|part| part.kind < KINDS).map(|part| {
        let ends = (place(from), place(from + length(part.quantiles.0)));
        from += length(part.quantiles.0);
        (part.kind, ends)
    });
    html! {
        @for (kind, (left, right)) in parts {
            // A narrower part would show only its pattern, or nothing.
            @if right - left >= 0.1 {
                rect class={ "part p" (kind) } x=(at(left)) y=(at(top)) width=(at(right - left)) height=(at(BAR)) {}
                path class={ "hatch h" (kind) } d={ "M" (at(left)) " " (at(middle)) "H" (at(right)) } {}
            }
        }
    }
}

fn legend(kinds: &[usize], names: &[&str]) -> Markup {
    html! {
        ul.legend { @for kind in kinds { li {
            svg viewBox="0 0 24 8" aria-hidden="true" {
                rect class={ "part p" (kind) } width="24" height="8" {}
                path class={ "hatch h" (kind) } d="M0 4H24" {}
            }
            " " (names[*kind])
        } } }
    }
}

fn numbers(bars: &[Bar], kinds: &[usize], names: &[&str]) -> Markup {
    let mut table = Table::new("Where the time goes", bars, &[("", &|bar| Cell::name(&bar.name))]);
    for kind in kinds {
        let part =
            |bar: &Bar| bar.parts.iter().find(|part| part.kind == *kind).map_or((f64::NAN, f64::NAN), |part| part.quantiles);
        table.push(format!("{}, median ms", names[*kind]), bars.iter().map(|bar| Cell::number(format_millis(part(bar).0))));
        table.push("95% within ms", bars.iter().map(|bar| Cell::number(format_millis(part(bar).1))));
    }
    table.html()
}

/// Formats a duration in milliseconds; short ones include microseconds.
#[must_use]
pub fn format_millis(ms: f64) -> String {
    match ms {
        ms if !ms.is_finite() => "-".to_owned(),
        ms if ms < 10.0 => format!("{ms:.3}"),
        ms => format!("{ms:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS_OF: [&str; 3] = ["held", "wire & queues", "other"];

    fn of(bars: &[Bar]) -> String {
        stack(&Stack { id: "t", title: "Times", events: "the latest answers", kinds: &KINDS_OF, bars }).into_string()
    }

    fn bar(name: &str, parts: &[(usize, f64)]) -> Bar {
        let part = |(kind, ms): &(usize, f64)| Part { kind: *kind, quantiles: (*ms, 2.0 * ms) };
        Bar { name: name.to_owned(), parts: parts.iter().map(part).collect() }
    }

    #[test]
    fn parts_are_proportional_and_adjacent() {
        let text = of(&[bar("<a>", &[(0, 3.0), (1, 1.0)]), bar("b", &[(0, 0.5)])]);
        // The field is 542 wide, for 4 ms.
        let (left, per_ms) = (60.0, (620.0 - 60.0 - 18.0) / 4.0);
        let place = |from: f64, ms: f64| format!("x=\"{}\" y=\"14\" width=\"{}\"", at(left + from * per_ms), at(ms * per_ms));
        for part in [
            place(0.0, 3.0),
            place(3.0, 1.0),
            "class=\"part p1\"".to_owned(),
            "class=\"hatch h1\"".to_owned(),
            "&lt;a&gt;".to_owned(),
            "wire &amp; queues, median ms".to_owned(),
            ">3.000</td>".to_owned(),
            ">6.000</td>".to_owned(),
            "role=\"img\"".to_owned(),
            "milliseconds, medians".to_owned(),
        ] {
            assert!(text.contains(&part), "{part} in {text}");
        }
        // An absent kind is in neither legend nor table.
        assert!(!text.contains("other") && !text.contains("p2") && !text.contains("<a>"), "{text}");
    }

    #[test]
    fn any_durations_make_a_plot() {
        for odd in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300, 1e-9] {
            let text = of(&[bar("a", &[(0, odd), (1, 1.0), (7, 1.0)]), bar("b", &[])]);
            assert!(!text.contains("NaN") && !text.contains("inf") && !text.contains("width=\"-"), "{text}");
        }
        assert!(of(&[]).contains("<figure"));
        let many: Vec<Bar> = (0..100).map(|i| bar(&format!("party {i}"), &[(0, 1.0)])).collect();
        let text = of(&many);
        assert!(text.contains("The first 60 of 100 bars") && !text.contains("party 60<"), "{text}");
    }

    #[test]
    fn short_times_keep_their_microseconds() {
        assert_eq!([0.0, 0.0214, 9.5, 10.04, f64::NAN].map(format_millis), ["0.000", "0.021", "9.500", "10.0", "-"]);
    }
}
