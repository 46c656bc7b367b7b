//! Whose turn it is: first come, first served for each analyst, and fair between analysts. No clock, no input or output.

use std::collections::BTreeMap;

/// In which order waiting jobs begin, should none of those that run end: positions in `waiting`, which holds the analyst of each in the order
/// of submission.
///
/// The next is of an analyst of whom the fewest run; of several, of the one who was served longest ago (`served` says when, by a number
/// that grows), then of the one who has waited longest.
pub(super) fn order(waiting: &[&str], running: &BTreeMap<String, usize>, served: &BTreeMap<String, u64>) -> Vec<usize> {
    struct Line {
        running: usize,
        served: u64,
        /// Positions, the last first.
        jobs: Vec<usize>,
    }
    let mut lines: BTreeMap<&str, Line> = BTreeMap::new();
    for (at, analyst) in waiting.iter().enumerate().rev() {
        let new = || Line {
            running: running.get(*analyst).copied().unwrap_or(0),
            served: served.get(*analyst).copied().unwrap_or(0),
            jobs: Vec::new(),
        };
        lines.entry(analyst).or_insert_with(new).jobs.push(at);
    }
    let mut turn = served.values().copied().max().unwrap_or(0);
    let mut order = Vec::with_capacity(waiting.len());
    while let Some(line) = lines
        .values_mut()
        .filter(|line| !line.jobs.is_empty())
        .min_by_key(|line| (line.running, line.served, line.jobs.last().copied()))
    {
        order.extend(line.jobs.pop());
        turn += 1;
        (line.running, line.served) = (line.running + 1, turn);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(of: &[(&str, usize)]) -> BTreeMap<String, usize> {
        of.iter().map(|(analyst, count)| ((*analyst).to_owned(), *count)).collect()
    }

    #[test]
    fn one_analysts_jobs_begin_as_they_came() {
        assert_eq!(order(&["a"; 4], &counts(&[("a", 7)]), &BTreeMap::new()), [0, 1, 2, 3]);
        assert!(order(&[], &counts(&[("a", 7)]), &BTreeMap::new()).is_empty());
    }

    /// However many one has sent, another's first waits for one of them at most.
    #[test]
    fn analysts_take_turns() {
        assert_eq!(order(&["a", "a", "a", "a", "b", "b"], &BTreeMap::new(), &BTreeMap::new()), [0, 4, 1, 5, 2, 3]);
        // Who has fewer that run comes first.
        assert_eq!(order(&["a", "a", "b", "b"], &counts(&[("a", 2)]), &BTreeMap::new()), [2, 3, 0, 1]);
        // Of equals, who was served longest ago.
        let served = BTreeMap::from([("a".to_owned(), 5), ("b".to_owned(), 3)]);
        assert_eq!(order(&["a", "b", "a"], &BTreeMap::new(), &served), [1, 0, 2]);
    }
}
