//! How the commands print.

use conclave_ops::terminal;

/// Prints on standard output; a reader that hangs up is no panic.
pub(super) fn print(what: &impl std::fmt::Display) {
    let _ = terminal::print(&what.to_string().trim_end());
}

/// As [`print`], of a JSON object.
pub(super) fn print_json(object: &serde_json::Value) {
    let _ = terminal::print_json(object);
}
