//! The tables compared with the logistic law, and draws from them.

#![allow(clippy::unwrap_used)]

use crate::sampler::barker::correction::Correction;

fn logistic(x: f64) -> f64 {
    (1.0 + (-x).exp()).recip()
}

/// Returns the error of the log odds of acceptance up to `most`.
fn unbalanced(correction: &Correction, most: f64) -> f64 {
    let steps = 4_000;
    let at = |i: u32| most * f64::from(i) / f64::from(steps);
    let off = |d: f64| (correction.acceptance(d).ln() - correction.acceptance(-d).ln() - d).abs();
    (1..=steps).map(|i| off(at(i))).fold(0.0, f64::max)
}

#[test]
fn tables_are_as_near_to_the_logistic_law_as_they_say() {
    for (variance, stated) in [(2.0, 5.874e-4), (1.5, 2.731e-5), (1.0, 1.073e-7)] {
        let correction = Correction::of(variance).unwrap();
        let off = |i: i32| (correction.acceptance(f64::from(i) * 1e-3) - logistic(f64::from(i) * 1e-3)).abs();
        let greatest = (-40_000..=40_000).map(off).fold(0.0, f64::max);
        // Rounded to four digits, as stated.
        assert!((greatest / stated - 1.0).abs() < 1e-3, "{variance}: {greatest}");
        assert_eq!(correction.sup_error, stated);
        assert!((correction.acceptance(0.0) - 0.5).abs() < 1e-15);
    }
    assert!(Correction::of(1.75).is_none());
}

#[test]
fn acceptance_balances_as_nearly_as_is_stated() {
    for (variance, stated) in [
        (2.0, [0.0026, 0.0055, 0.0209, 0.159]),
        (1.5, [1.14e-4, 1.70e-4, 8.5e-4, 8.5e-3]),
        (1.0, [3.2e-7, 6.4e-7, 3.7e-6, 1.3e-5]),
    ] {
        let correction = Correction::of(variance).unwrap();
        for (most, stated) in [1.0, 2.0, 4.0, 6.0].into_iter().zip(stated) {
            let off = unbalanced(&correction, most);
            // The stated values have two to three digits.
            assert!((off / stated - 1.0).abs() < 0.02, "C {variance}, up to {most}: {off} against {stated}");
        }
    }
}

#[test]
fn short_steps_leave_a_variance_that_is_stated() {
    for (variance, stated) in [(2.0, 1.006), (1.5, 1.0004), (1.0, 1.0)] {
        let correction = Correction::of(variance).unwrap();
        assert!((correction.variance_by_short_steps() - stated).abs() < 1e-4, "{variance}");
        let slope = (correction.acceptance(1e-4) - correction.acceptance(-1e-4)) / 2e-4;
        assert!((0.25 / slope - correction.variance_by_short_steps()).abs() < 1e-7, "{variance}");
    }
}

/// A fine grid of uniform numbers gives every atom its weight, and both signs equally.
#[test]
fn draws_are_of_the_table() {
    for variance in [2.0, 1.5, 1.0] {
        let correction = Correction::of(variance).unwrap();
        let count = 1_000_000;
        let draws: Vec<f64> = (0..count).map(|i| correction.draw((f64::from(i) + 0.5) / f64::from(count))).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(count);
        let second = draws.iter().map(|x| x * x).sum::<f64>() / f64::from(count);
        // Each atom's share is accurate to one in a million on either side, for at most 18 atoms with squares of up to 196.
        assert!(mean.abs() < 1e-9, "{mean}");
        let laplace = |x: f64| correction.acceptance(x) - correction.acceptance(-x);
        // The variance of the whole law, by parts: E X^2 = int 2x (1 - P(|X| < x)) dx.
        let whole: f64 = (0..80_000).map(|i| (f64::from(i) + 0.5) * 5e-4).map(|x| 2.0 * x * (1.0 - laplace(x)) * 5e-4).sum();
        assert!((second + variance - whole).abs() < 2e-3, "{variance}: {second} {whole}");
        assert_eq!(
            (correction.draw(1.0), correction.draw(f64::MIN_POSITIVE)),
            (correction.draw(1.0 - 1e-12), -correction.draw(1.0))
        );
        assert_eq!(correction.draw(0.5), 0.0);
    }
}
