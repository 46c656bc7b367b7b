//! The sums over the shard: a query that is charged gets a number, whatever a record holds.
//!
//! Kernels are written not to panic on any numbers. Should one panic all the same, an error or an empty sum would tell of the one
//! record that did it, and would move the sum by more than the sensitivity that was charged. So the shard is halved until
//! the unit of privacy that does it stands alone, and that unit contributes 0: within its sensitivity, like any clamped value. How long that takes can be
//! told by an overrun of the reply delay, which is the owner's to see and a defect to report.

use std::panic::{AssertUnwindSafe, catch_unwind};

use conclave_common::mechanism::LatticeSum;
use conclave_common::model::{ModelData, Persons, Step};
use conclave_proto::convert::AnswerStatus;

use super::ActiveJob;

/// One sum per step, over all units of privacy but those on which the kernel panics.
///
/// # Errors
/// [`AnswerStatus::Halted`] where the kernel panics on an empty shard: that has nothing to do with a record.
pub(super) fn sums(active: &ActiveJob, steps: &[Step<'_>]) -> Result<Vec<LatticeSum>, AnswerStatus> {
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    guarded(&active.data, &|data: &ModelData| active.model.lattice_sums(data, steps)).ok_or(AnswerStatus::Halted)
}

/// What `sums` gives for the shard without the units on which it panics; none where it panics on an empty shard.
pub(super) fn guarded(data: &ModelData, sums: &impl Fn(&ModelData) -> Vec<LatticeSum>) -> Option<Vec<LatticeSum>> {
    halved(data, &data.emptied(), sums)
}

fn halved(data: &ModelData, empty: &ModelData, sums: &impl Fn(&ModelData) -> Vec<LatticeSum>) -> Option<Vec<LatticeSum>> {
    let attempt = |data: &ModelData| catch_unwind(AssertUnwindSafe(|| sums(data))).ok();
    if let Some(sums) = attempt(data) {
        return Some(sums);
    }
    let units = data.units() as usize;
    if units < 2 {
        return attempt(empty);
    }
    let lower = halved(&part(data, 0, units / 2), empty, sums)?;
    let upper = halved(&part(data, units / 2, units), empty, sums)?;
    Some(lower.into_iter().zip(upper).map(|(a, b)| a.merge(b)).collect())
}

/// The units from `from` to `to`, with their records.
fn part(data: &ModelData, from: usize, to: usize) -> ModelData {
    let ends = data.persons.as_ref().map(Persons::ends);
    let record = |unit: usize| match ends {
        Some(ends) => unit.checked_sub(1).and_then(|last| ends.get(last)).copied().unwrap_or(0),
        None => unit,
    };
    let (first, end) = (record(from), record(to));
    let cut = |values: &Vec<f64>| values.get(first..end).map(<[f64]>::to_vec).unwrap_or_default();
    let persons = data.persons.as_ref().and_then(|persons| {
        let ends = persons.ends().get(from..to).unwrap_or_default().iter().map(|end| end - first).collect();
        Persons::new(ends, persons.limit())
    });
    ModelData {
        outcome: cut(&data.outcome),
        predictors: data.predictors.iter().map(cut).collect(),
        auxiliary: data.auxiliary.iter().map(cut).collect(),
        persons,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn data(persons: Option<Persons>) -> ModelData {
        ModelData {
            outcome: (0..7).map(f64::from).collect(),
            predictors: vec![(10..17).map(f64::from).collect()],
            auxiliary: Vec::new(),
            persons,
        }
    }

    #[test]
    fn parts_keep_records_and_persons_together() {
        let half = part(&data(None), 3, 7);
        assert_eq!((half.outcome, half.predictors), (vec![3.0, 4.0, 5.0, 6.0], vec![vec![13.0, 14.0, 15.0, 16.0]]));
        let persons = Persons::new(vec![2, 3, 7], 4).unwrap();
        let half = part(&data(Some(persons)), 1, 3);
        assert_eq!(half.outcome, [2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(half.persons.unwrap().ends(), [1, 5]);
        assert_eq!(part(&data(None), 0, 0).records(), 0);
    }

    /// A kernel that panics on some records loses those alone; one that always panics gives nothing.
    #[test]
    fn only_the_units_that_a_kernel_panics_on_are_left_out() {
        let sum = |bad: [f64; 2]| {
            move |data: &ModelData| {
                assert!(!data.outcome.iter().any(|y| bad.contains(y)), "planted");
                vec![LatticeSum::from_units_for_test(data.outcome.iter().sum::<f64>() as i64)]
            }
        };
        let open = |sums: Option<Vec<LatticeSum>>| sums.map(|sums| sums.into_iter().map(LatticeSum::open_for_test).collect());
        assert_eq!(open(guarded(&data(None), &sum([-1.0; 2]))), Some(vec![21]));
        assert_eq!(open(guarded(&data(None), &sum([6.0, 2.0]))), Some(vec![13]));
        // With the record 4 goes its person, who has the records 3 to 6.
        let persons = Persons::new(vec![2, 3, 7], 4);
        assert_eq!(open(guarded(&data(persons), &sum([4.0; 2]))), Some(vec![3]));
        let never = |_: &ModelData| -> Vec<LatticeSum> { panic!("planted") };
        assert_eq!(open(guarded(&data(None), &never)), None::<Vec<i64>>);
    }
}
