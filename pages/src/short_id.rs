//! Ids of jobs by their first characters, on every surface.

use maud::{Markup, html};

/// Length of a whole id.
pub const WHOLE: usize = 36;
/// Minimum length of a shown id.
pub const SHORT: usize = 8;
/// Maximum number of ids that an error lists.
const LISTED: usize = 5;

/// The reason why first characters name no single job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoMatch {
    /// No id begins with them.
    Unknown,
    /// Several ids begin with them; the message lists some.
    Several(String),
}

/// Returns the only id that begins with `start`, or the id that equals it.
///
/// # Errors
/// No id or several ids begin with `start`.
pub fn choose<'a>(start: &str, ids: impl IntoIterator<Item = &'a str>) -> Result<&'a str, NoMatch> {
    let found: Vec<&str> = ids.into_iter().filter(|id| !start.is_empty() && id.starts_with(start)).collect();
    if let Some(exact) = found.iter().find(|id| **id == start) {
        return Ok(exact);
    }
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(NoMatch::Unknown),
        several => Err(NoMatch::Several(format!(
            "the ids of {} jobs begin with {start:?}: give more characters of one of {}",
            several.len(),
            several.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ")
        ))),
    }
}

/// Returns the number of first characters that distinguish the ids, at least [`SHORT`].
#[must_use]
pub fn shortest(ids: &[&str]) -> usize {
    let unique = |length: usize| {
        let starts: std::collections::BTreeSet<&str> = ids.iter().map(|id| first(id, length)).collect();
        starts.len() == ids.len()
    };
    (SHORT..WHOLE).find(|length| unique(*length)).unwrap_or(WHOLE)
}

/// Returns the first characters of an id.
#[must_use]
pub fn first(id: &str, length: usize) -> &str {
    id.get(..length).unwrap_or(id)
}

/// Builds the first characters of an id, with the whole id as the title.
#[must_use]
pub fn short(id: &str, length: usize) -> Markup {
    html! { code title=(id) { (first(id, length)) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: [&str; 3] = ["4f01aaaa-1", "4f02aaaa-2", "90aaaaaa-3"];

    #[test]
    fn the_first_characters_name_one_job() {
        assert_eq!(choose("4f02", IDS), Ok(IDS[1]));
        assert_eq!(choose("4f", ["4f", "4f1"]), Ok("4f"));
        let several = NoMatch::Several(
            "the ids of 2 jobs begin with \"4f\": give more characters of one of 4f01aaaa-1, 4f02aaaa-2".to_owned(),
        );
        assert_eq!(choose("4f", IDS), Err(several));
        assert_eq!([choose("5", IDS), choose("", IDS)], [Err(NoMatch::Unknown), Err(NoMatch::Unknown)]);
    }

    #[test]
    fn ids_are_as_short_as_they_differ() {
        assert_eq!([shortest(&["4f01aaaa-1", "4f02aaaa-2"]), shortest(&["4f01aaaa-1", "4f01aaaa-2"]), shortest(&[])], [8, 10, 8]);
        assert_eq!((first("abc", 2), first("a", 8)), ("ab", "a"));
        assert_eq!(short("4f01aaaa-1", 8).into_string(), "<code title=\"4f01aaaa-1\">4f01aaaa</code>");
    }
}
