//! Models in the form of Algorithm 3.

use super::*;

/// Lattice step of a statistic in these tests, 2^-30.
const FINE: f64 = 1.0 / 1_073_741_824.0;

/// Returns the limits of a component on the lattice.
fn limits((low, high): (f64, f64), step: f64) -> (i64, i64) {
    ((low / step).floor() as i64, (high / step).ceil() as i64)
}

#[test]
fn the_form_is_the_density_up_to_a_constant() {
    let mut rng = ChaCha20Rng::seed_from_u64(31);
    for case in cases() {
        let Some(family) = case.model.exponential_family() else { continue };
        let ranges = family.ranges();
        for _ in 0..5_000 {
            let record = case.record(&mut rng);
            let (from, to) = (case.theta(&mut rng, 2.0), case.theta(&mut rng, 2.0));
            let data = shard(std::slice::from_ref(&record));
            let (phi, phi_to) = (family.natural(&from), family.natural(&to));
            assert_eq!((phi.len(), phi_to.len()), (ranges.len(), ranges.len()));
            let mut got = family.log_normaliser(&to) - family.log_normaliser(&from);
            let mut slack = case.rounding(&record, &from, &to);
            for (j, range) in ranges.iter().enumerate() {
                let statistic = reveal(family.statistic_sum(&data, j, FINE, limits(*range, FINE))) as f64 * FINE;
                assert!(range.0 - FINE <= statistic && statistic <= range.1 + FINE);
                got += (phi_to[j] - phi[j]) * statistic;
                slack += FINE * (phi_to[j] - phi[j]).abs();
            }
            let expected = case.ratio(&record, &from, &to);
            assert!((got - expected).abs() <= slack + 1e-9, "{}: {record:?} {from:?} {to:?}: {got} {expected}", case.name);
        }
    }
}

#[test]
fn a_statistics_sum_is_the_records_added_up() {
    let mut rng = ChaCha20Rng::seed_from_u64(32);
    for case in cases() {
        let Some(family) = case.model.exponential_family() else { continue };
        let rows: Vec<Record> = (0..1_300).map(|_| case.record(&mut rng)).collect();
        for (j, range) in family.ranges().into_iter().enumerate() {
            let sum = |rows: &[Record]| reveal(family.statistic_sum(&shard(rows), j, FINE, limits(range, FINE)));
            assert_eq!(sum(&rows), rows.chunks(1).map(sum).sum::<i64>(), "{}", case.name);
        }
    }
}

proptest! {
    /// Whatever a record contains, its statistic stays within its limits: replacing it moves the sum by at most their distance.
    #[test]
    fn a_statistic_stays_within_its_limits(seed in any::<u64>(), exponent in 0..40_i32) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        for case in cases() {
            let Some(family) = case.model.exponential_family() else { continue };
            for (j, range) in family.ranges().into_iter().enumerate() {
                let step = 2.0_f64.powi(-exponent);
                let (low, high) = limits(range, step);
                let record = case.any_record(&mut rng);
                let value = reveal(family.statistic_sum(&shard(&[record]), j, step, (low, high)));
                prop_assert!(low <= value && value <= high, "{}: {} outside {}..{}", case.name, value, low, high);
            }
        }
    }
}

#[test]
fn not_a_number_counts_as_the_limit_nearest_to_zero() {
    let record = |outcome: f64| ModelData { outcome: vec![outcome], ..ModelData::default() };
    let case = poisson_mean::case();
    let family = case.model.exponential_family().unwrap();
    let sum = |outcome: f64, limits| reveal(family.statistic_sum(&record(outcome), 0, 1.0, limits));
    assert_eq!((sum(f64::NAN, (0, 12)), sum(f64::NAN, (3, 12)), sum(f64::NAN, (-5, -2))), (0, 3, -2));
    assert_eq!((sum(f64::INFINITY, (3, 12)), sum(f64::NEG_INFINITY, (3, 12)), sum(0.0, (3, 12))), (12, 3, 6));
}
