//! Methods for an article: a paragraph to paste, the guarantee in one paragraph, and the citation of the software.

mod algorithm;
mod paragraph;

use maud::{Markup, html};

use super::guarantee::guarantee;
use super::material::Material;
use paragraph::paragraph;

/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(super) fn section(material: &Material<'_>) -> Markup {
    let paste = |id: &str, text: &str| html! { pre tabindex="0" id=(id) { (text) } };
    html! {
        p { "Text to paste into an article, from the job and its result. Check it as you would check your own." }
        (paste("methods-text", &paragraph(material)))
        h3 { "The guarantee in one paragraph" }
        (paste("guarantee-text", &guarantee(material)))
        h3 { "Citation" }
        (paste("citation-text", &citation()))
        details { summary { "BibTeX" } (paste("citation-bibtex", &bibtex())) }
    }
}

/// Returns the citation of the software. It names no author and no DOI, since the project states none.
fn citation() -> String {
    format!("Conclave, version {VERSION} [software]. Private Bayesian inference across data owners.")
}

fn bibtex() -> String {
    format!(
        "@misc{{conclave,\n  title   = {{Conclave: private Bayesian inference across data owners}},\n  key     = {{Conclave}},\n  \
         note    = {{Software, version {VERSION}}}\n}}"
    )
}
