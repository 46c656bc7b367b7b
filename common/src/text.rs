//! Text from outside, made safe to display.
//!
//! A terminal interprets what it shows. An escape sequence moves its cursor and rewrites the line above, a carriage return
//! overwrites the line, and a bidirectional mark makes one text look like another. Such characters are refused where a name is
//! parsed. Every path to a terminal or a log also goes through [`shown`], as a second line of defence.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns the character to display for one from an untrusted source: itself, unless it acts on the display. Control characters
/// and line separators become spaces. Bidirectional marks and invisible characters become visible.
#[must_use]
pub fn shown(c: char) -> char {
    match c {
        c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => ' ',
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}' => '\u{fffd}',
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => '\u{fffd}',
        c => c,
    }
}

/// A number for people: six significant digits at most.
#[must_use]
pub fn figure(x: f64) -> String {
    if x == 0.0 || (1e-3..1e6).contains(&x.abs()) {
        let digits = 5 - (libm::log10(x.abs().max(1e-3)).floor() as i32).clamp(-3, 5);
        let text = format!("{x:.*}", digits as usize);
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    } else {
        format!("{x:e}")
    }
}

/// Returns whether every character is displayed unchanged, on one line.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    text.chars().all(|c| shown(c) == c)
}

/// Returns an untrusted text on one line.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.chars().map(shown).collect()
}

/// Returns a text of several lines with its own line breaks and tabs. Untrusted words in it must first pass through [`one_line`].
#[must_use]
pub fn lines(text: &str) -> String {
    text.chars().map(|c| if matches!(c, '\n' | '\t') { c } else { shown(c) }).collect()
}

/// Returns JSON whose strings contain no character that acts on a terminal. Each is replaced by its escape, so the value is
/// unchanged.
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        // White space between values; a serialiser has escaped it within strings.
        if matches!(c, '\n' | '\t') || shown(c) == c {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a string does not fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    Cow::Owned(out)
}

/// Returns whether `name` may name a party, an analyst or a coordinator: 1 to 63 characters of a–z, 0–9 and hyphen, with no
/// hyphen at either end. Names occur in file names, URIs and log lines, and never need quoting.
#[must_use]
pub fn valid_name(name: &str) -> bool {
    (1..=63).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const HOSTILE: &str = "a\u{1b}[2Jb\rc\u{7f}\u{9b}31m\u{202e}d\u{2066}\u{200f}\u{feff}\u{e0041}\u{2028}e\u{8}\nf\tg";

    #[test]
    fn nothing_that_acts_is_shown() {
        assert_eq!(one_line(HOSTILE), "a [2Jb c  31m\u{fffd}d\u{fffd}\u{fffd}\u{fffd}\u{fffd} e  f g");
        assert_eq!(lines(HOSTILE), "a [2Jb c  31m\u{fffd}d\u{fffd}\u{fffd}\u{fffd}\u{fffd} e \nf\tg");
        let ordinary = "Größe 5 µm, 名前, שם, ε = 3 — 'x' \"y\"";
        assert_eq!((one_line(ordinary), lines(ordinary), json(ordinary)), (ordinary.into(), ordinary.into(), ordinary.into()));
        assert!(is_plain(ordinary) && !is_plain(HOSTILE));
        assert!(is_plain(&one_line(HOSTILE)));
    }

    #[test]
    fn json_keeps_its_value() {
        let written = serde_json::to_string(&serde_json::json!({ "name": HOSTILE })).unwrap();
        let shown = json(&written);
        assert!(is_plain(&shown), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap()["name"], HOSTILE);
    }
}
