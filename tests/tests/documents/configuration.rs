//! Checks that docs/reference/configuration.md has a row for every key that a program reads, and for no other.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use conclave_common::settings::Keys;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Returns the first cells of the tables below a heading, without their backticks.
fn rows(heading: &str) -> BTreeSet<String> {
    let page = fs::read_to_string(format!("{ROOT}/docs/reference/configuration.md")).expect("the page");
    let section = page.split("\n## ").find(|section| section.starts_with(heading)).unwrap_or_else(|| panic!("no {heading}"));
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |").map(|(key, _)| key.to_owned()));
    cells.collect()
}

fn compare(heading: &str, known: &Keys) {
    let (rows, known): (_, BTreeSet<String>) = (rows(heading), known.paths().into_iter().collect());
    let lacking: Vec<&String> = known.difference(&rows).collect();
    let unknown: Vec<&String> = rows.difference(&known).collect();
    assert!(lacking.is_empty(), "docs/reference/configuration.md, {heading}: no row for {lacking:?}");
    assert!(unknown.is_empty(), "docs/reference/configuration.md, {heading}: {unknown:?} are not keys");
    assert!(known.len() > 10, "{known:?}");
}

#[test]
fn every_key_has_its_row() {
    compare("party.toml", &conclave_party::KEYS);
    compare("coordinator.toml", &conclave_coordinator::KEYS);
    compare("The job file", &conclave_common::job::KEYS);
}

#[test]
fn every_variable_has_its_row() {
    let mut known: BTreeSet<String> = ["HTTPS_PROXY", "NO_PROXY", "RUST_LOG"].map(str::to_owned).into();
    for folder in ["analyst", "coordinator", "ops", "party", "proto", "vault"] {
        own_variables(&Path::new(ROOT).join(folder).join("src"), &mut known);
    }
    assert!(known.contains("CONCLAVE_IDENTITY"), "{known:?}");
    assert_eq!(rows("The environment"), known);
}

/// Adds every quoted name of an environment variable defined by the product.
fn own_variables(folder: &Path, into: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("sources") {
        let path = entry.expect("a file").path();
        if path.is_dir() && path.ends_with("tests") {
            // Used by tests only.
        } else if path.is_dir() {
            own_variables(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source");
            let names = text
                .split('"')
                .skip(1)
                .step_by(2)
                .filter(|word| word.starts_with("CONCLAVE_") && word.chars().all(|c| c.is_ascii_uppercase() || c == '_'));
            into.extend(names.map(str::to_owned));
        }
    }
}
