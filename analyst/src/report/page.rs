//! The report's page and its sections, in order.

use conclave_pages::page::{Page, Style, document};
use conclave_pages::text::{name, plain_name};
use conclave_pages::verdict::Verdict;
use maud::{Markup, html};

use super::material::Material;
use super::{methods, model, plots, posterior, privacy, repeat, result_section, run_section, sites, survival};

/// A section of the page: its anchor, heading and content.
struct Section {
    anchor: &'static str,
    heading: &'static str,
    body: Markup,
}

/// The word that opens the headings of the appendix; the list of sections has one entry for all of them.
const APPENDIX: &str = "Appendix";

/// Returns what the run has made, by its verdict.
fn kind(material: &Material<'_>) -> &'static str {
    match Verdict::of(material.result).is_usable() {
        true => "A Bayesian posterior",
        false => "A run without a usable posterior,",
    }
}

/// Renders the report.
pub(super) fn page(material: &Material<'_>) -> String {
    let differences = sites::section(material).map(|body| Section { anchor: "parties", heading: "How the parties differ", body });
    let curves = survival::section(material).map(|body| Section { anchor: "survival", heading: "Survival", body });
    let begin = [Section { anchor: "estimates", heading: "Result", body: result_section::section(material) }];
    let reliable = html! {
        (run_section::tiles(material))
        (posterior::diagnostics(material))
        (plots::section(material))
    };
    let end = [
        Section { anchor: "methods", heading: "Methods", body: methods::section(material) },
        Section { anchor: "diagnostics", heading: "Diagnostics", body: reliable },
        Section { anchor: "privacy", heading: "Privacy", body: privacy::section(material) },
        Section { anchor: "model", heading: "Appendix: model and data", body: model::section(material) },
        Section { anchor: "posterior", heading: "Appendix: the posterior in numbers", body: posterior::section(material) },
        Section { anchor: "run", heading: "Appendix: how the run went", body: run_section::section(material) },
        Section { anchor: "repeat", heading: "Appendix: checking and repeating the run", body: repeat::section(material) },
    ];
    let sections: Vec<Section> = begin.into_iter().chain(curves).chain(differences).chain(end).collect();
    let body = html! {
        h1 { (name(&material.spec.name)) }
        p.lead { (kind(material)) " over the records of " (parties(material.spec.parties.len())) ", none of which left its owner" }
        (posterior::verdict(material))
        nav aria-label="Sections" { ul {
            @for section in sections.iter().filter(|section| !section.heading.starts_with(APPENDIX)) {
                li { a href={ "#" (section.anchor) } { (section.heading) } }
            }
            li { a href="#model" { (APPENDIX) } }
        } }
        @for section in &sections {
            section aria-labelledby=(section.anchor) { h2 id=(section.anchor) { (section.heading) } (section.body) }
        }
    };
    let title = format!("{} – a report by Conclave", plain_name(&material.spec.name));
    document(&Page { title: &title, style: Style::Embedded, script: None, body: &body })
}

fn parties(count: usize) -> String {
    if count == 1 { "one data owner".to_owned() } else { format!("{count} data owners") }
}
