//! States the commit that a program is built from, for the report: `CONCLAVE_COMMIT` if it is set, else that of the git checkout,
//! with `-dirty` where a file of the programs differs from it, else `not known`.
//!
//! Only this crate depends on the commit, so a commit rebuilds it alone. Every crate of the programs is a dependency of this one,
//! so a change of their code rebuilds it anyway.

use std::path::Path;
use std::process::Command;

/// The files that the programs are built from, relative to the root of the workspace.
const SOURCES: [&str; 14] = [
    "privacy",
    "common",
    "proto",
    "vault",
    "inference",
    "ops",
    "pages",
    "party",
    "draws",
    "predict",
    "coordinator",
    "analyst",
    "Cargo.toml",
    "Cargo.lock",
];

fn main() {
    println!("cargo:rerun-if-env-changed=CONCLAVE_COMMIT");
    println!("cargo:rerun-if-changed=build.rs");
    let set = std::env::var("CONCLAVE_COMMIT").ok().filter(|commit| is_plain(commit));
    let commit = set.or_else(of_checkout).unwrap_or_else(|| "not known".to_owned());
    println!("cargo:rustc-env=BUILD_COMMIT={commit}");
}

/// Returns true for a value that fits one line of the report.
fn is_plain(commit: &str) -> bool {
    !commit.is_empty() && commit.len() <= 80 && commit.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
}

/// Returns the commit of the checkout; `None` outside one, as in a vendored copy inside another project's checkout.
fn of_checkout() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?.canonicalize().ok()?;
    let top = git(&root, &["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root {
        return None;
    }
    let commit = git(&root, &["rev-parse", "HEAD"])?;
    // The log of HEAD changes with every commit and checkout.
    let log = git(&root, &["rev-parse", "--git-path", "logs/HEAD"])?;
    let watched = [root.join(log)].into_iter().chain(SOURCES.map(|source| root.join(source)));
    // A missing file would count as changed in every build.
    watched.filter(|path| path.exists()).for_each(|path| println!("cargo:rerun-if-changed={}", path.display()));
    let status = [&["--no-optional-locks", "status", "--porcelain", "--"][..], &SOURCES].concat();
    let is_dirty = git(&root, &status).is_none_or(|changes| !changes.is_empty());
    Some(if is_dirty { commit + "-dirty" } else { commit })
}

/// Runs git; `None` if it fails.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let done = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok().filter(|done| done.status.success())?;
    Some(String::from_utf8(done.stdout).ok()?.trim().to_owned())
}
