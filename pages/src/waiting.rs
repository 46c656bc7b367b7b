//! A job that waits for its owners' consent: its state and its sentence, the same on a terminal, a coordinator's page and an owner's.

use crate::text::plain_name;

/// The state, in lists of jobs.
pub const FOR_CONSENT: &str = "waiting for consent";

/// Greatest number of parties that a sentence names.
const MOST: usize = 8;

/// Returns true if a job waits for owners' decisions, and for nothing else.
#[must_use]
pub fn is_for_consent(waiting_for: &[String], awaiting_consent: &[String]) -> bool {
    !waiting_for.is_empty() && waiting_for.iter().all(|party| awaiting_consent.contains(party))
}

/// Returns the clause that names the owners: `waiting for hospital-a's decision`.
#[must_use]
pub fn for_decision(parties: &[String]) -> String {
    match parties {
        [one] => format!("waiting for {}'s decision", plain_name(one)),
        several => {
            let named: Vec<String> = several.iter().take(MOST).map(|party| plain_name(party)).collect();
            let more = several.len() - named.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("waiting for the decisions of {}{more}", named.join(", "))
        }
    }
}

/// Formats ` since 15 min` in whole minutes, so that no page announces seconds; empty if the start is not known. Both times are Unix
/// times in milliseconds.
#[must_use]
pub fn since(unix_ms: i64, now_ms: i64) -> String {
    if unix_ms <= 0 {
        return String::new();
    }
    let minutes = now_ms.saturating_sub(unix_ms).max(0) / 60_000;
    match minutes {
        0 => " since less than a minute".to_owned(),
        1..60 => format!(" since {minutes} min"),
        60..1440 => format!(" since {} h", minutes / 60),
        _ => format!(" since {} d", minutes / 1440),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_who_have_to_decide_are_named() {
        let names = |n: usize| (0..n).map(|i| format!("h-{i}")).collect::<Vec<_>>();
        assert_eq!(for_decision(&names(1)), "waiting for h-0's decision");
        assert_eq!(for_decision(&names(2)), "waiting for the decisions of h-0, h-1");
        assert!(for_decision(&names(40)).ends_with("h-7 and 32 more"));
        assert!(is_for_consent(&names(2), &names(3)));
        // Another party is away: its absence holds the job up too.
        assert!(!is_for_consent(&names(2), &names(1)) && !is_for_consent(&[], &names(1)));
    }

    #[test]
    fn a_wait_has_whole_units() {
        let at = |minutes: i64| since(1, minutes * 60_000 + 5_000);
        assert_eq!([at(0), at(15), at(60), at(3000)], [" since less than a minute", " since 15 min", " since 1 h", " since 2 d"]);
        assert_eq!((since(0, 5), since(9, 5)), (String::new(), " since less than a minute".to_owned()));
    }
}
