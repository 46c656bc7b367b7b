//! Prices of sums over several parties, of which only the sum is opened, against rational arithmetic and against the sum's own
//! law.

use num_bigint::BigUint;
use proptest::prelude::*;

use super::super::*;
use crate::mechanism::{NoiseScale, QueryKind, Sensitivity};

fn honest(h: u32) -> Honest {
    Honest::new(h).unwrap()
}

fn ceiling(numerator: BigUint, denominator: &BigUint) -> BigUint {
    (numerator + denominator - 1_u32) / denominator
}

proptest! {
    /// The price is rounded once, for all of them: never as a share of a price rounded earlier.
    #[test]
    fn a_price_is_rounded_up_once(
        k in 1_u64..1 << 50,
        j in 16_u64..1 << 34,
        h in 1_u32..=Honest::MOST,
        d in 1_u32..5_000,
        replaced in any::<bool>(),
    ) {
        let (k_t, s) = (Sensitivity::from_units(k).unwrap(), NoiseScale::from_units(j << 16).unwrap());
        let adjacency = if replaced { Adjacency::Replace } else { Adjacency::AddRemove };
        let unit = PrivacyUnit::row(adjacency);
        let noise = BigUint::from(h) * BigUint::from(s.units()).pow(2);
        let slack = ceiling(BigUint::from(6_u32) << 80, &noise);
        prop_assert_eq!(BigUint::from(slack_units_of_draw(s, honest(h))), slack.clone());
        for (kind, factor) in [(QueryKind::Ratio, adjacency.factor()), (QueryKind::ClipCount, 1)] {
            let price = ceiling(BigUint::from(factor * k).pow(2) << 48, &noise);
            let least = BigUint::from(d) * BigUint::from(LEAST_CHARGE_UNITS).max(BigUint::from(8_u32) * &slack);
            match Priced::new(kind, k_t, s, honest(h)).of_components_for_test(d).cost(unit) {
                Ok(cost) => {
                    prop_assert_eq!(BigUint::from(cost.units), price.max(least));
                    prop_assert_eq!((BigUint::from(cost.slack_units), cost.draws), (BigUint::from(d) * &slack, u64::from(d)));
                }
                Err(_) => prop_assert!(price.max(least) > BigUint::from(u64::MAX)),
            }
        }
    }

    /// A value under its own party's noise costs the same as before. A sum costs at most that, and at least its share.
    #[test]
    fn a_sum_of_many_costs_its_share(k in 1_u64..1 << 40, j in 16_u64..1 << 30, h in 1_u32..=Honest::MOST) {
        let (k_t, s) = (Sensitivity::from_units(k).unwrap(), NoiseScale::from_units(j << 16).unwrap());
        let unit = PrivacyUnit::default();
        let one = Priced::new(QueryKind::Ratio, k_t, s, honest(h));
        if let (Ok(alone), Ok(cost)) = (one.alone().cost(unit), one.cost(unit)) {
            prop_assert_eq!(alone.units, charge_units(k_t, s).unwrap());
            // Both are rounded up: their ratio is within one unit of the number of parties, except for the minimal price of a
            // draw.
            prop_assert!(cost.units <= alone.units && u128::from(cost.units) * u128::from(h) + u128::from(h) > u128::from(alone.units));
            prop_assert_eq!(h == 1, one == one.alone());
        }
    }
}

/// Returns `P(z)` of a discrete Gaussian of scale `s`, from `-reach` to `reach`.
fn discrete(s: f64, reach: i64) -> Vec<f64> {
    let weights: Vec<f64> = (-reach..=reach).map(|z| libm::exp(-((z * z) as f64) / (2.0 * s * s))).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|w| w / sum).collect()
}

/// Returns `P(z)` of a Gaussian of this sd rounded to integers, by Simpson's rule, with a relative error near 1e-12.
fn rounded(sd: f64, z: i64) -> f64 {
    const HALVES: i32 = 32;
    let density = |x: f64| libm::exp(-x * x / (2.0 * sd * sd)) / (sd * std::f64::consts::TAU.sqrt());
    let width = 1.0 / f64::from(2 * HALVES);
    let weight = |i: i32| if i == 0 || i == 2 * HALVES { 1.0 } else { f64::from(2 + 2 * (i % 2)) };
    (0..=2 * HALVES).map(|i| weight(i) * density(z as f64 - 0.5 + f64::from(i) * width)).sum::<f64>() * width / 3.0
}

/// Returns the law of the sum of `h` draws.
fn summed(s: f64, h: u32, reach: i64) -> Vec<f64> {
    let one = discrete(s, reach);
    (1..h).fold(one.clone(), |sum, _| {
        let at = |z: i64| {
            let parts = (-reach..=reach).filter(|x| (z - x).abs() <= reach);
            parts.map(|x| sum[(x + reach) as usize] * one[(z - x + reach) as usize]).sum()
        };
        (-reach..=reach).map(at).collect()
    })
}

/// The law behind a ledger's allowance, at scales where it is visible. Within 12 `S`, `S² = h s²`, the logarithm of the sum's law
/// is within `max(1, z²) / (24 S²)` of that of the rounded Gaussian, with `z` in units of `S`. A sum with one draw missing, or
/// with a scale off by one part in fifty, is not.
#[test]
fn a_sum_of_discrete_gaussians_is_as_close_to_the_rounded_one_as_a_draw() {
    let worst = |s: f64, h: u32, claimed: f64| {
        let reach = (13.0 * claimed) as i64 + 1;
        let law = summed(s, h, reach);
        let within = (12.0 * claimed) as i64;
        (-within..=within)
            .map(|z| {
                let off = (libm::log(law[(z + reach) as usize]) - libm::log(rounded(claimed, z))).abs();
                let z = z as f64 / claimed;
                off * 24.0 * claimed * claimed / z.powi(2).max(1.0)
            })
            .fold(0.0, f64::max)
    };
    for (s, h) in [(4.0, 2_u32), (8.0, 2), (3.3, 3), (6.0, 3), (4.0, 5), (3.0, 10), (8.0, 10)] {
        let sd = s * f64::from(h).sqrt();
        let found = worst(s, h, sd);
        // .99998 at most, by sixty digits.
        assert!(found <= 1.0, "{s} {h}: {found}");
        assert!(worst(s, h, 1.02 * sd) > 10.0 && worst(s, h - 1, sd) > 10.0, "{s} {h}: a wrong scale is seen");
    }
}

/// Compares the sum's own trade-off with the charge. For neighbours one sensitivity apart, the hockey-stick divergence is at
/// most that of the Gaussian with `mu² = Delta² / (h s²)`, up to the allowance.
#[test]
fn a_sum_reveals_what_is_charged() {
    for (s, h, moved) in [(4.0, 2_u32, 3_i64), (4.0, 5, 7), (8.0, 3, 10)] {
        let sd = s * f64::from(h).sqrt();
        let reach = (13.0 * sd) as i64 + moved + 1;
        let law = summed(s, h, reach);
        let mu = moved as f64 / sd;
        // Allowance on log probabilities within 12 S, in both directions.
        let allowance = 2.0 * 6.0 / (sd * sd);
        for epsilon in [0.0, 0.1, 0.5, 1.0, 2.0, 4.0] {
            let stick = |epsilon: f64| -> f64 {
                let at = |z: i64| if z.abs() <= reach { law[(z + reach) as usize] } else { 0.0 };
                (-reach..=reach).map(|z| (at(z - moved) - libm::exp(epsilon) * at(z)).max(0.0)).sum()
            };
            let delta = gaussian_dp::delta(epsilon, mu);
            assert!(stick(epsilon + 2.0 * allowance) <= libm::exp(allowance) * delta + 1e-12, "{s} {h} {moved} {epsilon}");
            // The bound is nearly attained, so that no budget is wasted.
            assert!(stick(epsilon) >= 0.98 * delta - 1e-9, "{s} {h} {moved} {epsilon}: {} of {delta}", stick(epsilon));
        }
    }
}

/// Returns `1' Sigma^-1 1` for a covariance matrix, by elimination.
fn information(mut sigma: Vec<Vec<f64>>) -> f64 {
    let n = sigma.len();
    let mut ones = vec![1.0; n];
    for i in 0..n {
        for j in i + 1..n {
            let factor = sigma[j][i] / sigma[i][i];
            let row = sigma[i].clone();
            sigma[j].iter_mut().zip(&row).for_each(|(a, b)| *a -= factor * b);
            ones[j] -= factor * ones[i];
        }
    }
    for i in (0..n).rev() {
        let rest: f64 = (i + 1..n).map(|j| sigma[i][j] * ones[j]).sum();
        ones[i] = (ones[i] - rest) / sigma[i][i];
    }
    ones.iter().sum()
}

/// Checks a party that gives `k` answers to one query, as after a restored backup. The `k` opened sums then share the others'
/// noise. Together they reveal `h k / (1 + (h - 1) k)` times what one sum does, about that party and every other. This is
/// always less than if the party colluded against the others. If all parties answer `k` times, the factor is `k`.
#[test]
fn two_answers_to_one_query_reveal_less_than_a_party_that_colludes_against_the_others() {
    for h in [2_u32, 3, 9] {
        let (others, once) = (f64::from(h - 1), 1.0 / f64::from(h));
        for k in 1..=12_usize {
            let sums = |own: f64, common: f64| {
                (0..k).map(|i| (0..k).map(|j| common + if i == j { own } else { 0.0 }).collect()).collect()
            };
            let of_one = information(sums(1.0, others)) / once;
            let (h, k) = (f64::from(h), k as f64);
            assert!((of_one - h * k / (1.0 + (h - 1.0) * k)).abs() < 1e-9, "{h} {k}: {of_one}");
            assert!(of_one <= h / (h - 1.0) + 1e-9);
            assert!((information(sums(h, 0.0)) / once - k).abs() < 1e-9);
        }
    }
}
