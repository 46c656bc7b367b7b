//! Output of the commands.

use conclave_ops::terminal;

/// Prints to standard output; a closed pipe causes no panic.
pub(super) fn print(what: &impl std::fmt::Display) {
    let _ = terminal::print(&what.to_string().trim_end());
}

/// Prints a JSON object, like [`print`].
pub(super) fn print_json(object: &serde_json::Value) {
    let _ = terminal::print_json(object);
}
