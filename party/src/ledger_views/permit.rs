//! A permit: purpose, reference and last day that an owner gives with an approval. It is stored with the decision and in the ledger.

use serde::{Deserialize, Serialize};
use time::macros::format_description;
use time::{Date, Time};

/// Largest number of characters of a purpose or a reference.
pub(crate) const LONGEST: usize = 300;
const DAY_MS: i64 = 86_400_000;

/// An invalid permit, or one that has ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PermitError {
    /// The last day is not a date.
    #[error("the last day is {0:?}: write a date such as 2027-03-31")]
    Day(String),
    /// The last day is over.
    #[error("the last day {0} is over (UTC): name a later one")]
    Past(Date),
    /// A field is too long, or has a character that acts on a display.
    #[error("{field} must be one line of at most {LONGEST} printable characters")]
    Field {
        /// The field.
        field: &'static str,
    },
    /// The permit ended.
    #[error("permit_expired: the owner's permit for this job ended on {0} (UTC)")]
    Expired(Date),
    /// A stored permit cannot be read, for instance because a later version wrote it.
    #[error("permit_unreadable: the owner's permit for this job can't be read by this version")]
    Unreadable,
    /// The ledger has a revocation that the file of decisions lacks.
    #[error("decision_differs: the ledger has the owner's revocation of this job, and the file of decisions has none")]
    Revoked,
    /// The files that hold the permits cannot be read.
    #[error("permit_unread: the owner's permits can't be read at this moment")]
    Unread,
}

impl PermitError {
    /// Returns the stable code.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Day(_) | Self::Past(_) | Self::Field { .. } => "permit_invalid",
            Self::Expired(_) => "permit_expired",
            Self::Unreadable => "permit_unreadable",
            Self::Revoked => "decision_differs",
            Self::Unread => "permit_unread",
        }
    }
}

/// The owner's terms of an approval.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Permit {
    /// The purpose for which the records may be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) purpose: Option<String>,
    /// The number of an ethics vote or a permit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reference: Option<String>,
    /// The last day on which the job is answered, UTC, as `YYYY-MM-DD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<String>,
}

impl Permit {
    /// Creates a permit from the owner's words; empty ones count as not given. `now_ms` is the Unix time in milliseconds.
    ///
    /// # Errors
    /// [`PermitError::Field`], [`PermitError::Day`], [`PermitError::Past`].
    pub(crate) fn new(purpose: &str, reference: &str, until: &str, now_ms: i64) -> Result<Self, PermitError> {
        let given = |field: &'static str, text: &str| match text.trim() {
            "" => Ok(None),
            text if text.chars().count() <= LONGEST && conclave_common::text::is_plain(text) => Ok(Some(text.to_owned())),
            _ => Err(PermitError::Field { field }),
        };
        let until = match until.trim() {
            "" => None,
            text => Some(parse(text).ok_or_else(|| PermitError::Day(text.chars().take(40).collect()))?),
        };
        if let Some(day) = until.filter(|day| end_of(*day) <= now_ms) {
            return Err(PermitError::Past(day));
        }
        let (purpose, reference) = (given("the purpose", purpose)?, given("the reference", reference)?);
        Ok(Self { purpose, reference, until: until.map(|day| day.to_string()) })
    }

    /// Returns true if no term is given.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Reads a stored permit.
    ///
    /// # Errors
    /// [`PermitError::Unreadable`].
    pub(crate) fn read(stored: &str) -> Result<Self, PermitError> {
        let permit: Self = serde_json::from_str(stored).map_err(|_| PermitError::Unreadable)?;
        match permit.until.as_deref().map(parse) {
            Some(None) => Err(PermitError::Unreadable),
            _ => Ok(permit),
        }
    }

    /// Returns the last day.
    pub(crate) fn last_day(&self) -> Option<Date> {
        self.until.as_deref().and_then(parse)
    }

    /// Checks that the last day is not over; it ends at midnight, UTC.
    ///
    /// # Errors
    /// [`PermitError::Expired`].
    pub(crate) fn check(&self, now_ms: i64) -> Result<(), PermitError> {
        match self.last_day() {
            Some(day) if end_of(day) <= now_ms => Err(PermitError::Expired(day)),
            _ => Ok(()),
        }
    }

    /// States the terms, for lists and statements.
    pub(crate) fn words(&self) -> String {
        let purpose = self.purpose.as_ref().map(|purpose| format!("purpose: {purpose}"));
        let reference = self.reference.as_ref().map(|reference| format!("reference: {reference}"));
        let until = self.until.as_ref().map(|day| format!("valid through {day} (UTC)"));
        [purpose, reference, until].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

/// Checks a stored permit at a moment.
///
/// # Errors
/// [`PermitError::Expired`], [`PermitError::Unreadable`].
pub(crate) fn check_stored(stored: &str, now_ms: i64) -> Result<(), PermitError> {
    Permit::read(stored)?.check(now_ms)
}

fn parse(text: &str) -> Option<Date> {
    Date::parse(text, format_description!("[year]-[month]-[day]")).ok()
}

/// Returns the first moment after a day, as Unix time in milliseconds.
fn end_of(day: Date) -> i64 {
    day.with_time(Time::MIDNIGHT).assume_utc().unix_timestamp().saturating_mul(1000).saturating_add(DAY_MS)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// 2027-03-31T00:00:00Z.
    const START: i64 = 1_806_451_200_000;

    #[test]
    fn a_permit_ends_with_its_last_day() {
        let permit = Permit::new(" readmission ", "EC 17/2026", "2027-03-31", START).unwrap();
        assert_eq!(permit.words(), "purpose: readmission; reference: EC 17/2026; valid through 2027-03-31 (UTC)");
        assert_eq!(permit.check(START + DAY_MS - 1), Ok(()));
        let expired = permit.check(START + DAY_MS).unwrap_err();
        assert_eq!((expired.code(), expired.to_string().split(':').next()), ("permit_expired", Some("permit_expired")));
        let stored = serde_json::to_string(&permit).unwrap();
        assert_eq!(Permit::read(&stored).unwrap(), permit);
        assert_eq!(check_stored(&stored, START + DAY_MS), Err(expired));
    }

    #[test]
    fn terms_are_optional_and_checked() {
        let none = Permit::new("", " ", "", START).unwrap();
        assert!(none.is_empty() && none.check(i64::MAX).is_ok() && none.words().is_empty());
        assert!(matches!(Permit::new("", "", "31.3.2027", START), Err(PermitError::Day(_))));
        assert!(matches!(Permit::new("", "", "2027-02-30", START), Err(PermitError::Day(_))));
        assert!(matches!(Permit::new("", "", "2027-03-30", START), Err(PermitError::Past(_))));
        assert!(Permit::new("", "", "2027-03-31", START + DAY_MS - 1).is_ok());
        let long = "x".repeat(LONGEST + 1);
        for bad in ["a\u{202e}b", "a\nb", long.as_str()] {
            assert_eq!(Permit::new(bad, "", "", START), Err(PermitError::Field { field: "the purpose" }));
            assert_eq!(Permit::new("", bad, "", START), Err(PermitError::Field { field: "the reference" }));
        }
    }

    /// An unreadable permit is no permission without an end.
    #[test]
    fn an_unreadable_permit_has_ended() {
        for stored in ["", "{", "{\"until\":\"soon\"}", "{\"untill\":\"2027-03-31\"}", "7"] {
            assert_eq!(check_stored(stored, 0), Err(PermitError::Unreadable), "{stored}");
        }
    }
}
