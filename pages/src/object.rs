//! Parts of a run's result object.

use serde_json::Value;

use crate::text::plain;

/// Maximum length of a sentence.
const SENTENCE: usize = 2000;

/// Returns the objects of an array.
#[must_use]
pub fn rows<'a>(object: &'a Value, key: &str) -> &'a [Value] {
    object[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns a text.
#[must_use]
pub fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}

/// Returns the sentences of a list, as plain text.
#[must_use]
pub fn sentences(object: &Value, key: &str) -> Vec<String> {
    rows(object, key).iter().filter_map(|sentence| Some(plain(sentence.as_str()?, SENTENCE))).collect()
}
