//! Fair order of the queue: first come, first served for each analyst, and fair between analysts. No clock, no input or output.

use std::collections::BTreeMap;

/// Computes the order in which waiting jobs begin if no running job ends, as positions in `waiting`. `waiting` holds the analyst
/// of each job in the order of submission.
///
/// The next job belongs to the analyst with the fewest running jobs. Ties go to the analyst served longest ago (`served` holds
/// increasing numbers), then to the one who has waited longest.
pub(super) fn fair_order(waiting: &[&str], running: &BTreeMap<String, usize>, served: &BTreeMap<String, u64>) -> Vec<usize> {
    struct AnalystQueue {
        running: usize,
        served: u64,
        /// Positions, in reverse order.
        jobs: Vec<usize>,
    }
    let mut queues: BTreeMap<&str, AnalystQueue> = BTreeMap::new();
    for (at, analyst) in waiting.iter().enumerate().rev() {
        let new = || AnalystQueue {
            running: running.get(*analyst).copied().unwrap_or(0),
            served: served.get(*analyst).copied().unwrap_or(0),
            jobs: Vec::new(),
        };
        queues.entry(analyst).or_insert_with(new).jobs.push(at);
    }
    let mut turn = served.values().copied().max().unwrap_or(0);
    let mut order = Vec::with_capacity(waiting.len());
    while let Some(queue) = queues
        .values_mut()
        .filter(|queue| !queue.jobs.is_empty())
        .min_by_key(|queue| (queue.running, queue.served, queue.jobs.last().copied()))
    {
        order.extend(queue.jobs.pop());
        turn += 1;
        (queue.running, queue.served) = (queue.running + 1, turn);
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
        assert_eq!(fair_order(&["a"; 4], &counts(&[("a", 7)]), &BTreeMap::new()), [0, 1, 2, 3]);
        assert!(fair_order(&[], &counts(&[("a", 7)]), &BTreeMap::new()).is_empty());
    }

    /// However many jobs one analyst has sent, another's first job waits for at most one of them.
    #[test]
    fn analysts_take_turns() {
        assert_eq!(fair_order(&["a", "a", "a", "a", "b", "b"], &BTreeMap::new(), &BTreeMap::new()), [0, 4, 1, 5, 2, 3]);
        // The analyst with fewer running jobs comes first.
        assert_eq!(fair_order(&["a", "a", "b", "b"], &counts(&[("a", 2)]), &BTreeMap::new()), [2, 3, 0, 1]);
        // Of equals, the one served longest ago comes first.
        let served = BTreeMap::from([("a".to_owned(), 5), ("b".to_owned(), 3)]);
        assert_eq!(fair_order(&["a", "b", "a"], &BTreeMap::new(), &served), [1, 0, 2]);
    }
}
