//! Links that open a daemon's pages once. A person who can read the token file can make one; the token itself is not in it.
//!
//! A link names the time at which it was made, and has a code of the token over both. The daemon accepts it once, within
//! [`LIFETIME_MS`], and only if it was made after the daemon's start: so no restart makes a used link valid.

use std::collections::HashMap;
use std::path::Path;

use ring::hmac;

use super::secret::{equal, hex, random, read_text};
use crate::clock::Clock;

/// Lifetime of a link in milliseconds.
const LIFETIME_MS: i64 = 3_600_000;
const DISTINCT_DIGITS: usize = 16;
const CODE_DIGITS: usize = 32;
/// Path and field of a link.
pub(super) const PATH: &str = "/login";
const FIELD: &str = "once=";
/// Separates this use of the token from others.
const PURPOSE: &[u8] = b"conclave: a link that opens the pages once\n";

/// Makes the path of a link from a daemon's token file; appended to the address of the pages, it opens them once within an hour.
///
/// # Errors
/// The token file can't be read, or the system's random number generator failed.
pub fn link(token: &Path) -> Result<String, String> {
    let text = read_text(token).map_err(|e| format!("{}: {e}", token.display()))?;
    made(&text, Clock::Coordinator.now_ms())
}

fn made(token: &str, now_ms: i64) -> Result<String, String> {
    // Distinguishes links made in the same millisecond.
    let distinct: String = random()?.chars().take(DISTINCT_DIGITS).collect();
    let content = format!("{now_ms}.{distinct}");
    Ok(format!("{PATH}?{FIELD}{content}.{}", code(&key(token), &content)))
}

/// Returns the code of a link's content: 128 bits, in hexadecimal.
fn code(key: &hmac::Key, content: &str) -> String {
    let code = hmac::sign(key, &[PURPOSE, content.as_bytes()].concat());
    hex(code.as_ref()).chars().take(CODE_DIGITS).collect()
}

fn key(token: &str) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, token.trim().as_bytes())
}

/// Returns the value of a link's field in a query.
pub(super) fn presented(query: Option<&str>) -> Option<&str> {
    query?.split('&').find_map(|pair| pair.strip_prefix(FIELD))
}

/// The links that a daemon has accepted.
#[derive(Debug)]
pub(super) struct Links {
    key: hmac::Key,
    start_ms: i64,
    /// Time of each accepted link by its content. Only who has the token can add one.
    used: HashMap<String, i64>,
}

impl Links {
    pub(super) fn new(token: &str, now_ms: i64) -> Self {
        Self { key: key(token), start_ms: now_ms, used: HashMap::new() }
    }

    /// Accepts a link that was not used before.
    pub(super) fn accept(&mut self, presented: &str, now_ms: i64) -> bool {
        let oldest = self.start_ms.max(now_ms.saturating_sub(LIFETIME_MS));
        self.used.retain(|_, made| *made >= oldest);
        let Some((content, of_link)) = presented.rsplit_once('.') else { return false };
        if !equal(of_link, &code(&self.key, content)) {
            return false;
        }
        let made = content.split('.').next().and_then(|made| made.parse::<i64>().ok());
        let Some(made) = made.filter(|made| (oldest..=now_ms).contains(made)) else { return false };
        self.used.insert(content.to_owned(), made).is_none()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_link_opens_once_within_its_hour_and_not_after_a_restart() {
        let value = |token: &str, at| made(token, at).unwrap().split_once(FIELD).unwrap().1.to_owned();
        let mut links = Links::new("secret\n", 1_000);
        let one = value("secret", 2_000);
        assert!(!links.accept(&one, 1_999), "made in the future");
        assert!(links.accept(&one, 2_000) && !links.accept(&one, 2_001));
        assert!(links.accept(&value("secret", 2_000), 2_000 + LIFETIME_MS));
        assert!(!links.accept(&value("secret", 2_000), 2_001 + LIFETIME_MS));
        assert!(!links.accept(&one, 2_002 + LIFETIME_MS), "forgotten, but too old");
        assert!(!Links::new("secret", 2_500).accept(&one, 3_000), "made before the restart");
        let other = value("another", 2_000);
        let later = one.replacen("2000", "2001", 1);
        for wrong in ["", ".", "x.y", "2000.aa.", &*other, &*later, &one[1..], &one[..one.len() - 1]] {
            assert!(!Links::new("secret", 0).accept(wrong, 3_000), "{wrong}");
        }
        assert_eq!(presented(Some("a=b&once=c")), Some("c"));
        assert_eq!([presented(Some("token=c")), presented(None)], [None, None]);
    }
}
