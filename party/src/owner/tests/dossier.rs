#![allow(clippy::unwrap_used)]
use conclave_pages::document::markdown;
use conclave_vault::ledger::Ledger;
use conclave_vault::testing::{JOB, budget, entry};

use super::*;

fn config(folder: &std::path::Path, more: &str) -> PartyConfig {
    let text = format!(
        "name = \"hospital-a\"\ncoordinator = \"https://c\"\nidentity = \"i\"\nledger = \"l.sqlite\"\n{more}[data]\npath = \"a.csv\"\n\
         [budget]\nepsilon = 8.0\ndelta = 1e-6\n[policy]\nmax_epsilon_per_job = 3.0\nanalysts = [\"alice\"]\n"
    );
    PartyConfig::parse(&text, folder).unwrap()
}

#[test]
fn every_topic_has_its_facts_and_the_command_that_checks_them() {
    let folder = tempfile::tempdir().unwrap();
    let more = "organisation = \"Hospital A\"\nother_releases = [\"annual report 2025, counts by ward\"]\n";
    let config = config(folder.path(), more);
    config.ledger_settings().init().unwrap();
    let mut ledger = Ledger::open_kept(&config.ledger_settings()).unwrap();
    ledger.open_job(&entry(JOB, budget())).unwrap();
    ledger.close().unwrap();
    let text = markdown(&dossier(&config, "2026-03-04T00:00:00Z").unwrap());
    for part in [
        "# Privacy dossier of Hospital A (party hospital-a)",
        "## Variant and parameters",
        "## Unit of privacy and adjacency",
        "## Mechanism",
        "## Composition",
        "## Trust model",
        "## Side channels",
        "## Access",
        "## Retention",
        "## Other releases of the same data",
        "annual report 2025, counts by ward",
        "## Accuracy and bias",
        "small groups",
        "## Security of stored data",
        "## Independent evaluation",
        "## Jobs so far",
        "6f1c1a52",
        "at most 78 are right once the whole budget is spent",
        "owner's key | not readable",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let sections = text.matches("\n## ").count();
    assert!(text.matches("Check again: ").count() + 3 >= sections, "{text}");
}

#[test]
fn undeclared_releases_are_said_to_be_undeclared() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), "");
    config.ledger_settings().init().unwrap();
    let text = markdown(&dossier(&config, "2026-03-04T00:00:00Z").unwrap());
    assert!(text.contains("none: \\`other\\_releases\\` in party.toml") && text.contains("No job has been submitted"), "{text}");
}

/// The entry is YAML whose quoted texts no name can leave; figures are those of the budget.
#[test]
fn a_registry_gets_the_budget_and_what_is_not_known_stays_empty() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), "organisation = \"A: \\\"x\\\"\\n- y\"\n");
    config.ledger_settings().init().unwrap();
    let text = registry_entry(&config, "2026-03-04T00:00:00Z").unwrap();
    for part in [
        "url_slug: \"hospital-a\"\ndeployment:\n  basic:\n",
        "publication_date: \"2026-03-04\"",
        "data_curator_name: \"A: \\\"x\\\"\\n- y (party hospital-a)\"",
        "privacy_unit: \"Record-level\"",
        "      epsilon: 8.0\n      delta: 1.0e-6\n",
        "data_product_region: \"\"",
        "data_product_sector: \"\" # one of: Technology, Healthcare,",
        "data_curator_type: \"\" # one of: Government, Industry, Nonprofit",
        "variant_name: \"Approximate DP\"",
        "model_name: \"Central\"",
        "release_type: \"Many releases\"",
        "data_source_type: \"Static\"",
        "access_type: \"Interactive\"",
        "data_product_type: \"Summary statistics\"",
        "status: Draft",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    // Every line is a key, a list item or a section.
    assert!(text.lines().all(|line| line.trim_start().starts_with("- ") || line.contains(':')), "{text}");
}
