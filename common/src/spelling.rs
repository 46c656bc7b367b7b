//! Suggestions for misspelt names.

/// The longest name for which a suggestion is sought. The search takes time proportional to the product of two lengths, and a
/// daemon reads names from untrusted sources.
const LONGEST: usize = 64;

/// Returns the known name closest to `name`, if any is close enough to be a misspelling.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST {
        return None;
    }
    known
        .filter(|k| k.len() <= LONGEST)
        .map(|k| (if looks_alike(name, k) { 0 } else { strsim::damerau_levenshtein(name, k) }, k))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, k)| *distance <= 2.max(k.len() / 3))
        .map(|(_, k)| k)
}

/// Returns true if one name writes as a letter and an accent what the other writes as one character, as far as that can be seen
/// without Unicode's tables.
fn looks_alike(a: &str, b: &str) -> bool {
    let letters = |name: &str| name.chars().filter(|c| !('\u{300}'..='\u{36f}').contains(c)).collect::<Vec<_>>();
    let (plain, other) = (letters(a), letters(b));
    let accents = a.chars().count() - plain.len() + b.chars().count() - other.len();
    let apart = plain.iter().zip(&other).filter(|(a, b)| a != b);
    accents > 0
        && plain.len() == other.len()
        && apart.clone().count() <= accents
        && apart.clone().all(|(a, b)| a.is_ascii() != b.is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_accents_of_their_own_is_the_nearest() {
        assert_eq!(nearest("\u{e9}", ["y", "e\u{301}"].into_iter()), Some("e\u{301}"));
        assert_eq!(nearest("taille_e\u{301}", ["taille_x", "taille_\u{e9}"].into_iter()), Some("taille_\u{e9}"));
        assert_eq!(nearest("age", ["ag\u{e9}", "agf"].into_iter()), Some("ag\u{e9}"), "the first of two that are equally near");
        assert!(!looks_alike("\u{5e74}", "\u{6708}") && !looks_alike("xyz", "xe\u{301}z"));
    }

    #[test]
    fn long_names_are_not_compared() {
        let long = "x".repeat(1_000_000);
        assert_eq!(nearest(&long, ["x", &long].into_iter()), None);
        assert_eq!(nearest("x", [long.as_str()].into_iter()), None);
    }
}
