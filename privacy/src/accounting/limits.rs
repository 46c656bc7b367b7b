//! The limits of a ledger: a budget less the slack for the discrete Gaussian.
//!
//! A continuous Gaussian rounded to the integers is exactly Gaussian-DP: rounding commutes with adding an integer, so it is
//! post-processing. Within `z >= 1` scales of the centre, the discrete and the rounded Gaussian differ in log probability by at most
//! `z^2 / (24 s^2)`. Beyond, both have probability at most `q`. Let `H` bound the total log difference over all draws. Replacing
//! the discrete law by the rounded one, and back on the neighbouring shard, turns `(epsilon', delta')` into `(epsilon' + 2 H, e^H
//! (delta' + (1 + e^epsilon) T q))` for `T` draws. [`limits`] solves this for `(epsilon', delta')`.
//!
//! Neither `H` nor `T` may be exhausted before the budget. Otherwise many queries of negligible cost could close a ledger for all
//! other jobs. So each draw has a minimum price ([`LEAST_CHARGE_UNITS`] and [`super::slack::price`]). Charges sum to at most
//! `Q_B`, so draws sum to at most `Q_B / 2^24 <= T` and slack to at most `Q_B / 8`. Both are within the limits for every budget
//! that [`limits`] accepts.
//!
//! Proof: `docs/explanation/proofs.md`, section 3.

use super::budget::Budget;
use super::charge::LEAST_CHARGE_UNITS;
use super::error::AccountingError;
use super::fixed_point::UNIT_LOG2;
use super::gaussian_dp;
use super::reserve::TOTAL_LOG_DIFFERENCES_IN_ONE;
use super::slack::PRICE_OF_SLACK;
use super::spent::Spent;

/// `H`: the total log difference allowed over all draws of a ledger, 2^-20.
const TOTAL_LOG_DIFFERENCE: f64 = 1.0 / TOTAL_LOG_DIFFERENCES_IN_ONE as f64;

/// `T` for a budget of `mu_B^2 <= 1`: the most noise draws that one ledger grants. Beyond 1 it grows in proportion to `mu_B^2`.
pub(super) const DRAWS: u64 = 1 << 24;

/// `H` in the unit of [`super::Spent::slack_units`], 2^-80.
const TOTAL_SLACK_UNITS: u64 = 1 << 60;

/// The distance from the centre up to which the two laws are compared. The first row serves every ordinary budget. The factor
/// `e^epsilon` before the tail requires the other rows for budgets beyond epsilon of about 30, which only tests against exact
/// posteriors use.
struct Reach {
    /// `-log2 q`, where `q >= P(|Z| > z s)` for both distributions: `z` is 12, 24, 48.
    tail_log2: f64,
    /// The limit on slack. A draw counts `6 / s^2 = 12^2 / (24 s^2)` in every row, so the limit is `H / (z / 12)^2`.
    slack_limit: u64,
}

const REACHES: [Reach; 3] = [
    Reach { tail_log2: 107.0, slack_limit: TOTAL_SLACK_UNITS },
    Reach { tail_log2: 420.0, slack_limit: TOTAL_SLACK_UNITS / 4 },
    Reach { tail_log2: 1667.0, slack_limit: TOTAL_SLACK_UNITS / 16 },
];

/// Returns the limits that a ledger enforces for a budget.
pub(super) fn limits(budget: &Budget) -> Result<Spent, AccountingError> {
    let Budget { epsilon, delta, .. } = Budget::new(budget.epsilon, budget.delta)?;
    let too_small = AccountingError::TooSmall { epsilon, delta };
    let too_large = AccountingError::TooLarge { epsilon, delta };
    let reduced_epsilon = epsilon - 2.0 * TOTAL_LOG_DIFFERENCE;
    if reduced_epsilon <= 0.0 {
        return Err(too_small);
    }
    // Computed without the slack, so at least the number that the ledger's mu^2 requires.
    let draws = DRAWS * (gaussian_dp::mu(epsilon, delta).powi(2).ceil().clamp(1.0, 65_536.0) as u64);
    // The smallest reach whose tail uses at most a millionth of delta.
    let takes = |reach: &Reach| tail(epsilon, draws, reach.tail_log2);
    let reach = REACHES.iter().find(|reach| takes(reach) <= delta * TOTAL_LOG_DIFFERENCE).ok_or(if epsilon > 1.0 {
        too_large.clone()
    } else {
        too_small.clone()
    })?;
    let reduced_delta = libm::exp(-TOTAL_LOG_DIFFERENCE) * delta - takes(reach);
    let mu = gaussian_dp::mu(reduced_epsilon, reduced_delta);
    // Rounded down twice: mu by a relative 1e-11, the product by truncation. A value below 2^63 also fits SQLite's integers.
    let units = mu * mu * (1_u64 << UNIT_LOG2) as f64;
    if units >= (1_u64 << 63) as f64 {
        return Err(too_large);
    }
    if units < 1.0 {
        return Err(too_small);
    }
    let limits =
        Spent { units: units as u64, slack_units: reach.slack_limit, draws, reserve_units: budget.grantable_reserve_units() };
    // The budget must be exhausted before slack and draws are. Only epsilons near 1000 at a delta near 1 fail this.
    if limits.units / PRICE_OF_SLACK > limits.slack_units || limits.units / LEAST_CHARGE_UNITS > limits.draws {
        return Err(too_large);
    }
    Ok(limits)
}

/// Returns `(1 + e^epsilon) T q`, in log space, since the two factors may overflow and underflow. `epsilon > 0`.
fn tail(epsilon: f64, draws: u64, tail_log2: f64) -> f64 {
    let ln_draws_q = (libm::log2(draws as f64) - tail_log2) * std::f64::consts::LN_2;
    libm::exp(epsilon + libm::log1p(libm::exp(-epsilon)) + ln_draws_q)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::accounting::normal;

    #[test]
    fn the_tail_constants_cover_the_tails() {
        // CKS 2020, Proposition 25: the discrete tail beyond m is at most the continuous tail beyond
        // m - 1, here z - 2^-20 scales out.
        for (reach, z) in REACHES.iter().zip([12.0, 24.0, 48.0]) {
            let edge: f64 = z - 1.0 / f64::from(1 << 20);
            let ln_tail = normal::ln_density(edge) + normal::mills(edge).ln() + std::f64::consts::LN_2;
            assert!(ln_tail / std::f64::consts::LN_2 < -reach.tail_log2, "{z}: {}", ln_tail / std::f64::consts::LN_2);
            assert_eq!(reach.slack_limit as f64 * (z * z / 144.0), TOTAL_SLACK_UNITS as f64);
        }
    }

    #[test]
    fn the_log_difference_is_within_its_bound() {
        // Rounded: the integral of the density over a unit cell; discrete: the density, normalised. At
        // s = 8, where it shows.
        let s = 8.0;
        let norm: f64 = (-400..=400).map(|k| normal::ln_density(f64::from(k) / s).exp()).sum();
        for k in 0..=96 {
            let k = f64::from(k);
            let cell =
                (0..2000).map(|i| normal::ln_density((k - 0.5 + (f64::from(i) + 0.5) / 2000.0) / s).exp()).sum::<f64>() / 2000.0;
            let difference = cell.ln() - (normal::ln_density(k / s).exp() / norm * s).ln();
            let z = k / s;
            assert!(difference.abs() <= (z * z).max(1.0) / (24.0 * s * s) + 1e-8, "{k}: {difference}");
        }
    }

    #[test]
    fn ordinary_budgets_lose_about_a_millionth() {
        for (epsilon, delta) in [(0.1, 1e-6), (3.0, 1e-6), (8.0, 1e-5), (1.0, 1e-12)] {
            let limits = limits(&Budget::new(epsilon, delta).unwrap()).unwrap();
            let full = gaussian_dp::mu(epsilon, delta).powi(2);
            let lost = 1.0 - super::super::mu_squared(limits.units) / full;
            assert!(lost > 0.0 && lost < 1e-4_f64.min(1e-5 / epsilon), "{epsilon} {delta}: {lost}");
            assert_eq!(limits.slack_units, TOTAL_SLACK_UNITS);
        }
    }

    #[test]
    fn extreme_budgets_are_served_or_refused_by_name() {
        for (epsilon, delta) in [(50.0, 1e-6), (200.0, 1e-6), (1000.0, 1e-3)] {
            let limits = limits(&Budget::new(epsilon, delta).unwrap()).unwrap();
            let full = gaussian_dp::mu(epsilon, delta).powi(2);
            assert!((super::super::mu_squared(limits.units) / full - 1.0).abs() < 1e-5, "{epsilon}");
        }
        assert!(matches!(
            limits(&Budget { epsilon: 1e-6, delta: 1e-6, reserve_units: 0, unit: Default::default() }),
            Err(AccountingError::TooSmall { .. })
        ));
        assert!(matches!(
            limits(&Budget { epsilon: 2000.0, delta: 1e-6, reserve_units: 0, unit: Default::default() }),
            Err(AccountingError::TooLarge { .. })
        ));
        assert!(matches!(
            limits(&Budget { epsilon: 1.0, delta: 1.0, reserve_units: 0, unit: Default::default() }),
            Err(AccountingError::Delta(_))
        ));
        assert!(matches!(
            limits(&Budget { epsilon: f64::NAN, delta: 0.5, reserve_units: 0, unit: Default::default() }),
            Err(AccountingError::Epsilon(_))
        ));
    }

    /// The numbers stand in ledgers: they were computed with the system's library, and are the same bits by `libm`.
    #[test]
    fn limits_and_charges_of_choices_are_those_in_earlier_ledgers() {
        let recorded = [
            (0.1, 1e-6, 213_549_615_015),
            (0.5, 1e-9, 2_470_532_570_150),
            (1.0, 1e-6, 15_770_694_011_628),
            (3.0, 1e-6, 118_092_585_820_662),
            (8.0, 1e-6, 660_235_965_418_706),
            (8.0, 1e-5, 781_277_890_332_820),
            (20.0, 1e-12, 1_724_123_380_222_562),
            (50.0, 1e-6, 11_478_781_352_000_112),
            (400.0, 0.001, 181_531_850_186_335_872),
        ];
        for (epsilon, delta, units) in recorded {
            assert_eq!(limits(&Budget::new(epsilon, delta).unwrap()).unwrap().units, units, "{epsilon} {delta}");
        }
        let recorded = [
            (4.5, 1_927_776_691_814_238),
            (7.0, 4_026_080_344_004_291),
            (10.0, 6_887_587_871_453_919),
            (33.0, 31_268_096_151_134_300),
            (64.0, 65_378_131_342_311_888),
            (300.0, 329_299_777_967_269_568),
        ];
        for (range, units) in recorded {
            assert_eq!(crate::accounting::bounded_range::units(range), Some(units), "{range}");
        }
    }
}
