//! Text written by strangers cannot control a terminal: only one file prints, and it escapes what it prints.

use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The packages of the product.
const CRATES: [&str; 13] = [
    "privacy",
    "common",
    "vault",
    "inference",
    "ops",
    "pages",
    "proto",
    "party",
    "draws",
    "predict",
    "coordinator",
    "analyst",
    "python",
];

/// The only file that writes to standard output and standard error; log lines pass through its writer.
const PRINTS: &str = "ops/src/terminal.rs";

/// Returns true for a line that prints directly. Any file may ask whether standard error is a terminal, and how wide it is.
fn prints(line: &str) -> bool {
    let code = line.trim_start();
    let asks = ["stderr().is_terminal()", "stdout().is_terminal()", "Term::stderr().size()", "use_stderr()"];
    let code = asks.iter().fold(code.to_owned(), |code, ask| code.replace(ask, ""));
    !code.starts_with("//")
        && ["print!(", "println!(", "dbg!(", "stdout()", "stderr()", "/dev/tty"].iter().any(|way| code.contains(way))
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let tests = path.ends_with("tests") || path.ends_with("tests.rs");
        if path.is_dir() && !tests {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") && !tests {
            found.push(path);
        }
    }
}

#[test]
fn one_file_prints() {
    for (line, does) in [
        ("    println!(\"{name}\");", true),
        ("let mut out = std::io::stderr();", true),
        ("/// as `println!(` does", false),
        ("let terminal = std::io::stderr().is_terminal();", false),
    ] {
        assert_eq!(prints(line), does, "{line}");
    }
    let mut found = Vec::new();
    CRATES.iter().for_each(|package| sources(&Path::new(ROOT).join(package).join("src"), &mut found));
    assert!(found.len() > 300, "{}", found.len());
    let mut printing = Vec::new();
    for path in found {
        let text = fs::read_to_string(&path).expect("a source");
        let lines = text.lines().enumerate().filter(|(_, line)| prints(line));
        let name = path.strip_prefix(ROOT).expect("below the root").display().to_string();
        printing.extend(lines.map(|(at, _)| format!("{name}:{}", at + 1)));
    }
    let others: Vec<&String> = printing.iter().filter(|place| !place.starts_with(PRINTS)).collect();
    assert!(others.is_empty(), "print through {PRINTS}, not at {others:?}");
    assert!(!printing.is_empty(), "the search finds lines that print");
}
