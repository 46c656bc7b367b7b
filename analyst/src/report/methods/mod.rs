//! Methods for an article: a paragraph to paste, the guarantee in one paragraph, and the citation of the software.

mod algorithm;
mod availability;
mod citation;
mod paragraph;

use conclave_pages::verdict::Verdict;
use maud::{Markup, html};

use super::guarantee::guarantee;
use super::material::Material;
use availability::availability;
use paragraph::paragraph;

pub(super) fn section(material: &Material<'_>) -> Markup {
    let paste = |id: &str, text: &str| html! { pre tabindex="0" id=(id) { (text) } };
    html! {
        @if Verdict::of(material.result).is_usable() {
            p { "Text to paste into an article, from the job and its result. Check it as you would check your own." }
            (paste("methods-text", &paragraph(material)))
        } @else {
            p { "No methods text is offered, because the answer cannot be relied on. The releases and their guarantee are facts all the same, for which "
                "an owner or a reviewer may ask." }
        }
        h3 { "The guarantee in one paragraph" }
        (paste("guarantee-text", &guarantee(material)))
        h3 { "Data availability" }
        (paste("availability-text", &availability(material)))
        h3 { "Citation" }
        (paste("citation-text", &citation::text()))
        details { summary { "BibTeX" } (paste("citation-bibtex", &citation::bibtex())) }
    }
}
