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
        .map(|k| (strsim::damerau_levenshtein(name, k), k))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, k)| *distance <= 2.max(k.len() / 3))
        .map(|(_, k)| k)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_not_compared() {
        let long = "x".repeat(1_000_000);
        assert_eq!(nearest(&long, ["x", &long].into_iter()), None);
        assert_eq!(nearest("x", [long.as_str()].into_iter()), None);
    }
}
