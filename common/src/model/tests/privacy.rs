//! Foundations of privacy and detailed balance, whatever a record contains.

use super::*;

/// Any float, often an extreme one.
fn wild() -> impl Strategy<Value = f64> {
    let extremes =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, -0.0, 0.0, 1.0, -1.0, 1e300];
    prop_oneof![any::<f64>(), prop::sample::select(extremes.to_vec()), -2.0..2.0]
}

/// Takes as many of `values` as the case's records have fields.
fn record(case: &Case, values: &[f64; 8]) -> Record {
    let mut values = values.iter().cycle();
    case.filled(&mut || *values.next().unwrap())
}

proptest! {
    /// Privacy depends on the clamp alone: whatever a record contains, even values that loading would refuse, replacing it moves
    /// the sum by at most twice the sensitivity.
    #[test]
    fn replacing_a_record_moves_the_sum_by_at_most_twice_the_sensitivity(
        rows in prop::collection::vec(prop::array::uniform8(wild()), 1..20),
        replacement in prop::array::uniform8(wild()),
        at in any::<prop::sample::Index>(),
        seed in any::<u64>(),
        centre in -1.0..1.0,
        units in 1..=1_u64 << 45,
    ) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let k_t = Sensitivity::from_units(units).unwrap();
        let at = at.index(rows.len());
        for case in cases() {
            let (from, to) = case.step(&mut rng);
            let sum = |rows: &[Record]| {
                let step = Step { centre, ..Step::new(&from, &to, k_t) };
                reveal(case.model.lattice_sums(&shard(rows), &[step]).pop().unwrap())
            };
            let mut rows: Vec<Record> = rows.iter().map(|values| record(&case, values)).collect();
            let before = sum(&rows);
            let original = std::mem::replace(&mut rows[at], record(&case, &replacement));
            let after = sum(&rows);
            rows[at] = original;
            prop_assert!(after.abs_diff(before) <= 2 * units, "{}", case.name);
            prop_assert!(sum(&rows[at..=at]).unsigned_abs() <= units, "{}", case.name);
        }
    }

    #[test]
    fn sums_are_odd_in_the_step(
        rows in prop::collection::vec(prop::array::uniform8(wild()), 1..20),
        seed in any::<u64>(),
        units in 1..=1_u64 << 45,
    ) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let k_t = Sensitivity::from_units(units).unwrap();
        for case in cases() {
            let (from, to) = case.step(&mut rng);
            let mut rows: Vec<Record> = rows.iter().map(|values| record(&case, values)).collect();
            rows.extend((0..20).map(|_| case.record(&mut rng)));
            let sum = |rows: &[Record], from: &[f64], to: &[f64], centre: f64| {
                reveal(case.model.lattice_sums(&shard(rows), &[Step { centre, ..Step::new(from, to, k_t) }]).pop().unwrap())
            };
            let (there, back) = (case.model.centre(&from, &to), case.model.centre(&to, &from));
            for (there, back) in [(0.0, 0.0), (there, back)] {
                prop_assert_eq!(sum(&rows, &from, &to, there), -sum(&rows, &to, &from, back), "{}", case.name);
                for row in &rows {
                    let one = std::slice::from_ref(row);
                    prop_assert_eq!(sum(one, &from, &to, there), -sum(one, &to, &from, back), "{}: {:?}", case.name, row);
                }
            }
        }
    }
}
