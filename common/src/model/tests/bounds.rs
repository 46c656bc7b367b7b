//! The public bound and the public centre: valid, close to the supremum, symmetric.

use super::*;
use conclave_privacy::mechanism::STEP;

fn check_bounds(triples: usize) {
    // Two threads take alternate cases.
    std::thread::scope(|scope| {
        for part in 0..2 {
            scope.spawn(move || {
                for (seed, case) in cases().iter().enumerate().filter(|(at, _)| at % 2 == part) {
                    check_case(case, seed as u64, triples);
                }
            });
        }
    });
}

fn check_case(case: &Case, seed: u64, triples: usize) {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    // Several records share a step, since some models' bounds take longer than their ratios.
    for _ in 0..triples / 20 {
        let (from, to) = case.step(&mut rng);
        let (bound, half) = (case.model.bound(&from, &to), case.model.half_range(&from, &to));
        let centre = case.model.centre(&from, &to);
        assert!(half <= bound * (1.0 + 1e-9), "{}: a centre that widens the range", case.name);
        for _ in 0..20 {
            let record = case.record(&mut rng);
            let ratio = case.ratio(&record, &from, &to);
            // The constant is far below a lattice step.
            let slack = case.rounding(&record, &from, &to) + 1e-12;
            assert!(ratio.abs() <= bound + slack, "{}: {record:?} {from:?} {to:?}: {ratio} beyond {bound}", case.name);
            let off = (ratio - centre).abs();
            assert!(off <= half + slack, "{}: {record:?} {from:?} {to:?}: {off} beyond {half}", case.name);
        }
    }
}

#[test]
fn no_record_exceeds_the_public_bound() {
    check_bounds(100_000);
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn no_record_exceeds_the_public_bound_in_a_million_triples() {
    check_bounds(1_000_000);
}

#[test]
fn the_bound_is_near_the_supremum() {
    let mut rng = ChaCha20Rng::seed_from_u64(11);
    for case in cases() {
        let corners = case.corners();
        for _ in 0..100_000 / corners.len() {
            // One coordinate at a time, as in the default proposal.
            let from = case.point(&mut rng, 2.0);
            let mut to = from.clone();
            let coordinate = rng.random_range(case.tight.clone());
            to[coordinate] += rng.random_range(-0.3..0.3);
            let (from, to) = (case.constrain(&from), case.constrain(&to));
            let (bound, half) = (case.model.bound(&from, &to), case.model.half_range(&from, &to));
            let centre = case.model.centre(&from, &to);
            let ratios: Vec<f64> = corners.iter().map(|record| case.ratio(record, &from, &to)).collect();
            let greatest = ratios.iter().fold(0.0_f64, |most, ratio| most.max(ratio.abs()));
            assert!(bound <= 1.5 * greatest + STEP, "{}: {from:?} {to:?} {bound} {greatest}", case.name);
            let off = ratios.iter().fold(0.0_f64, |most, ratio| most.max((ratio - centre).abs()));
            assert!(half <= 1.5 * off + STEP, "{}: {from:?} {to:?} {half} {off}", case.name);
        }
    }
}

proptest! {
    #[test]
    fn constants_are_symmetric_bit_for_bit(seed in any::<u64>()) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        for case in cases() {
            for _ in 0..20 {
                let (from, to) = case.step(&mut rng);
                let model = &case.model;
                prop_assert_eq!(model.bound(&from, &to).to_bits(), model.bound(&to, &from).to_bits());
                prop_assert_eq!(model.half_range(&from, &to).to_bits(), model.half_range(&to, &from).to_bits());
                // Equal as numbers; only the sign of a zero may differ, which adds nothing.
                prop_assert_eq!(model.centre(&from, &to), -model.centre(&to, &from));
            }
        }
    }
}

#[test]
fn standing_still_costs_nothing() {
    for case in cases() {
        let still = case.constrain(&vec![0.3; case.model.parameter_names().len()]);
        let bound = case.model.bound(&still, &still);
        assert_eq!(bound, 0.0, "{}", case.name);
        assert_eq!(case.model.centre(&still, &still), 0.0);
    }
}
