#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::gaussian_mean::GaussianMean;
use super::logistic::Logistic;
use super::*;
use crate::mechanism::{STEP, sensitivity};

const AGE: ColumnSpec = ColumnSpec::Numeric { min: 20.0, max: 80.0 };

fn logistic() -> Logistic {
    let names = ["intercept", "a", "b", "c"].map(str::to_owned).to_vec();
    Logistic::new(names, &ColumnSpec::Binary, true, &[AGE, AGE, ColumnSpec::Binary])
}

fn gaussian() -> GaussianMean {
    GaussianMean::new(vec!["mean".to_owned()], &AGE, 9.0)
}

fn models() -> [Box<dyn Model>; 2] {
    [Box::new(logistic()), Box::new(gaussian())]
}

/// One record: outcome and three predictors (the Gaussian model ignores them).
type Record = [f64; 4];

fn shard(records: &[Record], model: &dyn Model) -> ModelData {
    let predictors = model.parameter_names().len() - 1;
    ModelData {
        outcome: records.iter().map(|r| r[0]).collect(),
        predictors: (1..=predictors).map(|j| records.iter().map(|r| r[j]).collect()).collect(),
        ..ModelData::default()
    }
}

fn reveal(sum: LatticeSum) -> i64 {
    sum.open_for_test()
}

/// The log likelihood of one record, as the models' documents define it and by the standard library.
fn reference(model: &dyn Model, record: &Record, theta: &[f64]) -> f64 {
    if theta.len() == 1 {
        return -(record[0] - theta[0]).powi(2) / (2.0 * 0.09);
    }
    assert_eq!(model.parameter_names().len(), 4);
    let eta = theta[0] + theta[1] * record[1] + theta[2] * record[2] + theta[3] * record[3];
    record[0] * eta - (eta.max(0.0) + (-eta.abs()).exp().ln_1p())
}

/// A record within the declared bounds, at their ends half of the time.
fn valid_record(rng: &mut ChaCha20Rng, model: &dyn Model) -> Record {
    let scaled = |rng: &mut ChaCha20Rng| match rng.random_range(0..4) {
        0 => -1.0,
        1 => 1.0,
        _ => rng.random_range(-1.0..=1.0),
    };
    let binary = f64::from(rng.random_range(0..2_u8));
    let outcome = if model.parameter_names().len() == 1 { scaled(rng) } else { f64::from(rng.random_range(0..2_u8)) };
    [outcome, scaled(rng), scaled(rng), binary]
}

fn theta(rng: &mut ChaCha20Rng, model: &dyn Model, scale: f64) -> Vec<f64> {
    model.parameter_names().iter().map(|_| rng.random_range(-scale..scale)).collect()
}

/// A step of a random size, in one coordinate half of the time.
fn step(rng: &mut ChaCha20Rng, model: &dyn Model) -> (Vec<f64>, Vec<f64>) {
    let scale = [0.1, 1.0, 3.0, 20.0][rng.random_range(0..4)];
    let size = [1e-7, 1e-3, 0.1, 2.0][rng.random_range(0..4)];
    let from = theta(rng, model, scale);
    let mut to = from.clone();
    let coordinate = rng.random_bool(0.5).then(|| rng.random_range(0..to.len()));
    for (j, t) in to.iter_mut().enumerate() {
        if coordinate.is_none_or(|c| c == j) {
            *t += rng.random_range(-size..size);
        }
    }
    (from, to)
}

fn check_bound(triples: usize) {
    for (seed, model) in models().iter().enumerate() {
        let mut rng = ChaCha20Rng::seed_from_u64(seed as u64);
        for _ in 0..triples {
            let (from, to) = step(&mut rng, &**model);
            let record = valid_record(&mut rng, &**model);
            let ratio = reference(&**model, &record, &to) - reference(&**model, &record, &from);
            let bound = model.bound(&from, &to);
            assert!(ratio.abs() <= bound + 1e-12, "{record:?} {from:?} {to:?}: {ratio} beyond {bound}");
        }
    }
}

#[test]
fn no_record_exceeds_the_public_bound() {
    check_bound(200_000);
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn no_record_exceeds_the_public_bound_in_millions() {
    check_bound(3_000_000);
}

#[test]
fn the_bound_is_near_the_supremum() {
    let mut rng = ChaCha20Rng::seed_from_u64(11);
    for model in models() {
        for _ in 0..2_000 {
            // One coordinate at a time, as the default proposal moves; a numeric one, so that all signs of the others are free.
            let from = theta(&mut rng, &*model, 2.0);
            let mut to = from.clone();
            let coordinate = rng.random_range(0..to.len().min(3));
            to[coordinate] += rng.random_range(-0.3..0.3);
            let mut greatest = 0.0_f64;
            for corner in 0..16 {
                let bit = |i: usize| f64::from(corner >> i & 1);
                let sign = |i: usize| 2.0 * bit(i) - 1.0;
                let outcome = if to.len() == 1 { sign(0) } else { bit(0) };
                let record = [outcome, sign(1), sign(2), bit(3)];
                greatest = greatest.max((reference(&*model, &record, &to) - reference(&*model, &record, &from)).abs());
            }
            assert!(model.bound(&from, &to) <= 1.5 * greatest, "{from:?} {to:?}");
        }
    }
}

#[test]
fn the_bound_is_symmetric_bit_for_bit() {
    let mut rng = ChaCha20Rng::seed_from_u64(12);
    for model in models() {
        for _ in 0..20_000 {
            let (from, to) = step(&mut rng, &*model);
            assert_eq!(model.bound(&from, &to).to_bits(), model.bound(&to, &from).to_bits());
        }
        let still = vec![0.3; model.parameter_names().len()];
        assert_eq!(model.bound(&still, &still), 0.0);
    }
}

#[test]
fn the_information_bound_is_the_supremum() {
    assert_eq!(logistic().information_bound(), [0.25; 4]);
    assert!((gaussian().information_bound()[0] - 1.0 / 0.09).abs() < 1e-9);
}

#[test]
fn sums_agree_with_the_definition() {
    let mut rng = ChaCha20Rng::seed_from_u64(13);
    for model in models() {
        // Sizes around the block length, and none at all.
        for records in [0, 1, 3, 511, 512, 513, 2_000] {
            let rows: Vec<Record> = (0..records).map(|_| valid_record(&mut rng, &*model)).collect();
            let data = shard(&rows, &*model);
            let (from, to) = (theta(&mut rng, &*model, 1.0), theta(&mut rng, &*model, 1.0));
            let k_t = sensitivity(model.bound(&from, &to), None).unwrap();
            let got = reveal(model.lattice_sum(&data, &from, &to, k_t)) as f64 * STEP;
            let expected: f64 = rows.iter().map(|row| reference(&*model, row, &to) - reference(&*model, row, &from)).sum();
            assert!((got - expected).abs() <= f64::from(records) * STEP, "{records}: {got} {expected}");
            let plain = model.log_likelihood(&data, &to) - model.log_likelihood(&data, &from);
            assert!((plain - expected).abs() <= 1e-10 * (1.0 + f64::from(records)), "{plain} {expected}");
        }
    }
}

#[test]
fn steps_together_equal_steps_alone_and_parts_add_up() {
    let mut rng = ChaCha20Rng::seed_from_u64(14);
    for model in models() {
        let rows: Vec<Record> = (0..1_500).map(|_| valid_record(&mut rng, &*model)).collect();
        let pairs: Vec<_> = (0..4).map(|_| step(&mut rng, &*model)).collect();
        let k_t = Sensitivity::from_units(1 << 30).unwrap();
        let steps: Vec<Step<'_>> = pairs.iter().map(|(from, to)| Step::new(from, to, k_t)).collect();
        let data = shard(&rows, &*model);
        let together: Vec<i64> = model.lattice_sums(&data, &steps).into_iter().map(reveal).collect();
        for (step, sum) in steps.iter().zip(together) {
            assert_eq!(sum, reveal(model.lattice_sum(&data, step.from, step.to, k_t)));
            let parts = rows.chunks(700).map(|part| model.lattice_sum(&shard(part, &*model), step.from, step.to, k_t));
            assert_eq!(sum, reveal(parts.reduce(LatticeSum::merge).unwrap()));
            assert_eq!(sum, reveal(model.lattice_sum(&shard(&rows, &*model), step.from, step.to, k_t)));
        }
    }
}

#[test]
fn vector_code_gives_the_bits_of_scalar_code() {
    // A shard of one record is too short for a vector, so it takes the scalar path.
    let mut rng = ChaCha20Rng::seed_from_u64(15);
    for model in models() {
        let k_t = Sensitivity::from_units(1 << 40).unwrap();
        for _ in 0..200 {
            let rows: Vec<Record> = (0..37).map(|_| valid_record(&mut rng, &*model)).collect();
            let (from, to) = step(&mut rng, &*model);
            let sum = reveal(model.lattice_sum(&shard(&rows, &*model), &from, &to, k_t));
            let alone = rows.iter().map(|row| reveal(model.lattice_sum(&shard(&[*row], &*model), &from, &to, k_t)));
            assert_eq!(sum, alone.sum::<i64>());
        }
    }
}

#[test]
#[should_panic(expected = "overflow a lattice sum")]
fn a_sum_that_could_overflow_is_not_started() {
    let model = gaussian();
    let data = ModelData { outcome: vec![0.0; 4_096], ..ModelData::default() };
    let _ = model.lattice_sum(&data, &[0.0], &[1.0], Sensitivity::from_units(1 << 50).unwrap());
}

#[test]
fn original_units() {
    let model = logistic();
    let theta = [0.5, -1.2, 2.0, 0.7];
    let original = model.to_original(&theta);
    let (a, b, c) = (33.0, 71.0, 1.0);
    let scaled = theta[0] + theta[1] * AGE.scale(a) + theta[2] * AGE.scale(b) + theta[3] * c;
    let raw = original[0] + original[1] * a + original[2] * b + original[3] * c;
    assert!((scaled - raw).abs() < 1e-12);
    assert_eq!(original[3], 0.7);
    assert_eq!(gaussian().to_original(&[0.5]), [65.0]);

    let slopes = Logistic::new(vec!["a".to_owned()], &ColumnSpec::Binary, false, &[AGE]);
    assert_eq!(slopes.to_original(&[3.0]), [0.1]);
}

/// Any float whatever, the extremes often.
fn wild() -> impl Strategy<Value = f64> {
    let extremes =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, -0.0, 0.0, 1.0, -1.0];
    prop_oneof![any::<f64>(), prop::sample::select(extremes.to_vec()), -2.0..2.0]
}

proptest! {
    /// The clamp is what privacy rests on: whatever a record holds, even what loading would never let through, replacing it moves the
    /// sum by at most twice the sensitivity.
    #[test]
    fn replacing_a_record_moves_the_sum_by_at_most_the_sensitivity(
        mut rows in prop::collection::vec([wild(), wild(), wild(), wild()], 1..20),
        replacement in [wild(), wild(), wild(), wild()],
        at in any::<prop::sample::Index>(),
        from in [-5.0..5.0, -5.0..5.0, -5.0..5.0, -5.0..5.0],
        to in [-5.0..5.0, -5.0..5.0, -5.0..5.0, -5.0..5.0],
        units in 1..=1_u64 << 45,
    ) {
        let k_t = Sensitivity::from_units(units).unwrap();
        let at = at.index(rows.len());
        for model in models() {
            let d = model.parameter_names().len();
            let sum = |rows: &[Record]| reveal(model.lattice_sum(&shard(rows, &*model), &from[..d], &to[..d], k_t));
            let before = sum(&rows);
            let original = std::mem::replace(&mut rows[at], replacement);
            let after = sum(&rows);
            rows[at] = original;
            prop_assert!(after.abs_diff(before) <= 2 * units);
            prop_assert!(sum(&rows[at..=at]).unsigned_abs() <= units);
        }
    }

    #[test]
    fn sums_are_odd_in_the_step(
        rows in prop::collection::vec([wild(), wild(), wild(), wild()], 1..20),
        from in [-50.0..50.0, -5.0..5.0, -5.0..5.0, -5.0..5.0],
        to in [-50.0..50.0, -5.0..5.0, -5.0..5.0, -5.0..5.0],
        units in 1..=1_u64 << 45,
    ) {
        let k_t = Sensitivity::from_units(units).unwrap();
        for model in models() {
            let d = model.parameter_names().len();
            let sum = |from: &[f64], to: &[f64]| reveal(model.lattice_sum(&shard(&rows, &*model), &from[..d], &to[..d], k_t));
            prop_assert_eq!(sum(&from, &to), -sum(&to, &from));
            for row in &rows {
                let one = |from: &[f64], to: &[f64]| reveal(model.lattice_sum(&shard(&[*row], &*model), &from[..d], &to[..d], k_t));
                prop_assert_eq!(one(&from, &to), -one(&to, &from));
            }
        }
    }
}

#[test]
#[ignore = "a measurement: cargo test -p conclave-common kernel_speed -- --ignored --nocapture"]
fn kernel_speed() {
    let mut rng = ChaCha20Rng::seed_from_u64(16);
    for model in models() {
        let rows: Vec<Record> = (0..100_000).map(|_| valid_record(&mut rng, &*model)).collect();
        let persons: Vec<Vec<Record>> = rows.chunks(3).map(<[Record]>::to_vec).collect();
        let shards = [("rows", shard(&rows, &*model)), ("persons of 3", by_person(&persons, 3, &*model))];
        let pairs: Vec<_> = (0..4).map(|_| step(&mut rng, &*model)).collect();
        let k_t = Sensitivity::from_units(1 << 30).unwrap();
        let steps: Vec<Step<'_>> = pairs.iter().map(|(from, to)| Step::new(from, to, k_t)).collect();
        let repeats = 50;
        for (name, data) in &shards {
            let start = std::time::Instant::now();
            for _ in 0..repeats {
                std::hint::black_box(model.lattice_sums(data, &steps));
            }
            let per = start.elapsed().as_secs_f64() * 1e9 / (f64::from(repeats) * 4.0 * rows.len() as f64);
            println!("{}, {name}: {per:.2} ns per record and step", model.parameter_names().join(" "));
        }
    }
}

/// Replaces every record of one person: the same public shape, another person.
fn with_person(records: &[Vec<Record>], at: usize, other: Vec<Record>) -> Vec<Vec<Record>> {
    let mut changed = records.to_vec();
    changed[at] = other;
    changed
}

fn by_person(records: &[Vec<Record>], limit: u32, model: &dyn Model) -> ModelData {
    let ends = records
        .iter()
        .scan(0, |end, person| {
            *end += person.len();
            Some(*end)
        })
        .collect();
    ModelData { persons: Some(Persons::new(ends, limit).unwrap()), ..shard(&records.concat(), model) }
}

/// Any record at all, bounds or not: the clamp must hold without them.
fn any_record(rng: &mut ChaCha20Rng) -> Record {
    [0; 4].map(|_| [f64::NAN, f64::INFINITY, -1e300, 1e9, -3.0, 0.5, 1.0][rng.random_range(0..7)])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn replacing_a_person_moves_the_sum_by_at_most_twice_the_sensitivity(seed in any::<u64>(), limit in 1_u32..8, persons in 1_usize..300) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        for model in models() {
            let (from, to) = step(&mut rng, &*model);
            let per_record = sensitivity(model.bound(&from, &to) * [1.0, 0.1][rng.random_range(0..2)], None).unwrap();
            let unit = crate::accounting::PrivacyUnit::person(crate::accounting::Adjacency::Replace, limit).unwrap();
            let k_t = unit.sensitivity(per_record).unwrap();
            let person = |rng: &mut ChaCha20Rng| -> Vec<Record> {
                let wild = rng.random_bool(0.2);
                (0..rng.random_range(1..=limit)).map(|_| if wild { any_record(rng) } else { valid_record(rng, &*model) }).collect()
            };
            let records: Vec<Vec<Record>> = (0..persons).map(|_| person(&mut rng)).collect();
            let (at, other) = (rng.random_range(0..persons), person(&mut rng));
            let sum = |records: &[Vec<Record>], from: &[f64], to: &[f64]| {
                reveal(model.lattice_sum(&by_person(records, limit, &*model), from, to, k_t))
            };
            let changed = with_person(&records, at, other);
            let moved = sum(&changed, &from, &to).abs_diff(sum(&records, &from, &to));
            prop_assert!(moved <= 2 * k_t.units(), "{} beyond {}", moved, 2 * k_t.units());
            // Removing the person moves it by at most the sensitivity.
            let mut fewer = records.clone();
            fewer.remove(at);
            prop_assert!(sum(&fewer, &from, &to).abs_diff(sum(&records, &from, &to)) <= k_t.units());
            // Odd, and the same every time.
            prop_assert_eq!(sum(&records, &to, &from), -sum(&records, &from, &to));
        }
    }

    #[test]
    fn persons_of_one_record_are_rows(seed in any::<u64>(), count in 1_usize..1500) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        for model in models() {
            let (from, to) = step(&mut rng, &*model);
            let k_t = sensitivity(model.bound(&from, &to), None).unwrap();
            let rows: Vec<Record> = (0..count).map(|_| valid_record(&mut rng, &*model)).collect();
            let persons: Vec<Vec<Record>> = rows.iter().map(|r| vec![*r]).collect();
            prop_assert_eq!(
                reveal(model.lattice_sum(&by_person(&persons, 1, &*model), &from, &to, k_t)),
                reveal(model.lattice_sum(&shard(&rows, &*model), &from, &to, k_t))
            );
        }
    }
}
