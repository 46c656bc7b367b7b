//! Kernels against the plain densities, and the different methods of summation.

use super::*;
use conclave_privacy::mechanism::{MAX_SENSITIVITY, STEP};

/// Returns one record's log ratio as computed by the kernel, up to half a lattice step.
fn kernel(case: &Case, record: &Record, from: &[f64], to: &[f64]) -> f64 {
    let widest = Sensitivity::from_units(MAX_SENSITIVITY).unwrap();
    reveal(case.model.lattice_sum(&shard(std::slice::from_ref(record)), from, to, widest)) as f64 * STEP
}

#[test]
fn a_records_ratio_is_the_plain_densitys() {
    for (seed, case) in cases().iter().enumerate() {
        let mut rng = ChaCha20Rng::seed_from_u64(100 + seed as u64);
        for _ in 0..20_000 {
            let (from, to) = case.step(&mut rng);
            let record = case.record(&mut rng);
            let expected = case.ratio(&record, &from, &to);
            // The widest clamp is 2^18.
            if expected.abs() < 2e5 {
                let got = kernel(case, &record, &from, &to);
                let limit = 1e-9 * (1.0 + expected.abs()) + case.rounding(&record, &from, &to);
                assert!((got - expected).abs() <= limit, "{}: {record:?} {from:?} {to:?}: {got} {expected}", case.name);
            }
        }
    }
}

#[test]
fn sums_agree_with_the_definition() {
    let mut rng = ChaCha20Rng::seed_from_u64(13);
    for case in cases() {
        // Sizes around the block length, and zero.
        for records in [0, 1, 3, 511, 512, 513, 2_000] {
            let rows: Vec<Record> = (0..records).map(|_| case.record(&mut rng)).collect();
            let data = if records == 0 { empty(&case) } else { shard(&rows) };
            let (from, to) = (case.theta(&mut rng, 1.0), case.theta(&mut rng, 1.0));
            let k_t = Sensitivity::from_units(1 << 45).unwrap();
            let got = reveal(case.model.lattice_sum(&data, &from, &to, k_t)) as f64 * STEP;
            let expected: f64 = rows.iter().map(|row| case.ratio(row, &from, &to)).sum();
            let rounding: f64 = rows.iter().map(|row| case.rounding(row, &from, &to)).sum();
            assert!((got - expected).abs() <= f64::from(records) * STEP + rounding, "{}: {got} {expected}", case.name);
            let plain = case.model.log_likelihood(&data, &to) - case.model.log_likelihood(&data, &from);
            assert!((plain - expected).abs() <= 10.0 * rounding, "{}: {plain} {expected}", case.name);
        }
    }
}

#[test]
fn steps_together_equal_steps_alone_and_parts_add_up() {
    let mut rng = ChaCha20Rng::seed_from_u64(14);
    for case in cases() {
        let model = &case.model;
        let rows: Vec<Record> = (0..1_500).map(|_| case.record(&mut rng)).collect();
        let pairs: Vec<_> = (0..4).map(|_| case.step(&mut rng)).collect();
        let k_t = Sensitivity::from_units(1 << 30).unwrap();
        let steps: Vec<Step<'_>> = pairs.iter().map(|(from, to)| Step::new(from, to, k_t)).collect();
        let data = shard(&rows);
        let together: Vec<i64> = model.lattice_sums(&data, &steps).into_iter().map(reveal).collect();
        for (step, sum) in steps.iter().zip(together) {
            assert_eq!(sum, reveal(model.lattice_sum(&data, step.from, step.to, k_t)));
            let parts = rows.chunks(700).map(|part| model.lattice_sum(&shard(part), step.from, step.to, k_t));
            assert_eq!(sum, reveal(parts.reduce(LatticeSum::merge_for_test).unwrap()));
        }
    }
}

#[test]
fn vector_code_gives_the_bits_of_scalar_code() {
    // A shard of one record is too short for a vector, so it takes the scalar path.
    let mut rng = ChaCha20Rng::seed_from_u64(15);
    for case in cases() {
        let k_t = Sensitivity::from_units(1 << 40).unwrap();
        for _ in 0..200 {
            let rows: Vec<Record> = (0..37).map(|_| case.record(&mut rng)).collect();
            let (from, to) = case.step(&mut rng);
            let sum = reveal(case.model.lattice_sum(&shard(&rows), &from, &to, k_t));
            let alone = rows.iter().map(|row| reveal(case.model.lattice_sum(&shard(std::slice::from_ref(row)), &from, &to, k_t)));
            assert_eq!(sum, alone.sum::<i64>(), "{}", case.name);
        }
    }
}

#[test]
#[should_panic(expected = "overflow a lattice sum")]
fn a_sum_that_could_overflow_is_not_started() {
    let model = gaussian_mean::case().model;
    let data = ModelData { outcome: vec![0.0; 4_096], ..ModelData::default() };
    let _ = model.lattice_sum(&data, &[0.0], &[1.0], Sensitivity::from_units(1 << 50).unwrap());
}
