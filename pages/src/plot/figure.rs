//! Common parts of all plots: a frame with axes, a title and a description for screen readers, a legend, and the numbers.

use maud::{Markup, html};

use super::axis::Axis;
use super::measure::{TICK, width};

/// Number of series distinguishable by colour and dashes, after which the styles repeat.
pub(super) const SERIES: usize = 8;

/// The size of a plot and its margins, in pixels at its natural size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) left: f64,
    pub(super) bottom: f64,
    pub(super) top: f64,
    pub(super) right: f64,
}

impl Field {
    /// Creates a field with room for an axis on the left and below.
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self { width, height, left: 52.0, bottom: 36.0, top: 8.0, right: 18.0 }
    }

    /// Widens the left margin to the labels of a vertical axis.
    pub(super) fn beside(self, axis: &Axis) -> Self {
        let widest = axis.ticks(down(&self)).iter().map(|(_, text)| width(text, TICK)).fold(0.0, f64::max);
        Self { left: self.left.max(widest + 22.0), ..self }
    }

    /// Returns the position of a fraction of the horizontal axis.
    pub(super) fn x(&self, share: f64) -> f64 {
        self.left + share * (self.width - self.left - self.right)
    }

    /// Returns the position of a fraction of the vertical axis, which grows upwards.
    pub(super) fn y(&self, share: f64) -> f64 {
        self.height - self.bottom - share * (self.height - self.bottom - self.top)
    }
}

/// The parts of a plot. Its texts are plain; names in them must have passed [`crate::text::plain_name`].
pub(super) struct Figure<'a> {
    /// Distinguishes the plot's elements from those of other plots on the page: letters, digits and `-`.
    pub(super) id: &'a str,
    /// The class of the picture.
    pub(super) class: &'a str,
    pub(super) field: Field,
    pub(super) title: &'a str,
    pub(super) description: &'a str,
    pub(super) x: (&'a Axis, &'a str),
    /// The vertical axis and its label; `None` for a direction without numbers.
    pub(super) y: (Option<&'a Axis>, &'a str),
    pub(super) layers: Markup,
    /// The name of each series, in the order of the classes.
    pub(super) legend: &'a [String],
    /// A note below the plot.
    pub(super) note: Markup,
    /// The plot's numbers as a table.
    pub(super) numbers: Markup,
}

/// Formats a coordinate with at most one decimal.
pub(super) fn at(x: f64) -> String {
    let text = format!("{x:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Returns the class for a series' colour and dashes.
pub(super) fn class_of(series: usize) -> String {
    format!("s{}", series % SERIES)
}

/// Builds a picture with a title and a description for screen readers.
pub(super) fn picture(id: &str, class: &str, size: (f64, f64), texts: (&str, &str), content: &Markup) -> Markup {
    let (title, description) = texts;
    html! {
        svg class=(class) viewBox={ "0 0 " (at(size.0)) " " (at(size.1)) } role="img"
            aria-labelledby={ (id) "-title" } aria-describedby={ (id) "-desc" } {
            title id={ (id) "-title" } { (title) }
            desc id={ (id) "-desc" } { (description) }
            (content)
        }
    }
}

/// Assembles a plot.
pub(super) fn figure(figure: &Figure<'_>) -> Markup {
    let Figure { id, class, field, title, description, layers, legend, note, numbers, .. } = figure;
    let content = html! { (axes(figure)) (layers) };
    let drawn = picture(id, class, (field.width, field.height), (title, description), &content);
    framed(id, (title, description), &drawn, &html! { (legend_of(legend, "line")) (note) }, numbers)
}

/// Builds a figure of pictures with a title, a description and their numbers.
pub(super) fn framed(
    id: &str,
    (title, description): (&str, &str),
    pictures: &Markup,
    below: &Markup,
    numbers: &Markup,
) -> Markup {
    html! {
        figure.plot id=(id) {
            figcaption { (title) }
            (pictures)
            (below)
            details { summary { "Numbers of this plot" } p { (description) } (numbers) }
        }
    }
}

/// Returns the sentence that says how many items of a plot are drawn; empty if all of them are.
pub(super) fn left_out(drawn: usize, all: usize, items: &str) -> String {
    if all > drawn { format!(" The first {drawn} of {all} {items} are drawn.") } else { String::new() }
}

/// Builds the legend: each series' name beside a sample of its `line` or colour (`swatch`). A single series needs none: the plot's title
/// names it.
pub(super) fn legend_of(names: &[String], sample: &str) -> Markup {
    html! { @if names.len() > 1 { (samples(names, sample)) } }
}

/// Builds the list of the series' names, each beside its sample.
pub(super) fn samples(names: &[String], sample: &str) -> Markup {
    html! {
        ul.legend { @for (series, name) in names.iter().enumerate() {
            li {
                svg viewBox="0 0 24 8" aria-hidden="true" { path class={ (sample) " " (class_of(series)) } d="M4 4h16" {} }
                " " (name)
            }
        } }
    }
}

/// Returns the number of ticks for which a vertical axis has room.
fn down(field: &Field) -> usize {
    ((field.y(0.0) - field.y(1.0)) / 32.0).max(2.0) as usize
}

fn axes(figure: &Figure<'_>) -> Markup {
    let field = &figure.field;
    let (left, right) = (field.x(0.0), field.x(1.0));
    let (bottom, top) = (field.y(0.0), field.y(1.0));
    let place = |axis: &Axis, wanted: usize| -> Vec<(f64, String)> {
        let ticks = axis.ticks(wanted);
        ticks.into_iter().filter_map(|(value, text)| Some((axis.share(value)?, text))).collect()
    };
    // A label is about 40 units wide and 25 high.
    let across = ((right - left) / 55.0).max(2.0) as usize;
    let down = down(field);
    html! {
        @if let Some(axis) = figure.y.0 {
            @for (share, text) in place(axis, down) {
                path.grid d={ "M" (at(left)) " " (at(field.y(share))) "H" (at(right)) } {}
                text.tick x=(at(left - 5.0)) y=(at(field.y(share) + 3.5)) text-anchor="end" { (text) }
            }
        }
        @for (share, text) in place(figure.x.0, across) {
            path.grid d={ "M" (at(field.x(share))) " " (at(bottom)) "v4" } {}
            text.tick x=(at(field.x(share))) y=(at(bottom + 15.0)) text-anchor="middle" { (text) }
        }
        path.axis d={ "M" (at(left)) " " (at(top)) "V" (at(bottom)) "H" (at(right)) } {}
        text.label x=(at((left + right) / 2.0)) y=(at(field.height - 4.0)) text-anchor="middle" { (figure.x.1) }
        text.label x="0" y="0" text-anchor="middle" transform={ "translate(10 " (at((top + bottom) / 2.0)) ") rotate(-90)" } { (figure.y.1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        assert_eq!([1.0, 1.25, -0.5].map(at), ["1", "1.2", "-0.5"]);
    }
}
