//! A word that a key does not take is refused by one sentence.

use conclave_common::spelling::nearest;

/// Names the key, the word, the nearest known one and all known ones.
pub(super) fn unknown(key: &str, value: &str, known: &[&str]) -> String {
    let hint = nearest(value, known.iter().copied()).map(|n| format!(" (did you mean {n:?}?)")).unwrap_or_default();
    format!("`{key}` is {value:?}{hint}; known: {}", known.join(", "))
}
