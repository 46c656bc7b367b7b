//! Upper tails of the chi-square distribution, using `libm` only: the bits are the same on every machine.

/// Maximum degrees of freedom for which the tail is summed exactly.
const EXACT: u64 = 200;

/// A chi-square statistic and its degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::sampler) struct ChiSquare {
    pub(in crate::sampler) value: f64,
    pub(in crate::sampler) degrees_of_freedom: u64,
}

impl ChiSquare {
    /// Returns the probability of a value at least as large.
    ///
    /// It is exact for few degrees of freedom (Abramowitz & Stegun 26.4.4, 26.4.5). For more, it uses the cube root's normal law
    /// (Wilson & Hilferty 1931), whose error is below 1e-4 there.
    pub(in crate::sampler) fn p_value(self) -> f64 {
        match self.degrees_of_freedom {
            0 => 1.0,
            _ if self.value.is_nan() => f64::NAN,
            _ if self.value <= 0.0 => 1.0,
            few @ 1..=EXACT => exact(self.value / 2.0, few),
            many => {
                let spread = 2.0 / (9.0 * many as f64);
                let z = (libm::cbrt(self.value / many as f64) - (1.0 - spread)) / spread.sqrt();
                0.5 * libm::erfc(z * std::f64::consts::FRAC_1_SQRT_2)
            }
        }
    }
}

/// Computes `Q(n/2, h)`, the regularised upper incomplete gamma function, by `Q(a+1, h) = Q(a, h) + h^a e^-h / Gamma(a+1)`.
fn exact(h: f64, n: u64) -> f64 {
    let (mut a, mut tail, mut term) = if n.is_multiple_of(2) {
        (1.0, libm::exp(-h), h * libm::exp(-h))
    } else {
        (0.5, libm::erfc(h.sqrt()), h.sqrt() * libm::exp(-h) * std::f64::consts::FRAC_2_SQRT_PI)
    };
    while 2.0 * a < n as f64 {
        tail += term;
        a += 1.0;
        term *= h / a;
    }
    tail.min(1.0)
}
