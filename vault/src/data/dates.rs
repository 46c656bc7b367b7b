//! Converts dates to numbers: the distance from an origin in a unit of time, both of which the owner declares.

use time::{Date, Month, UtcOffset};

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

/// The units' names and their nanoseconds; a year is the Julian one, of 365.25 days.
const UNITS: [(&str, i64); 6] = [
    ("seconds", SECOND),
    ("minutes", 60 * SECOND),
    ("hours", 3600 * SECOND),
    ("days", DAY),
    ("weeks", 7 * DAY),
    ("years", 365 * DAY + DAY / 4),
];

/// The scale of dates, as in `"days since 2020-01-01"`; without an origin, since 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateScale {
    /// Nanoseconds of the unit.
    unit: i64,
    /// Nanoseconds from 1970-01-01, 0:00 UTC, to the origin.
    origin: i128,
}

impl DateScale {
    /// Parses a scale.
    ///
    /// # Errors
    /// The accepted forms.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (unit, origin) = text.split_once(" since ").map_or((text, None), |(unit, origin)| (unit, Some(origin)));
        let unit = UNITS.iter().find(|(name, _)| *name == unit.trim()).map(|(_, nanoseconds)| *nanoseconds);
        let origin = origin.map_or(Some(0), |origin| nanoseconds_of(origin.trim().as_bytes()));
        unit.zip(origin).map(|(unit, origin)| Self { unit, origin }).ok_or_else(|| {
            let units = UNITS.map(|(name, _)| name).join(", ");
            format!("it must be one of {units}, and may name an origin: \"days since 2020-01-01\"")
        })
    }

    /// Returns the number of a time: nanoseconds since 1970-01-01, 0:00 UTC.
    pub(super) fn of_nanoseconds(self, nanoseconds: i128) -> f64 {
        let (since, unit) = (nanoseconds - self.origin, i128::from(self.unit));
        // Whole units are exact for any number of nanoseconds.
        since.div_euclid(unit) as f64 + since.rem_euclid(unit) as f64 / self.unit as f64
    }

    /// Parses a date by ISO 8601: `2026-03-01`, `2026-03-01T14:30`, `2026-03-01 14:30:05.25+01:00`. Without an offset it is UTC.
    pub(super) fn of_text(self, text: &[u8]) -> Option<f64> {
        nanoseconds_of(text).map(|nanoseconds| self.of_nanoseconds(nanoseconds))
    }
}

/// Nanoseconds from the start of 1970 to the start of a Unix day.
pub(super) fn of_day(day: i64) -> i128 {
    i128::from(day) * i128::from(DAY)
}

fn nanoseconds_of(text: &[u8]) -> Option<i128> {
    let mut rest = Cursor(text);
    let (year, ()) = (rest.digits(4)?, rest.expect(b"-")?);
    let (month, ()) = (rest.digits(2)?, rest.expect(b"-")?);
    let day = rest.digits(2)?;
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    let date = Date::from_calendar_date(i32::try_from(year).ok()?, month, u8::try_from(day).ok()?).ok()?;
    let midnight = of_day(date.midnight().assume_utc().unix_timestamp() / 86_400);
    if rest.0.is_empty() {
        return Some(midnight);
    }
    rest.expect(b"T ")?;
    let (hour, ()) = (rest.digits(2)?, rest.expect(b":")?);
    let minute = rest.digits(2)?;
    let second = if rest.expect(b":").is_some() { rest.digits(2)? } else { 0 };
    let fraction = if rest.expect(b".,").is_some() { rest.fraction()? } else { 0 };
    let offset = rest.offset()?;
    if hour > 23 || minute > 59 || second > 59 || !rest.0.is_empty() {
        return None;
    }
    let seconds = hour * 3600 + minute * 60 + second - offset;
    Some(midnight + i128::from(seconds) * i128::from(SECOND) + i128::from(fraction))
}

/// The unread rest of a text.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        let number = digits.iter().try_fold(0, |number, digit| Some(10 * number + i64::from(value_of(*digit)?)))?;
        self.0 = rest;
        Some(number)
    }

    /// Takes one of these bytes.
    fn expect(&mut self, any: &[u8]) -> Option<()> {
        let (first, rest) = self.0.split_first()?;
        any.contains(first).then(|| self.0 = rest)
    }

    /// Takes the nanoseconds of a fraction of a second; finer digits are cut off.
    fn fraction(&mut self) -> Option<i64> {
        let count = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at_checked(count).filter(|_| count > 0)?;
        self.0 = rest;
        Some((0..9).fold(0, |number, at| 10 * number + digits.get(at).and_then(|d| value_of(*d)).map_or(0, i64::from)))
    }

    /// Takes an offset in seconds east of UTC; 0 where there is none.
    fn offset(&mut self) -> Option<i64> {
        let sign = match self.0.first() {
            None => return Some(0),
            Some(b'Z') => return self.expect(b"Z").map(|()| 0),
            Some(b'+') => 1,
            Some(b'-') => -1,
            Some(_) => return None,
        };
        self.expect(b"+-")?;
        let hours = self.digits(2)?;
        let _ = self.expect(b":");
        let minutes = if self.0.is_empty() { 0 } else { self.digits(2)? };
        let (hours, minutes) = (sign * i8::try_from(hours).ok()?, sign * i8::try_from(minutes).ok()?);
        UtcOffset::from_hms(hours, minutes, 0).ok().map(|offset| i64::from(offset.whole_seconds()))
    }
}

fn value_of(digit: u8) -> Option<u8> {
    digit.is_ascii_digit().then(|| digit - b'0')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;
    use time::OffsetDateTime;

    use super::*;

    #[test]
    fn dates_are_read_in_the_declared_unit() {
        let of = |scale: &str, text: &str| DateScale::parse(scale).unwrap().of_text(text.as_bytes());
        assert_eq!(of("days", "1970-01-01"), Some(0.0));
        assert_eq!(of("days", "1969-12-31"), Some(-1.0));
        assert_eq!(of("days since 2020-01-01", "2020-03-01"), Some(60.0));
        assert_eq!(of("hours since 2020-01-01T12:00", "2020-01-01 13:30"), Some(1.5));
        assert_eq!(of("seconds", "1970-01-01T00:00:01.25Z"), Some(1.25));
        assert_eq!(of("minutes", "1970-01-01T01:00:00+01:00"), Some(0.0));
        assert_eq!(of("minutes", "1970-01-01T00:00-0130"), Some(90.0));
        assert_eq!(of("years since 2000-01-01", "2004-01-01"), Some(4.0));
        assert_eq!(of("weeks", "1970-01-15"), Some(2.0));
    }

    #[test]
    fn what_is_no_date_is_none() {
        let days = DateScale::parse("days").unwrap();
        for text in [
            "",
            "2020",
            "2020-1-1",
            "2020-02-30",
            "2021-02-29",
            "2020-13-01",
            "01.03.2020",
            "2020-03-01x",
            "2020-03-01T",
            "2020-03-01T25:00",
            "2020-03-01T10:60",
            "2020-03-01T10:00:60",
            "2020-03-01T10:00.",
            "2020-03-01T10:00+99:00",
            "2020-03-01T10:00 UTC",
            "+020-03-01",
            "1600000000",
            "2020-03-01T10:00+01:00:",
        ] {
            assert_eq!(days.of_text(text.as_bytes()), None, "{text:?}");
        }
        for text in ["", "day", "months", "days since", "days since 2020", "days  since 2020-01-01 "] {
            assert_eq!(DateScale::parse(text).is_ok(), text.starts_with("days  "), "{text:?}");
        }
        assert!(DateScale::parse("months").unwrap_err().contains("seconds, minutes, hours, days, weeks, years"));
    }

    proptest! {
        #[test]
        fn a_time_is_the_one_that_the_library_means(seconds in -60_000_000_000_i64..250_000_000_000) {
            let time = OffsetDateTime::from_unix_timestamp(seconds).unwrap();
            let (date, (hour, minute, second)) = (time.date(), time.time().as_hms());
            let text = format!("{date}T{hour:02}:{minute:02}:{second:02}Z");
            prop_assert_eq!(DateScale::parse("seconds").unwrap().of_text(text.as_bytes()), Some(seconds as f64));
            prop_assert_eq!(DateScale::parse("days").unwrap().of_text(date.to_string().as_bytes()), Some(seconds.div_euclid(86_400) as f64));
        }
    }
}
