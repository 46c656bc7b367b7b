//! The README's table of laws: each file is there, holds what is named, and is the only one that does.

use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The table's `(file, name)` pairs. A name is an item's, a method's with its type, or a function's with its file's name.
fn laws() -> Vec<(String, String)> {
    let readme = fs::read_to_string(format!("{ROOT}/README.md")).expect("the README");
    let section = readme.split("### Where the laws are").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("the section");
    let mut file = String::new();
    let mut laws = Vec::new();
    for quoted in section.split('`').skip(1).step_by(2) {
        if quoted.ends_with(".rs") {
            file = quoted.to_owned();
        } else {
            laws.push((file.clone(), quoted.to_owned()));
        }
    }
    laws
}

/// Whether a source defines an item or method of this name.
fn defines(source: &str, name: &str) -> bool {
    ["fn", "struct", "enum", "trait"].iter().any(|kind| {
        let start = format!("{kind} {name}");
        source.split(&start).skip(1).any(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

/// Whether a source is where a law stands: methods are told apart by their type, which others may have too.
fn holds(source: &str, law: &str) -> bool {
    match law.split_once("::") {
        Some((of, name)) if of.starts_with(char::is_uppercase) => {
            defines(source, name) && source.contains(&format!("impl {of} {{"))
        }
        Some((_, name)) => defines(source, name),
        None => defines(source, law),
    }
}

/// Production sources of the crates that an auditor reads.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("tests") {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn each_law_stands_once_and_where_the_readme_says() {
    let laws = laws();
    for file in ["sampler/penalty.rs", "mechanism/clamp.rs", "accounting/charge.rs", "ledger/charge.rs", "answer/query.rs"] {
        assert!(laws.iter().any(|(at, _)| at.ends_with(file)), "the README has no word on {file}");
    }
    let mut files = Vec::new();
    let crates = ["privacy/src", "common/src", "vault/src", "inference/src", "party/src"];
    crates.iter().for_each(|folder| sources(&Path::new(ROOT).join(folder), &mut files));
    for (file, law) in laws {
        let source = fs::read_to_string(format!("{ROOT}/{file}")).unwrap_or_else(|e| panic!("{file}: {e}"));
        assert!(holds(&source, &law), "{file} has no {law}");
        // A function that is named with its file has namesakes.
        if law.split("::").next().is_some_and(|of| law.contains("::") && of.starts_with(char::is_lowercase)) {
            assert_eq!(Path::new(&file).file_stem().and_then(|s| s.to_str()), law.split("::").next(), "{law} in {file}");
            continue;
        }
        let read = |path: &&PathBuf| fs::read_to_string(path).is_ok_and(|source| holds(&source, &law));
        let places = files.iter().filter(read).collect::<Vec<_>>();
        assert_eq!(places.len(), 1, "{law} stands in {places:?}");
    }
}
