//! Labels of plots: their division into lines.

use maud::{Markup, html};

use super::figure::at;
use super::measure::{advance, width};
use crate::text::plain;

/// Maximum number of lines of a label; the last one of a longer label ends in an ellipsis.
const MOST_LINES: usize = 3;
/// Distance of two lines, in font sizes.
const LEADING: f64 = 1.2;

/// Divides a label into at most three lines of this width, preferably after a blank or a punctuation mark.
pub(super) fn wrap(text: &str, room: f64, size: f64) -> Vec<String> {
    let text = plain(text, usize::MAX);
    let mut rest: &str = text.trim();
    let mut lines = Vec::new();
    while !rest.is_empty() && lines.len() < MOST_LINES {
        let end = end_of_line(rest, room, size);
        if end < rest.len() && lines.len() + 1 == MOST_LINES {
            lines.push(shortened(rest, room, size));
            break;
        }
        lines.push(rest[..end].trim_end().to_owned());
        rest = rest[end..].trim_start();
    }
    lines
}

/// Returns the length in bytes of the text that fits on a line: at least one character.
fn end_of_line(text: &str, room: f64, size: f64) -> usize {
    let (mut used, mut fits, mut divides) = (0.0, 0, 0);
    for (start, c) in text.char_indices() {
        used += size * advance(c);
        if used > room && start > 0 {
            // A line that ends early would leave the others too long.
            return if divides * 3 > fits { divides } else { fits };
        }
        fits = start + c.len_utf8();
        if matches!(c, ' ' | '_' | '-' | ':' | '.' | ',' | '/' | ']' | '×') {
            divides = fits;
        }
    }
    text.len()
}

/// Returns as much of a text as fits with an ellipsis.
fn shortened(text: &str, room: f64, size: f64) -> String {
    let end = end_of_line(text, room - size * advance('…'), size);
    format!("{}…", text[..end].trim_end())
}

/// Labels of one size, all divided to the same width.
pub(super) struct Labels {
    texts: Vec<(String, Vec<String>)>,
    size: f64,
    /// The width of the widest line.
    pub(super) width: f64,
}

impl Labels {
    /// Divides labels into lines that are at most `room` wide.
    pub(super) fn new<'a>(texts: impl IntoIterator<Item = &'a str>, room: f64, size: f64) -> Self {
        Self::with_rooms(texts.into_iter().map(|text| (text, room)), size)
    }

    /// Divides labels into lines, each label with a width of its own.
    pub(super) fn with_rooms<'a>(texts: impl IntoIterator<Item = (&'a str, f64)>, size: f64) -> Self {
        let texts: Vec<_> = texts.into_iter().map(|(text, room)| (plain(text, usize::MAX), wrap(text, room, size))).collect();
        let widths = texts.iter().flat_map(|(_, lines)| lines).map(|line| width(line, size));
        let width = widths.fold(0.0, f64::max);
        Self { texts, size, width }
    }

    /// Returns their number.
    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    /// Returns the height of a label.
    pub(super) fn height(&self, index: usize) -> f64 {
        let lines = self.texts.get(index).map_or(1, |(_, lines)| lines.len().max(1));
        lines as f64 * LEADING * self.size
    }

    /// Returns the height of the highest label.
    pub(super) fn highest(&self) -> f64 {
        (0..self.texts.len()).map(|index| self.height(index)).fold(LEADING * self.size, f64::max)
    }

    /// Draws a label around the height `y`; `anchor` is the place of `x` in each line. Its title is the full text.
    pub(super) fn draw(&self, index: usize, class: &str, (x, y): (f64, f64), anchor: &str) -> Markup {
        let Some((text, lines)) = self.texts.get(index) else { return Markup::default() };
        let first = y - 0.5 * self.height(index) + 0.92 * self.size;
        html! {
            text class=(class) x=(at(x)) y=(at(first)) text-anchor=(anchor) {
                title { (text) }
                @for (number, line) in lines.iter().enumerate() {
                    tspan x=(at(x)) y=(at(first + number as f64 * LEADING * self.size)) { (line) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_divided_at_a_mark_and_never_wider_than_its_room() {
        let name = "emergency_department_short_stay:number_of_prior_admissions_12m";
        let lines = wrap(name, 200.0, 11.0);
        assert!(lines.len() > 1 && lines.len() <= MOST_LINES && lines.concat() == name, "{lines:?}");
        assert!(lines[0].ends_with(['_', ':']), "{lines:?}");
        for text in [name, "x", "", &"w".repeat(300), &"é".repeat(300), "a b c d e f g h i j k l m n o p q r s t u v w x y z"] {
            for room in [40.0, 100.0, 300.0] {
                let lines = wrap(text, room, 11.0);
                assert!(lines.len() <= MOST_LINES && lines.iter().all(|line| width(line, 11.0) <= room), "{room} {lines:?}");
            }
        }
        assert!(wrap(&"w".repeat(300), 100.0, 11.0)[2].ends_with('…'));
    }

    #[test]
    fn a_label_has_its_full_name_as_title() {
        let labels = Labels::new(["<b>_of_a_very_long_name_that_needs_lines", "x"], 90.0, 11.0);
        let text = labels.draw(0, "tick", (80.0, 50.0), "end").into_string();
        assert!(text.contains("<title>&lt;b&gt;_of_a_very_long_name_that_needs_lines</title>"), "{text}");
        assert_eq!(text.matches("<tspan").count(), 3, "{text}");
        assert!(labels.width <= 90.0 && labels.highest() > 2.0 * labels.height(1));
    }
}
