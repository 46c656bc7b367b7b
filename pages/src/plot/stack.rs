//! Lengths of time as bars one above the other, each made up of parts: where the time of a round or of an answer goes.

use maud::{Markup, html};

use super::axis::Axis;
use super::figure::{Field, Figure, at, figure};
use crate::table::{Cell, table};
use crate::text::plain;

/// Kinds of parts that can be told apart, by colour and by a pattern of the ground's.
const KINDS: usize = 6;
/// Most bars of one plot.
const MOST: usize = 60;
/// Height of one row, and of the bar in it.
const ROW: f64 = 26.0;
const BAR: f64 = 14.0;

/// A part of a bar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// What it is, counted from 0 in the plot's list.
    pub kind: usize,
    /// Its median and its 95% quantile, milliseconds. The bar shows the median.
    pub typical: (f64, f64),
}

/// A bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Whose it is.
    pub name: String,
    /// From left to right.
    pub parts: Vec<Part>,
}

/// Bars and what they are made up of.
#[derive(Debug, Clone, Copy)]
pub struct Stack<'a> {
    /// Distinguishes the plot from others on the page: letters, digits and `-`.
    pub id: &'a str,
    /// Above the plot.
    pub title: &'a str,
    /// Of what the medians are, as in "the latest answers".
    pub of: &'a str,
    /// The kinds of parts, at most six.
    pub kinds: &'a [&'a str],
    /// The bars; at most 60 are drawn.
    pub bars: &'a [Bar],
}

/// The plot of bars, with a legend of the kinds that occur.
#[must_use]
pub fn stack(of: &Stack<'_>) -> Markup {
    let bars = &of.bars[..of.bars.len().min(MOST)];
    let kinds: Vec<usize> = (0..of.kinds.len().min(KINDS)).filter(|kind| occurs(bars, *kind)).collect();
    let field = Field { left: 116.0, ..Field::new(620.0, bars.len() as f64 * ROW + 52.0) };
    let longest = bars.iter().map(|bar| bar.parts.iter().map(|part| length(part.typical.0)).sum::<f64>()).fold(0.0, f64::max);
    let x = Axis { least: 0.0, greatest: if longest > 0.0 { longest } else { 1.0 } };
    let more =
        if of.bars.len() > MOST { format!(" The first {MOST} of {} bars are drawn.", of.bars.len()) } else { String::new() };
    let words: Vec<String> = kinds.iter().map(|kind| of.kinds[*kind].to_owned()).collect();
    figure(&Figure {
        id: of.id,
        class: "chart stack",
        field,
        title: of.title,
        description: &format!(
            "Each bar is made up of {}: medians of {}, in milliseconds, which need not add up to the median of the whole.{more}",
            words.join("; "),
            of.of
        ),
        x: (&x, "milliseconds, medians"),
        y: (None, ""),
        layers: html! { @for (row, bar) in bars.iter().enumerate() { (drawn(bar, row, &field, &x)) } },
        legend: &[],
        note: legend(&kinds, of.kinds),
        numbers: numbers(bars, &kinds, of.kinds),
    })
}

/// A length of time that can be drawn.
fn length(ms: f64) -> f64 {
    if ms.is_finite() { ms.clamp(0.0, 1e12) } else { 0.0 }
}

fn occurs(bars: &[Bar], kind: usize) -> bool {
    bars.iter().any(|bar| bar.parts.iter().any(|part| part.kind == kind))
}

fn drawn(bar: &Bar, row: usize, field: &Field, x: &Axis) -> Markup {
    let top = field.top + row as f64 * ROW + (ROW - BAR) / 2.0;
    let middle = top + BAR / 2.0;
    let place = |ms: f64| field.x(x.share(ms).unwrap_or(0.0));
    let mut from = 0.0;
    let parts = bar.parts.iter().filter(|part| part.kind < KINDS).map(|part| {
        let ends = (place(from), place(from + length(part.typical.0)));
        from += length(part.typical.0);
        (part.kind, ends)
    });
    html! {
        text.tick x=(at(field.left - 6.0)) y=(at(middle + 3.5)) text-anchor="end" { (plain(&bar.name, 18)) }
        @for (kind, (left, right)) in parts {
            // Narrower than this it would be all pattern, or nothing.
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
    let mut header = vec![String::new()];
    header.extend(kinds.iter().flat_map(|kind| [format!("{}, median ms", names[*kind]), "95% within ms".to_owned()]));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let row = |bar: &Bar| {
        let of_kind = |kind: &usize| match bar.parts.iter().find(|part| part.kind == *kind) {
            Some(part) => [part.typical.0, part.typical.1].map(|ms| Cell::Number(millis(ms))),
            None => ["-", "-"].map(|none| Cell::Number(none.to_owned())),
        };
        std::iter::once(Cell::Name(bar.name.clone())).chain(kinds.iter().flat_map(of_kind)).collect::<Vec<_>>()
    };
    table("Where the time goes", &header, &bars.iter().map(row).collect::<Vec<_>>())
}

/// A length of time as it is shown beside the bars: microseconds where they are what matters.
#[must_use]
pub fn millis(ms: f64) -> String {
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
        stack(&Stack { id: "t", title: "Times", of: "the latest answers", kinds: &KINDS_OF, bars }).into_string()
    }

    fn bar(name: &str, parts: &[(usize, f64)]) -> Bar {
        let part = |(kind, ms): &(usize, f64)| Part { kind: *kind, typical: (*ms, 2.0 * ms) };
        Bar { name: name.to_owned(), parts: parts.iter().map(part).collect() }
    }

    #[test]
    fn parts_are_as_long_as_they_take_and_begin_where_the_one_before_ends() {
        let text = of(&[bar("<a>", &[(0, 3.0), (1, 1.0)]), bar("b", &[(0, 0.5)])]);
        // The field is 486 wide, for 4 ms.
        let (left, per_ms) = (116.0, (620.0 - 116.0 - 18.0) / 4.0);
        let place = |from: f64, ms: f64| format!("x=\"{}\" y=\"14\" width=\"{}\"", at(left + from * per_ms), at(ms * per_ms));
        for part in [
            place(0.0, 3.0),
            place(3.0, 1.0),
            "class=\"part p1\"".to_owned(),
            "class=\"hatch h1\"".to_owned(),
            "&lt;a&gt;".to_owned(),
            "wire &amp; queues, median ms".to_owned(),
            "<td class=\"n\">3.000</td><td class=\"n\">6.000</td>".to_owned(),
            "role=\"img\"".to_owned(),
            "milliseconds, medians".to_owned(),
        ] {
            assert!(text.contains(&part), "{part} in {text}");
        }
        // What does not occur is in neither legend nor table.
        assert!(!text.contains("other") && !text.contains("p2") && !text.contains("<a>"), "{text}");
    }

    #[test]
    fn nothing_that_it_is_given_breaks_it() {
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
        assert_eq!([0.0, 0.0214, 9.5, 10.04, f64::NAN].map(millis), ["0.000", "0.021", "9.500", "10.0", "-"]);
    }
}
