//! Theorem 1 of the penalty paper, as a row of a plan.

use crate::figures::largest_count;

/// Returns the largest k(n) of Yıldırım, Theorem 1, for one party of `n` records whose queries cost `mu0` each
/// (`mu0 = c n^-alpha / sigma` in the paper, alpha = 1/2), within `(epsilon, delta)`.
///
/// It is computed from the paper's Theorems 2 and 3 with the choices of the proof. Each query is `(epsilon_0, delta_0)`-DP with
/// `delta_0 = 1.25 n^-beta'`, `epsilon_0 = mu0 sqrt(2 beta' log n)` and `beta' = 2 alpha + beta`. The composition adds
/// `delta' = n^-beta`.
///
/// Eq. (3) is not used, because its first term lacks a factor sqrt(log n). The preceding line reads
/// `sqrt(4 k beta' log n log(1/delta')) c n^-alpha / sigma`. With `delta' = n^-beta` and `k = k0 n^{2 alpha} / log n` that is
/// `2 sqrt(k0 beta' beta log n) c / sigma`: `log(1/delta') = beta log n` cancels only one of the two logarithms. At that k(n),
/// epsilon therefore grows as sqrt(log n) and is not O(1).
///
/// The result uses all of `delta`: beta solves `n^-beta (1 + 1.25 k / n) = delta`. It is 0 if the theorem does not apply
/// (epsilon_0 reaches 1, or there are fewer than 3 records).
pub(super) fn iterations(mu0: f64, n: u64, epsilon: f64, delta: f64) -> u64 {
    if n < 3 || !(mu0 > 0.0 && mu0.is_finite()) {
        return 0;
    }
    let log_n = libm::log(n as f64);
    let spent = |k: u64| {
        let beta = beta(k, n, delta);
        let epsilon_0 = mu0 * (2.0 * (1.0 + beta) * log_n).sqrt();
        if epsilon_0 >= 1.0 {
            return f64::INFINITY;
        }
        let k = k as f64;
        (2.0 * k * beta * log_n).sqrt() * epsilon_0 + k * epsilon_0 * libm::expm1(epsilon_0)
    };
    largest_count(|k| spent(k) <= epsilon)
}

/// Returns the beta that meets delta.
fn beta(k: u64, n: u64, delta: f64) -> f64 {
    (libm::log1p(1.25 * k as f64 / n as f64) - libm::log(delta)) / libm::log(n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::advanced_composition;

    /// The theorem fixes its own split of delta. The result is therefore at most that of the best split, and not much below that
    /// of an even split.
    #[test]
    fn near_the_composition_that_it_comes_from() {
        for (mu0, n) in [(0.01, 100_000), (0.003, 1_000_000), (0.02, 1000)] {
            let k = iterations(mu0, n, 3.0, 1e-6);
            let even = advanced_composition::queries_allowed(mu0, 3.0, 1e-6);
            let ratio = k as f64 / even as f64;
            assert!((0.6..1.3).contains(&ratio), "{k} against {even}");
            let total = (n as f64).powf(-beta(k, n, 1e-6)) * (1.0 + 1.25 * k as f64 / n as f64);
            assert!((total / 1e-6 - 1.0).abs() < 1e-9);
        }
        assert_eq!(iterations(0.3, 1000, 3.0, 1e-6), 0);
        assert_eq!(iterations(0.01, 2, 3.0, 1e-6), 0);
    }

    /// With sigma, k0 and beta fixed, the composition's epsilon at k(n) = k0 n / log n grows as sqrt(log n). With that epsilon
    /// the row equals k(n). With the constant epsilon of eq. (3), the row is smaller by about log n. It would not be smaller if
    /// eq. (3) followed from the theorems.
    #[test]
    fn equation_3_has_lost_a_factor() {
        let (c_over_sigma, k0, fixed) = (0.05_f64, 1.0_f64, 2.0_f64);
        let printed = 2.0 * (k0 * (1.0 + fixed) * fixed).sqrt() * c_over_sigma;
        for n in [100_000_u64, 10_000_000, 1_000_000_000_000] {
            let (records, log_n) = (n as f64, (n as f64).ln());
            let (k, mu0) = (k0 * records / log_n, c_over_sigma / records.sqrt());
            let delta = records.powf(-fixed) * (1.0 + 1.25 * k / records);
            let epsilon_0 = mu0 * (2.0 * (1.0 + fixed) * log_n).sqrt();
            let of = |k: u64| k as f64 * log_n / records;
            let row = iterations(mu0, n, printed * log_n.sqrt() + k * epsilon_0 * epsilon_0.exp_m1(), delta);
            assert!((of(row) / k0 - 1.0).abs() < 1e-3 && (beta(row, n, delta) / fixed - 1.0).abs() < 1e-6, "{n}: {row}");
            // The second term, about k0 (c / sigma)^2, and the beta of a smaller k account for a small difference.
            let row = iterations(mu0, n, printed, delta);
            assert!((0.8..1.05).contains(&(of(row) * log_n / k0)), "{n}: {row}");
        }
    }
}
