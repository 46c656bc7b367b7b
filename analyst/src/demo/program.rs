//! The command that starts this program again.

use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;

static PROGRAM: OnceLock<Vec<OsString>> = OnceLock::new();

/// Names the command that starts this program again, where the executable is another program, such as an interpreter. The first
/// call counts; a command without words changes nothing.
pub(crate) fn start_children_by(words: Vec<OsString>) {
    if !words.is_empty() {
        // Set before, by the first call.
        let _ = PROGRAM.set(words);
    }
}

/// Returns the command's words, at least one.
///
/// # Errors
/// The path of the running executable is unknown.
pub(super) fn words() -> std::io::Result<Vec<OsString>> {
    match PROGRAM.get() {
        Some(words) => Ok(words.clone()),
        None => Ok(vec![std::env::current_exe()?.into_os_string()]),
    }
}

/// Returns the command as text for a shell, if another program than the executable was named.
pub(super) fn text() -> Option<String> {
    let words = PROGRAM.get()?.iter().map(|word| quoted(Path::new(word)));
    Some(words.collect::<Vec<_>>().join(" "))
}

/// Quotes a path for a shell, where it needs it.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}
