//! The penalty paper's Theorem 1, as a row of the comparison.

use conclave_privacy::accounting::largest_count;

/// What Theorem 1 allows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Theorem1 {
    /// Queries, `k(n) = floor(k0 n / log n)`.
    pub k: u64,
    /// The k0 that this is, at alpha = 1/2.
    pub k0: f64,
    /// The beta at which delta is met.
    pub beta: f64,
}

/// The largest k(n) of Yıldırım, Theorem 1, for one party of `n` records whose queries cost `mu0` each
/// (`mu0 = c n^-alpha / sigma` there, alpha = 1/2), within `(epsilon, delta)`.
///
/// Computed from the paper's Theorems 2 and 3 with the proof's choices: each query is
/// `(epsilon_0, delta_0)`-DP with `delta_0 = 1.25 n^-beta'`, `epsilon_0 = mu0 sqrt(2 beta' log n)`,
/// `beta' = 2 alpha + beta`, and the composition adds `delta' = n^-beta`. Never from eq. (3), whose
/// first term has lost a factor sqrt(log n): the line before it reads
/// `sqrt(4 k beta' log n log(1/delta')) c n^-alpha / sigma`, and with `delta' = n^-beta` and
/// `k = k0 n^{2 alpha} / log n` that is `2 sqrt(k0 beta' beta log n) c / sigma`, since
/// `log(1/delta') = beta log n` cancels only one of the two logarithms. So at that k(n) epsilon is not
/// O(1) but grows as sqrt(log n).
///
/// All of `delta` is used: beta solves `n^-beta (1 + 1.25 k / n) = delta`. 0 where the theorem does not
/// apply (epsilon_0 reaches 1, or fewer than 3 records).
#[must_use]
pub fn iterations(mu0: f64, n: u64, epsilon: f64, delta: f64) -> Theorem1 {
    let none = Theorem1 { k: 0, k0: 0.0, beta: 0.0 };
    if n < 3 || !(mu0 > 0.0 && mu0.is_finite()) {
        return none;
    }
    let records = n as f64;
    let log_n = records.ln();
    let beta = |k: u64| ((1.25 * k as f64 / records).ln_1p() - delta.ln()) / log_n;
    let spent = |k: u64| {
        let beta = beta(k);
        let epsilon_0 = mu0 * (2.0 * (1.0 + beta) * log_n).sqrt();
        if epsilon_0 >= 1.0 {
            return f64::INFINITY;
        }
        let k = k as f64;
        (2.0 * k * beta * log_n).sqrt() * epsilon_0 + k * epsilon_0 * epsilon_0.exp_m1()
    };
    match largest_count(|k| spent(k) <= epsilon) {
        0 => none,
        k => Theorem1 { k, k0: k as f64 * log_n / records, beta: beta(k) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_privacy::accounting::advanced_composition;

    /// The theorem splits delta its own way, so it can't do better than the best split, and does not do
    /// much worse than an even one.
    #[test]
    fn near_the_composition_that_it_comes_from() {
        for (mu0, n) in [(0.01, 100_000), (0.003, 1_000_000), (0.02, 1000)] {
            let row = iterations(mu0, n, 3.0, 1e-6);
            let even = advanced_composition::queries_allowed(mu0, 3.0, 1e-6);
            let ratio = row.k as f64 / even as f64;
            assert!((0.6..1.3).contains(&ratio), "{} against {even}", row.k);
            let total = (n as f64).powf(-row.beta) * (1.0 + 1.25 * row.k as f64 / n as f64);
            assert!((total / 1e-6 - 1.0).abs() < 1e-9);
        }
        assert_eq!(iterations(0.3, 1000, 3.0, 1e-6).k, 0);
        assert_eq!(iterations(0.01, 2, 3.0, 1e-6).k, 0);
    }

    /// With sigma, k0 and beta fixed, the composition's epsilon at k(n) = k0 n / log n grows as sqrt(log
    /// n). Granted that, the row is k(n); granted eq. (3)'s epsilon, which does not grow, it is smaller
    /// by about log n, and by nothing if eq. (3) were what it is made of.
    #[test]
    fn equation_3_has_lost_a_factor() {
        let (c_over_sigma, k0, beta) = (0.05_f64, 1.0_f64, 2.0_f64);
        let printed = 2.0 * (k0 * (1.0 + beta) * beta).sqrt() * c_over_sigma;
        for n in [100_000_u64, 10_000_000, 1_000_000_000_000] {
            let (records, log_n) = (n as f64, (n as f64).ln());
            let (k, mu0) = (k0 * records / log_n, c_over_sigma / records.sqrt());
            let delta = records.powf(-beta) * (1.0 + 1.25 * k / records);
            let epsilon_0 = mu0 * (2.0 * (1.0 + beta) * log_n).sqrt();
            let row = iterations(mu0, n, printed * log_n.sqrt() + k * epsilon_0 * epsilon_0.exp_m1(), delta);
            assert!((row.k0 / k0 - 1.0).abs() < 1e-3 && (row.beta / beta - 1.0).abs() < 1e-6, "{n}: {row:?}");
            // The second term, some k0 (c / sigma)^2, and the beta of a smaller k take a little more.
            let row = iterations(mu0, n, printed, delta);
            assert!((0.8..1.05).contains(&(row.k0 * log_n / k0)), "{n}: {row:?}");
        }
    }
}
