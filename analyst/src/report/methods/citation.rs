//! The citation of the software, as `CITATION.cff` states it: as text and as BibTeX.

/// The author, where no person is named.
const AUTHOR: &str = "The Conclave project";
/// The title.
const TITLE: &str = "Conclave: private Bayesian inference across data owners";
/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The licence of this program.
const LICENSE: &str = env!("CARGO_PKG_LICENSE");

/// Returns the citation as text. It names no DOI, since the project has none.
pub(super) fn text() -> String {
    format!("{AUTHOR}. {TITLE}. Version {VERSION} [software, {LICENSE}].")
}

/// Returns the citation in BibTeX's format. Braces keep the author's and the product's name as they are.
pub(super) fn bibtex() -> String {
    let title = TITLE.replacen("Conclave", "{Conclave}", 1).replacen("Bayesian", "{Bayesian}", 1);
    format!(
        "@misc{{conclave,\n  author  = {{{{{AUTHOR}}}}},\n  title   = {{{title}}},\n  version = {{{VERSION}}},\n  \
         note    = {{Software, version {VERSION}, {LICENSE}}}\n}}"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Returns the value of a key of `CITATION.cff`, without quotes.
    fn stated(key: &str) -> String {
        let file = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../CITATION.cff")).unwrap();
        let line = file.lines().find_map(|line| line.trim_start_matches([' ', '-']).strip_prefix(&format!("{key}: ")));
        line.unwrap_or_else(|| panic!("{key} in {file}")).trim_matches('"').to_owned()
    }

    #[test]
    fn text_bibtex_and_the_citation_file_state_the_same() {
        let plain = bibtex().replace(['{', '}'], "");
        for (key, value) in [("name", AUTHOR), ("title", TITLE), ("version", VERSION), ("license", LICENSE)] {
            assert_eq!(stated(key), value, "{key}");
            assert!(text().contains(value) && plain.contains(value), "{value} in {} and {}", text(), bibtex());
        }
        let file = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../CITATION.cff")).unwrap();
        for invented in ["doi", "orcid", "given-names"] {
            assert!(!file.contains(invented) && !text().contains(invented), "{invented}");
        }
    }
}
