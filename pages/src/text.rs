//! Formatting of numbers, and sanitising of text from outside.

use conclave_common::text::shown;
use maud::{Markup, html};

/// Maximum length of a name in characters; longer ones are truncated.
const MAX_NAME: usize = 80;

/// Formats a number with four decimals, or in scientific notation if those would hide it.
#[must_use]
pub fn number(x: f64) -> String {
    if x == 0.0 || (1e-3..1e6).contains(&x.abs()) { format!("{x:.4}") } else { format!("{x:.3e}") }
}

/// Formats a number as in a job file.
#[must_use]
pub fn as_written(x: f64) -> String {
    if x == 0.0 || (1e-3..1e6).contains(&x.abs()) { x.to_string() } else { format!("{x:e}") }
}

/// Formats three decimals, as for R-hat.
#[must_use]
pub fn thousandths(x: f64) -> String {
    format!("{x:.3}")
}

/// Formats the nearest whole number with thousands separators.
#[must_use]
pub fn whole(x: f64) -> String {
    // Counts are below 2^53.
    if (0.0..9e15).contains(&x) { thousands(x.round() as u64) } else { format!("{x:.0}") }
}

/// Formats an effective sample size, rounded down: a size below a limit is never shown as the limit.
#[must_use]
pub fn effective(ess: f64) -> String {
    whole(ess.floor())
}

/// Formats a whole number with thousands separators.
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

/// Formats a duration in seconds in its two largest units.
#[must_use]
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "unknown".to_owned();
    }
    // The cap exceeds any run and keeps the conversion exact.
    let whole = seconds.round().min(1e12) as u64;
    match whole {
        0 if seconds > 0.0 => "<1 s".to_owned(),
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        3600..86_400 => format!("{} h {} min", whole / 3600, whole / 60 % 60),
        _ => format!("{} d {} h", whole / 86_400, whole / 3600 % 24),
    }
}

/// Formats a fraction as a percentage without decimals.
#[must_use]
pub fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.0}%", 100.0 * share) } else { "-".to_owned() }
}

/// Formats a fraction as a percentage without decimals; a small positive fraction is never shown as 0%.
#[must_use]
pub fn share(share: f64) -> String {
    if share > 0.0 && share < 0.01 { "<1%".to_owned() } else { percent(share) }
}

/// Sanitises text from outside to plain text on one line of at most `limit` characters, with an ellipsis if truncated. Control
/// characters become blanks. Bidirectional marks, which can make one text look like another, become visible.
#[must_use]
pub fn plain(text: &str, limit: usize) -> String {
    let mut characters = text.chars().map(shown);
    let mut short: String = characters.by_ref().take(limit).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}

/// Sanitises and shortens a name from outside to plain text.
#[must_use]
pub fn plain_name(text: &str) -> String {
    plain(text, MAX_NAME)
}

/// Renders a name from outside, isolated so that it cannot change the direction of the surrounding text.
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
        assert_eq!([effective(1806.9), effective(399.99), effective(f64::NAN)], ["1,806", "399", "NaN"]);
        assert_eq!(thousands(7), "7");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands(123_456), "123,456");
    }

    #[test]
    fn times() {
        let shown = [0.0, 0.2, 59.4, 60.0, 3599.0, 7260.0, 200_000.0, f64::NAN, -1.0].map(duration);
        assert_eq!(shown, ["0 s", "<1 s", "59 s", "1 min 0 s", "59 min 59 s", "2 h 1 min", "2 d 7 h", "unknown", "unknown"]);
        assert_eq!((percent(0.374), percent(f64::NAN)), ("37%".to_owned(), "-".to_owned()));
        assert_eq!([0.0, 0.004, 0.009, 0.01].map(share), ["0%", "<1%", "<1%", "1%"]);
    }

    #[test]
    fn hostile_names_are_harmless() {
        assert_eq!(
            name("<script>alert('x')</script>&\"").into_string(),
            "<bdi>&lt;script&gt;alert('x')&lt;/script&gt;&amp;&quot;</bdi>"
        );
        assert_eq!(plain_name("a\u{202e}b\n\u{0}c\u{2028}"), "a\u{fffd}b  c ");
        let long = plain_name(&"é".repeat(1000));
        assert_eq!((long.chars().count(), long.ends_with('…')), (MAX_NAME + 1, true));
        assert_eq!(plain_name(&"x".repeat(MAX_NAME)), "x".repeat(MAX_NAME));
    }
}
