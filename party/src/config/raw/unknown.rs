//! The message for an unknown value of a key.

use conclave_common::spelling::nearest;

/// Names the key, the value, the nearest known value and all known ones.
pub(super) fn unknown(key: &str, value: &str, known: &[&str]) -> String {
    let hint = nearest(value, known.iter().copied()).map(|n| format!(" (did you mean {n:?}?)")).unwrap_or_default();
    format!("`{key}` is {value:?}{hint}; known: {}", known.join(", "))
}
