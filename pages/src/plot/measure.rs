//! The size of text in plots: an estimate of its width.

/// Font size of ticks, and of the names at an axis.
pub(super) const TICK: f64 = 10.5;

/// Estimates the width of a text from above: the advances of DejaVu Sans, which is wider than most system fonts.
pub(super) fn width(text: &str, size: f64) -> f64 {
    size * text.chars().map(advance).sum::<f64>()
}

/// Returns the advance of a character in font sizes.
pub(super) fn advance(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | 'I' | 'J' | '\'' => 0.30,
        't' | 'f' | 'r' | ' ' | '.' | ',' | ':' | ';' | '|' | '!' | '(' | ')' | '[' | ']' | '/' | '-' | '·' => 0.42,
        '_' => 0.51,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 1.0,
        '=' | '<' | '>' | '+' | '~' | '−' | '×' => 0.84,
        'A'..='Z' => 0.79,
        c if c.is_ascii() => 0.64,
        c if c < '\u{600}' => 0.82,
        _ => 1.05,
    }
}
