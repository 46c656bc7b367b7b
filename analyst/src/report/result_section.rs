//! The result: the forest plot, its figures to copy, and the picture to save.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conclave_pages::plot::{Forest, ForestTable, forest_file};
use conclave_pages::verdict::Verdict;
use conclave_pages::{plot, released};
use maud::{Markup, html};

use super::fold::folded_unless_usable;
use super::forest::forest;
use super::material::Material;

/// Renders the section.
pub(super) fn section(material: &Material<'_>) -> Markup {
    if !released::is_adequate(material.result) {
        return html! {
            p { "No interval is shown, since none would be reliable." }
            (released::failed_checks(material.result))
        };
    }
    let Some(of) = forest(material) else {
        return html! { p { "The result has no figures to plot." } };
    };
    if !Verdict::of(material.result).is_usable() {
        return html! {
            p { "No figure of this run can be relied on: see the reasons above." }
            (folded_unless_usable(material.result, plot::forest(&of)))
        };
    }
    html! {
        (plot::forest(&of))
        @if material.draws.is_none() {
            p.note { "The coordinator no longer holds the draws, so 50% intervals and probabilities are left out." }
        }
        (copies(&of))
    }
}

/// Renders the figures as text in three formats, and the address of the picture.
fn copies(of: &Forest<'_>) -> Markup {
    let table = ForestTable(of);
    // The picture stands in the address itself, so the page loads nothing.
    let address = format!("data:image/svg+xml;base64,{}", STANDARD.encode(forest_file(of)));
    let text = |id: &str, name: &str, words: &str| {
        html! { details { summary { "Copy as " (name) } pre tabindex="0" id={ "copy-" (id) } { (words) } } }
    };
    html! {
        div.copies {
            (text("csv", "CSV", &table.csv()))
            (text("markdown", "Markdown", &table.markdown()))
            (text("latex", "LaTeX", &table.latex()))
            p { a href=(address) download="result.svg" { "Save the figure (SVG)" } }
        }
    }
}
