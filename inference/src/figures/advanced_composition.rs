//! Advanced composition as in the penalty paper (Yıldırım, Theorems 2 and 3). It is one row of the planner's comparison; no
//! charge uses it.

use super::search::largest_count;

/// Returns the epsilon of `count` queries of `mu0` each. Half of `delta` goes to the queries and half to their composition.
///
/// Returns `None` when the epsilon of one query reaches 1, where Theorem 2 does not apply.
#[must_use]
pub fn epsilon(mu0: f64, count: u64, delta: f64) -> Option<f64> {
    if mu0 <= 0.0 || count == 0 {
        return Some(0.0);
    }
    let k = count as f64;
    let delta0 = delta / (2.0 * k);
    let epsilon0 = mu0 * (2.0 * libm::log(1.25 / delta0)).sqrt();
    (epsilon0 < 1.0).then(|| (2.0 * k * libm::log(2.0 / delta)).sqrt() * epsilon0 + k * epsilon0 * libm::expm1(epsilon0))
}

/// Returns the number of queries of `mu0` each that stay within `(epsilon, delta)`.
#[must_use]
pub fn queries_allowed(mu0: f64, epsilon: f64, delta: f64) -> u64 {
    largest_count(|count| self::epsilon(mu0, count, delta).is_some_and(|spent| spent <= epsilon))
}
