//! A misspelt name is answered with the known name nearest to it.

/// Longest name that a suggestion is looked for: the search takes time in proportion to the product of
/// two lengths, and a daemon meets names that strangers wrote.
const LONGEST: usize = 64;

/// The known name nearest to `name`, if any is near enough to be a slip.
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
