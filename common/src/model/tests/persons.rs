//! A person as the unit of privacy.

use super::*;
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::sensitivity;

/// Replaces every record of one person: the same public shape, another person.
fn with_person(records: &[Vec<Record>], at: usize, other: Vec<Record>) -> Vec<Vec<Record>> {
    let mut changed = records.to_vec();
    changed[at] = other;
    changed
}

pub(super) fn by_person(case: &Case, records: &[Vec<Record>], limit: u32) -> ModelData {
    let ends = records
        .iter()
        .scan(0, |end, person| {
            *end += person.len();
            Some(*end)
        })
        .collect();
    let data = if records.is_empty() { empty(case) } else { shard(&records.concat()) };
    ModelData { persons: Some(Persons::new(ends, limit).unwrap()), ..data }
}

/// Returns the model's bound, or an arbitrary clip where it has none.
fn bound(case: &Case, from: &[f64], to: &[f64]) -> f64 {
    let bound = case.model.bound(from, to);
    if bound < 1e4 { bound } else { 0.5 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn replacing_a_person_moves_the_sum_by_at_most_twice_the_sensitivity(seed in any::<u64>(), limit in 1_u32..8, persons in 1_usize..300) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        for case in cases() {
            let (from, to) = case.step(&mut rng);
            let per_record = sensitivity(bound(&case, &from, &to) * [1.0, 0.1][rng.random_range(0..2)], None).unwrap();
            let k_t = PrivacyUnit::person(Adjacency::Replace, limit).unwrap().sensitivity(per_record).unwrap();
            let person = |rng: &mut ChaCha20Rng| -> Vec<Record> {
                let wild = rng.random_bool(0.2);
                (0..rng.random_range(1..=limit)).map(|_| if wild { case.any_record(rng) } else { case.record(rng) }).collect()
            };
            let records: Vec<Vec<Record>> = (0..persons).map(|_| person(&mut rng)).collect();
            let (at, other) = (rng.random_range(0..persons), person(&mut rng));
            let sum = |records: &[Vec<Record>], from: &[f64], to: &[f64]| {
                reveal(case.model.lattice_sum(&by_person(&case, records, limit), from, to, k_t))
            };
            let changed = with_person(&records, at, other);
            let moved = sum(&changed, &from, &to).abs_diff(sum(&records, &from, &to));
            prop_assert!(moved <= 2 * k_t.units(), "{} beyond {}", moved, 2 * k_t.units());
            // Removing the person moves the sum by at most the sensitivity.
            let mut fewer = records.clone();
            fewer.remove(at);
            prop_assert!(sum(&fewer, &from, &to).abs_diff(sum(&records, &from, &to)) <= k_t.units());
            // The sum is odd in the step, and reproducible.
            prop_assert_eq!(sum(&records, &to, &from), -sum(&records, &from, &to));
        }
    }

    #[test]
    fn persons_of_one_record_are_rows(seed in any::<u64>(), count in 1_usize..1500) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        for case in cases() {
            let (from, to) = case.step(&mut rng);
            let k_t = sensitivity(bound(&case, &from, &to), None).unwrap();
            let rows: Vec<Record> = (0..count).map(|_| case.record(&mut rng)).collect();
            let persons: Vec<Vec<Record>> = rows.iter().map(|r| vec![r.clone()]).collect();
            prop_assert_eq!(
                reveal(case.model.lattice_sum(&by_person(&case, &persons, 1), &from, &to, k_t)),
                reveal(case.model.lattice_sum(&shard(&rows), &from, &to, k_t))
            );
        }
    }
}
