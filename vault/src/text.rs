//! Shortens texts of other parties before they are logged or stored.

use conclave_common::text::shown;

/// Returns at most the first `most` characters, on one line, with every character that acts on a display replaced ([`shown`]). A text that is
/// cut ends with `...`.
pub fn clip(text: &str, most: usize) -> String {
    let mut characters = text.chars();
    let mut clipped: String = characters.by_ref().take(most).map(shown).collect();
    if characters.next().is_some() {
        clipped.push_str("...");
    }
    clipped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_strange_texts_are_cut() {
        assert_eq!(clip("short", 5), "short");
        assert_eq!(clip("a\nb\u{1b}[31m", 4), "a b ...");
        assert_eq!(clip(&"x".repeat(1 << 20), 200).len(), 203);
    }
}
