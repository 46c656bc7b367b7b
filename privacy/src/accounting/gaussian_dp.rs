//! Gaussian differential privacy: conversions between `mu` and `(epsilon, delta)`.
//!
//! The conversion is the analytic Gaussian mechanism of Balle & Wang (2018), Theorem 8, equivalently
//! Dong, Roth & Su (2022), Corollary 2.13:
//! `delta(epsilon; mu) = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2)`. All computations are in log space, so a
//! delta of 1e-300 is as accurate as one of 1e-3.

use super::normal::{cdf, ln_density, mills, mills_drop};

/// The relative margin by which results are rounded to the safe side: far above the computation's error, far below 1e-9.
const MARGIN: f64 = 1e-11;

/// Returns the smallest delta for which a `mu`-GDP mechanism is `(epsilon, delta)`-DP. `epsilon >= 0`, `mu >= 0`.
#[must_use]
pub fn delta(epsilon: f64, mu: f64) -> f64 {
    libm::exp(ln_delta(epsilon, mu))
}

/// Returns the logarithm of [`delta`].
#[must_use]
pub fn ln_delta(epsilon: f64, mu: f64) -> f64 {
    if mu <= 0.0 {
        return f64::NEG_INFINITY;
    }
    // With x = epsilon/mu - mu/2: e^epsilon phi(x + mu) = phi(x), so that delta = phi(x)
    // (mills(x) - mills(x + mu)).
    let x = epsilon / mu - 0.5 * mu;
    if x < -4.0 {
        // mu > 8 here: Phi(-x) is nearly 1 and the other term below a fifth of phi(x), so nothing cancels.
        return libm::log(cdf(-x) - libm::exp(ln_density(x)) * mills(x + mu));
    }
    ln_density(x) + libm::log(mills_drop(x, mu))
}

/// Returns the smallest epsilon for which a `mu`-GDP mechanism is `(epsilon, delta)`-DP, rounded up by a relative 1e-11. It is 0
/// when `mu` is 0.
///
/// `0 < delta < 1`.
#[must_use]
pub fn epsilon(mu: f64, delta: f64) -> f64 {
    let target = libm::log(delta);
    // An overflow counts as exceeding the target, so the result is then infinite.
    let exceeds = |epsilon: f64| Some(ln_delta(epsilon, mu)).filter(|ln| !ln.is_nan()).is_none_or(|ln| ln > target);
    if !exceeds(0.0) {
        return 0.0;
    }
    let (mut under, mut over) = (0.0, 1.0);
    while exceeds(over) && over.is_finite() {
        under = over;
        over *= 2.0;
    }
    bisect(&mut under, &mut over, exceeds);
    over * (1.0 + MARGIN)
}

/// Returns the largest `mu` for which a `mu`-GDP mechanism is `(epsilon, delta)`-DP, rounded down by a relative 1e-11.
///
/// `epsilon >= 0`, `0 < delta < 1`. This is the `mu` of a budget.
///
/// Proof: `docs/explanation/proofs.md`, section 3.
#[must_use]
pub fn mu(epsilon: f64, delta: f64) -> f64 {
    let target = libm::log(delta);
    let (mut under, mut over) = (0.0, 1.0);
    while ln_delta(epsilon, over) <= target {
        under = over;
        over *= 2.0;
    }
    bisect(&mut under, &mut over, |mu| ln_delta(epsilon, mu) <= target);
    under * (1.0 - MARGIN)
}

/// Narrows `[under, over]` to adjacent floats. `below` holds at `under` and fails at `over`.
fn bisect(under: &mut f64, over: &mut f64, below: impl Fn(f64) -> bool) {
    loop {
        let middle = 0.5 * (*under + *over);
        if middle <= *under || middle >= *over {
            return;
        }
        if below(middle) { *under = middle } else { *over = middle }
    }
}

#[cfg(test)]
#[allow(clippy::excessive_precision)]
mod tests {
    use super::*;

    #[test]
    fn delta_matches_its_definition_where_that_is_accurate() {
        for (epsilon, mu) in [(0.0, 0.5), (0.1, 1.0), (1.0, 1.0), (3.0, 2.0), (1.0, 5.0), (2.0, 12.0), (0.0, 20.0), (200.0, 20.0)]
        {
            let direct = cdf(-epsilon / mu + mu / 2.0) - f64::exp(epsilon) * cdf(-epsilon / mu - mu / 2.0);
            assert!((delta(epsilon, mu) / direct - 1.0).abs() < 1e-12, "{epsilon} {mu}");
        }
    }

    #[test]
    fn a_cost_beyond_all_floats_is_infinite_and_not_free() {
        for mu in [1.4e154, 1e155, 1e200, f64::MAX, f64::INFINITY, f64::NAN] {
            assert_eq!(epsilon(mu, 1e-6), f64::INFINITY, "{mu}");
        }
        // The largest costs that floats hold are finite.
        assert!((1e299..1e300).contains(&epsilon(1e150, 1e-6)), "{}", epsilon(1e150, 1e-6));
    }

    #[test]
    fn tails_match_high_precision() {
        // ln delta from 80-digit mpmath.
        let rows = [
            (0.0, 1e-8, -19.339_619_277_157_038),
            (0.001, 1e-4, -64.762_962_409_325_135),
            (3.0, 0.01, -45_015.431_719_500_265),
            (1.0, 0.02, -1_262.156_255_834_000_6),
            (0.5, 1e-3, -125_020.005_922_133_86),
            (5.0, 0.25, -205.811_906_974_566_89),
            (38.256_331_489_949_15, 4.242_640_687_119_285, -27.631_021_115_928_551),
            (4.183_503_141_556_977, 0.6, -27.631_021_115_928_553),
            (10.0, 0.9999, -50.686_050_888_537_289),
            (10.0, 1.0001, -50.665_510_304_177_829),
            (700.0, 30.0, -38.024_169_704_421_239),
            (1000.0, 38.0, -29.866_697_667_814_868),
            (2.0, 8.5, -5.666_271_397_681_949_9e-5),
            (100.0, 3.0, -513.514_674_772_091_44),
            (1e-5, 1e-5, -13.998_041_490_690_804),
        ];
        for (epsilon, mu, expected) in rows {
            let got = ln_delta(epsilon, mu);
            // An error in ln delta is a relative error of delta; rounding epsilon/mu alone moves it by |ln delta| 2^-52.
            assert!((got - expected).abs() < 2e-12 + 5e-15 * f64::abs(expected), "{epsilon} {mu}: {got} {expected}");
        }
    }

    #[test]
    fn conversions_invert_each_other_on_the_safe_side() {
        for mu0 in [1e-6, 1e-3, 0.01, 0.3, 1.0, 4.2, 7.9, 8.1, 20.0, 60.0] {
            for delta in [1e-300, 1e-30, 1e-12, 1e-6, 1e-3, 0.2] {
                let e = epsilon(mu0, delta);
                if e == 0.0 {
                    continue;
                }
                assert!(super::delta(e, mu0) <= delta);
                let back = mu(e, delta);
                assert!((back / mu0 - 1.0).abs() < 1e-10 * (1.0 + e / mu0), "{mu0} {delta} {e} {back}");
                assert!(super::delta(e, back) <= delta && super::delta(e, back * (1.0 + 1e-9)) > delta);
            }
        }
    }

    #[test]
    fn nothing_costs_nothing() {
        assert_eq!(epsilon(0.0, 1e-6), 0.0);
        assert_eq!(delta(1.0, 0.0), 0.0);
        assert_eq!(epsilon(1e-9, 1e-6), 0.0);
    }
}
