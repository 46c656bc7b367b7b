//! The tail of the normal law, to nearly full relative accuracy at any distance.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// `ln sqrt(2 pi)`.
const LN_SQRT_TAU: f64 = 0.918_938_533_204_672_8;

/// Returns the log density of the standard normal.
pub(super) fn ln_density(x: f64) -> f64 {
    -0.5 * x * x - LN_SQRT_TAU
}

/// Returns the cumulative distribution function of the standard normal.
pub(super) fn cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// Returns Mills' ratio `Q(x) / phi(x)`, the upper tail over the density, for `x >= -5`.
///
/// Uses `erfc` below 8. Above, uses Laplace's continued fraction `1/(x + 1/(x + 2/(x + 3/(x + ...))))`, which has converged to
/// the last bit there.
pub(super) fn mills(x: f64) -> f64 {
    if x < 8.0 {
        return libm::erfc(x * FRAC_1_SQRT_2) * (PI / 2.0).sqrt() * libm::exp(0.5 * x * x);
    }
    let mut tail = x;
    for k in (1..=60).rev() {
        tail = x + f64::from(k) / tail;
    }
    1.0 / tail
}

/// Returns `mills(x) - mills(x + step)` for `x >= -5` and `step > 0`, without cancellation for small steps.
///
/// Mills' ratio is the integral of `exp(-x t - t^2/2)` over `t > 0`. The difference is the integral of the same function times `1
/// - exp(-step t)`, which is positive. The integrand is smooth on the scale of one panel wherever this branch is taken.
pub(super) fn mills_drop(x: f64, step: f64) -> f64 {
    if step > 1.0 {
        return mills(x) - mills(x + step);
    }
    // Beyond t = end the exponent is below -50 (x >= 0) or far past the integrand's peak (x < 0).
    let end = 100.0 / (x + (x * x + 100.0).sqrt());
    let width = end / f64::from(PANELS);
    let mut total = 0.0;
    for panel in 0..PANELS {
        let centre = (f64::from(panel) + 0.5) * width;
        for (node, weight) in NODES {
            for t in [centre - 0.5 * width * node, centre + 0.5 * width * node] {
                total += weight * libm::exp(-x * t - 0.5 * t * t) * -libm::expm1(-step * t);
            }
        }
    }
    total * 0.5 * width
}

const PANELS: u32 = 40;

/// Positive nodes and weights of the 10-point Gauss-Legendre rule on [-1, 1].
const NODES: [(f64, f64); 5] = [
    (0.148_874_338_981_631_21, 0.295_524_224_714_752_87),
    (0.433_395_394_129_247_2, 0.269_266_719_309_996_35),
    (0.679_409_568_299_024_4, 0.219_086_362_515_982_04),
    (0.865_063_366_688_984_5, 0.149_451_349_150_580_6),
    (0.973_906_528_517_171_7, 0.066_671_344_308_688_14),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_forms_of_the_tail_agree_where_they_meet() {
        for x in [7.0, 8.0, 9.0, 12.0] {
            let by_erfc = libm::erfc(x * FRAC_1_SQRT_2) * (PI / 2.0).sqrt() * (0.5 * x * x).exp();
            assert!((mills(x) / by_erfc - 1.0).abs() < 1e-13, "{x}: {} {by_erfc}", mills(x));
        }
    }

    #[test]
    fn the_quadrature_agrees_with_the_difference() {
        for x in [-4.5, -2.0, 0.0, 0.5, 3.0, 10.0, 40.0] {
            for step in [0.3, 0.9, 1.0] {
                let direct = mills(x) - mills(x + step);
                assert!((mills_drop(x, step) / direct - 1.0).abs() < 1e-12, "{x} {step}");
            }
            // For small steps the drop is the step times minus the derivative, 1 - x mills(x).
            if x < 3.5 {
                let slope = 1.0 - x * mills(x);
                assert!((mills_drop(x, 1e-9) / (1e-9 * slope) - 1.0).abs() < 1e-8, "{x}");
            }
        }
    }
}
