//! Times as people read them, in UTC: `2026-11-29 08:42:07 UTC`. JSON objects and ledgers have RFC 3339.

use time::OffsetDateTime;
use time::macros::format_description;

/// Number of characters of a time to the second, without a zone.
const TO_SECONDS: usize = 19;

/// Formats a Unix time in milliseconds; empty unless it is positive and in the calendar.
#[must_use]
pub fn utc(unix_ms: i64) -> String {
    let format = format_description!("[year]-[month]-[day] [hour]:[minute]:[second] UTC");
    let time = OffsetDateTime::from_unix_timestamp(unix_ms.div_euclid(1000)).ok().filter(|_| unix_ms > 0);
    time.and_then(|time| time.format(&format).ok()).unwrap_or_default()
}

/// Formats a UTC time of RFC 3339, such as a ledger's; any other text is returned unchanged.
#[must_use]
pub fn stored(time: &str) -> String {
    let shape = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        10 => byte == b'T',
        13 | 16 => byte == b':',
        _ => byte.is_ascii_digit(),
    };
    match time.split_at_checked(TO_SECONDS) {
        Some((moment, rest)) if rest.ends_with('Z') && moment.bytes().enumerate().all(shape) => {
            format!("{} UTC", moment.replace('T', " "))
        }
        _ => time.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_one_format() {
        assert_eq!(utc(1_700_000_000_123), "2023-11-14 22:13:20 UTC");
        assert_eq!([utc(0), utc(i64::MAX)], [String::new(), String::new()]);
        for time in ["2023-11-14T22:13:20Z", "2023-11-14T22:13:20.123Z"] {
            assert_eq!(stored(time), "2023-11-14 22:13:20 UTC");
        }
        for other in ["", "2026-03-01", "not yet", "2023-11-14T22:13:20+01:00", "ééééééééééééééééééé"] {
            assert_eq!(stored(other), other);
        }
    }
}
