//! Numbers as people read them, and names that strangers have chosen.

use conclave_common::text::shown;
use maud::{Markup, html};

/// Longest name that is shown whole, in characters.
const LONGEST: usize = 80;

/// A number to four decimals, or in powers of ten where that would hide it.
#[must_use]
pub fn number(x: f64) -> String {
    if x == 0.0 || (1e-3..1e6).contains(&x.abs()) { format!("{x:.4}") } else { format!("{x:.3e}") }
}

/// A whole number with its thousands set apart.
#[must_use]
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A length of time in seconds, in its two largest units.
#[must_use]
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "unknown".to_owned();
    }
    // Beyond any run; the conversion below is then exact.
    let whole = seconds.round().min(1e12) as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        3600..86_400 => format!("{} h {} min", whole / 3600, whole / 60 % 60),
        _ => format!("{} d {} h", whole / 86_400, whole / 3600 % 24),
    }
}

/// A share of one as a percentage without decimals.
#[must_use]
pub fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.0}%", 100.0 * share) } else { "-".to_owned() }
}

/// A name or sentence of a stranger's as plain text on one line: control characters become blanks, and marks that turn the direction
/// of writing, with which a text can be made to look like another, become visible. Longer ones end in an ellipsis.
#[must_use]
pub fn plain(text: &str, longest: usize) -> String {
    let mut characters = text.chars().map(shown);
    let mut short: String = characters.by_ref().take(longest).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}

/// A stranger's name as plain text, shortened.
#[must_use]
pub fn plain_name(text: &str) -> String {
    plain(text, LONGEST)
}

/// A stranger's name in a page: it can't turn what stands around it.
#[must_use]
pub fn name(text: &str) -> Markup {
    html! { bdi { (plain_name(text)) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(number(0.0), "0.0000");
        assert_eq!(number(-0.31234), "-0.3123");
        assert_eq!(number(1e-6), "1.000e-6");
        assert_eq!(thousands(7), "7");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands(123_456), "123,456");
    }

    #[test]
    fn times() {
        let shown = [0.0, 59.4, 60.0, 3599.0, 7260.0, 200_000.0, f64::NAN, -1.0].map(duration);
        assert_eq!(shown, ["0 s", "59 s", "1 min 0 s", "59 min 59 s", "2 h 1 min", "2 d 7 h", "unknown", "unknown"]);
        assert_eq!((percent(0.374), percent(f64::NAN)), ("37%".to_owned(), "-".to_owned()));
    }

    #[test]
    fn hostile_names_are_harmless() {
        assert_eq!(
            name("<script>alert('x')</script>&\"").into_string(),
            "<bdi>&lt;script&gt;alert('x')&lt;/script&gt;&amp;&quot;</bdi>"
        );
        assert_eq!(plain_name("a\u{202e}b\n\u{0}c\u{2028}"), "a\u{fffd}b  c ");
        let long = plain_name(&"é".repeat(1000));
        assert_eq!((long.chars().count(), long.ends_with('…')), (LONGEST + 1, true));
        assert_eq!(plain_name(&"x".repeat(LONGEST)), "x".repeat(LONGEST));
    }
}
