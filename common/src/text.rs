//! Text that came from outside, on its way to somebody's eyes.
//!
//! A terminal obeys what it shows: an escape moves its cursor and rewrites the line above, a carriage return overwrites the line, and a mark
//! that turns the direction of writing makes one text look like another. So such characters are refused where a name is parsed, and every path
//! to a terminal or a log goes through [`shown`] besides: what one place should ever forget, the other still stops.

use std::borrow::Cow;
use std::fmt::Write as _;

/// What a character of a stranger's is shown as: itself, unless it acts on what shows it. Control characters and separators of lines become
/// blanks; marks that turn the direction of writing, or that nobody sees at all, become visible.
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
        let digits = 5 - (x.abs().max(1e-3).log10().floor() as i32).clamp(-3, 5);
        let text = format!("{x:.*}", digits as usize);
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    } else {
        format!("{x:e}")
    }
}

/// Whether every character is shown as what it is, on one line.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    text.chars().all(|c| shown(c) == c)
}

/// A stranger's text on one line.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.chars().map(shown).collect()
}

/// A text of several lines, whose line breaks and tabs are its own; who puts a stranger's words into it puts them through [`one_line`] first.
#[must_use]
pub fn lines(text: &str) -> String {
    text.chars().map(|c| if matches!(c, '\n' | '\t') { c } else { shown(c) }).collect()
}

/// JSON whose strings hold no character that acts on a terminal: each stands there as its escape, so that the value is the same.
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        // Blanks between values; within strings a serialiser has escaped them.
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

/// Whether `name` may name a party, an analyst or a coordinator: 1 to 63 of a–z, 0–9 and hyphen, with no hyphen at
/// either end. Names stand in file names, URIs and log lines, so nothing in them ever needs quoting.
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
