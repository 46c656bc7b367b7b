//! What the screening of an owner's records finds stays with the owner.

use std::fs;
use std::path::{Path, PathBuf};

/// Whoever may know what a screening found: the owner's commands and page, and a rehearsal on files of one's own. Who answers the coordinator,
/// writes its ledger or keeps the link is not among them, nor is the daemon, whose log may be collected.
const MAY_KNOW: [&str; 6] = [
    "party/src/screening/",
    "party/src/cli/check.rs",
    "party/src/doctor/records.rs",
    "party/src/owner/pending_job.rs",
    "analyst/src/rehearse/command.rs",
    "party/src/lib.rs",
];
/// Whoever may hand on the words that an owner reads before deciding.
const MAY_WARN: [&str; 5] =
    ["party/src/owner/", "party/src/cli/decide.rs", "party/src/cli/status.rs", "party/src/page/", "party/src/cli/jobs.rs"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn nobody_else_than_the_owner_is_told_what_a_screening_found() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let mut files = Vec::new();
    let parts = ["vault", "party", "coordinator", "analyst", "draws"];
    parts.iter().for_each(|part| sources(&root.join(part).join("src"), &mut files));
    assert!(files.len() > 300, "{}", files.len());
    for path in files {
        let name = path.strip_prefix(root).expect("a path below").display().to_string();
        let text = fs::read_to_string(&path).expect("a source");
        let knows = ["screening", "screen_columns", "screen_job", "Concern"].iter().any(|word| text.contains(word));
        assert!(!knows || MAY_KNOW.iter().any(|may| name.starts_with(may)), "{name} may not know what a screening found");
        let warns = ["try_warnings(", "pending_job::warnings("].iter().any(|word| text.contains(word));
        assert!(!warns || MAY_WARN.iter().any(|may| name.starts_with(may)), "{name} may not hand on an owner's warnings");
        // A log may be collected and read by others.
        let silent = !name.starts_with("party/src/screening/") && !name.starts_with("party/src/owner/pending_job");
        assert!(silent || !text.contains("tracing::"), "{name} may not log");
    }
}
