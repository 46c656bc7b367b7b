//! Contributions with and without a public centre.

use super::*;
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::STEP;

/// The sum with the centre added back equals the sum without one, and costs no more.
#[test]
fn a_centre_moves_no_sum() {
    let mut rng = ChaCha20Rng::seed_from_u64(41);
    for case in cases() {
        let rows: Vec<Record> = (0..1_000).map(|_| case.record(&mut rng)).collect();
        let data = shard(&rows);
        for _ in 0..50 {
            let (from, to) = (case.theta(&mut rng, 1.0), case.theta(&mut rng, 1.0));
            let part = |unit| contribution(&*case.model, &case.spec.privacy, unit, &from, &to).unwrap();
            let (centred, plain) = (part(PrivacyUnit::row(Adjacency::Replace)), part(PrivacyUnit::row(Adjacency::AddRemove)));
            assert_eq!(plain.centre, 0.0, "who is in the data at all is protected there, so their number is not public");
            assert!(centred.sensitivity <= plain.sensitivity, "{}", case.name);
            let sum = |part: Contribution| {
                let step = Step { centre: part.centre, ..Step::new(&from, &to, part.sensitivity) };
                reveal(case.model.lattice_sums(&data, &[step]).pop().unwrap()) as f64 * STEP + part.centre * rows.len() as f64
            };
            let expected: f64 = rows.iter().map(|row| case.ratio(row, &from, &to)).sum();
            let rounding: f64 = rows.iter().map(|row| case.rounding(row, &from, &to)).sum();
            for part in [centred, plain] {
                let got = sum(part);
                assert!((got - expected).abs() <= 1_000.0 * STEP + 2.0 * rounding, "{}: {got} {expected}", case.name);
            }
        }
    }
}
