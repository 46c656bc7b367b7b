//! Text of other people's is cut to a length before it is logged or kept.

use conclave_common::text::shown;

/// The first `most` characters on one line, without any that act on what shows them.
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
