//! Findings of the screening of an owner's records stay with the owner.

use std::fs;
use std::path::{Path, PathBuf};

/// Sources that may use a screening's findings: the owner's commands and page, and a rehearsal on one's own files. Excluded are
/// the answer path, the ledger, the link, and the daemon, whose log may be collected.
const MAY_KNOW: [&str; 8] = [
    "party/src/screening/",
    "party/src/cli/check.rs",
    "party/src/doctor/records.rs",
    "party/src/owner/pending_job.rs",
    "analyst/src/rehearse/",
    "analyst/src/api/",
    "analyst/src/check.rs",
    "party/src/lib.rs",
];
/// Sources that may pass on the warnings that an owner reads before deciding.
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
fn only_the_owner_sees_what_a_screening_found() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let mut files = Vec::new();
    let parts = ["vault", "party", "coordinator", "analyst", "draws"];
    parts.iter().for_each(|part| sources(&root.join(part).join("src"), &mut files));
    assert!(files.len() > 300, "{}", files.len());
    for path in files {
        let name = path.strip_prefix(root).expect("a path below").display().to_string();
        let text = fs::read_to_string(&path).expect("a source");
        let knows = ["screening", "screen_columns", "screen_job", "Concern"].iter().any(|word| text.contains(word));
        assert!(!knows || MAY_KNOW.iter().any(|may| name.starts_with(may)), "{name} may not use a screening's findings");
        let warns = ["try_warnings(", "pending_job::warnings("].iter().any(|word| text.contains(word));
        assert!(!warns || MAY_WARN.iter().any(|may| name.starts_with(may)), "{name} may not pass on an owner's warnings");
        // Others may collect and read a log.
        let silent = !name.starts_with("party/src/screening/") && !name.starts_with("party/src/owner/pending_job");
        assert!(silent || !text.contains("tracing::"), "{name} may not log");
    }
}
