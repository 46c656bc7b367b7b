//! A forest plot: the result of a regression as studies print it. One row per coefficient with its intervals on a common axis, and
//! the figures beside it.

mod layout;
mod rows;
mod scale;
mod svg;
mod table;

use maud::{Markup, html};

pub use rows::{Estimate, Forest, ForestRow, Quantity};
pub use table::ForestTable;

use super::figure::picture;
use crate::text::plain;

/// Greatest height of one picture: a printed page does not divide a picture.
const TALLEST: f64 = 700.0;

/// Renders the plot, a narrow one for phones, and its figures as a table.
#[must_use]
pub fn forest(of: &Forest<'_>) -> Markup {
    let title = format!("{}, median and {} interval", of.quantity.name, crate::ends::percentage(of.level));
    let description = of.description();
    let drawn = |narrow: bool| {
        let class = if narrow { "chart forest narrow" } else { "chart forest wide" };
        let pictures = svg::pictures(of, narrow, TALLEST);
        html! { @for (number, part) in pictures.iter().enumerate() {
            (picture(&format!("{}-{}{number}", of.id, if narrow { "n" } else { "w" }), class, part.size, (&title, &description), &part.content))
        } }
    };
    html! {
        figure.plot.divided id=(of.id) {
            (drawn(false))
            (drawn(true))
            figcaption { (plain(&of.caption(), usize::MAX)) }
            details { summary { "Numbers of this plot" } p { (description) } (ForestTable(of).table().html()) }
        }
    }
}

/// Returns the plot as an SVG file of its own, for light backgrounds.
#[must_use]
pub fn forest_file(of: &Forest<'_>) -> String {
    svg::file(of)
}

#[cfg(test)]
mod tests;
