#![allow(clippy::unwrap_used)]

mod honest;
mod subsampled;
mod subsampled_limits;
mod two_limits;

use num_bigint::BigUint;
use proptest::prelude::*;
use serde_json::Value;

use super::limits::DRAWS;
use super::*;
use crate::mechanism::{NoiseScale, Sensitivity};

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../../tests/vectors/accounting.json")).unwrap()
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"))
}

fn close(got: f64, expected: f64) {
    assert!((got / expected - 1.0).abs() < 1e-9, "{got}, expected {expected}");
}

#[test]
fn epsilons_match_the_vectors() {
    for row in vectors()["epsilon_at_delta"].as_array().unwrap() {
        let rounds: Vec<(f64, u64)> =
            row["rounds"].as_array().unwrap().iter().map(|r| (r[0].as_f64().unwrap(), r[1].as_u64().unwrap())).collect();
        let mu_squared: f64 = rounds.iter().map(|(mu, count)| mu * mu * *count as f64).sum();
        let delta = number(row, "delta");
        close(gaussian_dp::epsilon(mu_squared.sqrt(), delta), number(row, "gdp"));
    }
}

#[test]
fn budgets_match_the_vectors() {
    for row in vectors()["mu_at_epsilon_delta"].as_array().unwrap() {
        let (epsilon, delta, expected) = (number(row, "epsilon"), number(row, "delta"), number(row, "mu"));
        let mu = gaussian_dp::mu(epsilon, delta);
        close(mu, expected);
        assert!(mu < expected, "a budget's mu is rounded down");
        assert_eq!(Budget::new(epsilon, delta).unwrap().mu(), mu);
        let ledger = PrivacyFilter::new(&Budget::new(epsilon, delta).unwrap()).unwrap();
        assert!(ledger.limit_mu() < mu && ledger.limit_mu() > mu * (1.0 - 1e-5));
    }
}

#[test]
fn budgets_are_checked() {
    for epsilon in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(Budget::new(epsilon, 1e-6), Err(AccountingError::Epsilon(_))));
    }
    for delta in [0.0, -1.0, 1.0, 2.0, f64::NAN] {
        assert!(matches!(Budget::new(1.0, delta), Err(AccountingError::Delta(_))));
    }
}

#[test]
fn counts_of_the_default_ledger() {
    // mu0 = 2 K / s = 0.01: the slack does not change the 4,195 queries of (3, 1e-6).
    let s = NoiseScale::from_sd(1.0).unwrap();
    let k_t = Sensitivity::from_units((0.005 * s.units() as f64) as u64).unwrap();
    let mut filter = PrivacyFilter::new(&Budget::new(3.0, 1e-6).unwrap()).unwrap();
    let granted = std::iter::repeat_with(|| filter.try_charge(&[(k_t, s)])).take_while(Result::is_ok).count();
    assert_eq!(granted, 4_195);
    assert_eq!(filter.try_charge(&[(k_t, s)]), Err(FilterRefusal::Budget));
    assert_eq!(filter.spent().draws, 4_195);
    assert!(filter.spent().epsilon(1e-6) <= 3.0 && filter.spent().epsilon(1e-6) > 2.999);
}

#[test]
fn every_limit_refuses_by_name() {
    let budget = Budget::new(3.0, 1e-6).unwrap();
    let least = |s: NoiseScale| (Sensitivity::from_units(1).unwrap(), s);
    let fine = least(NoiseScale::from_units(1 << 20).unwrap());
    let coarse = least(NoiseScale::from_sd(1.0).unwrap());

    // 6 / 2^40 per draw against 2^-20: 174,762 draws at the smallest scale.
    let spent = Spent { slack_units: 174_761 * (6 << 40), ..Spent::default() };
    let mut filter = PrivacyFilter::resume(&budget, spent).unwrap();
    assert!(filter.try_charge(&[fine]).is_ok());
    assert_eq!(filter.try_charge(&[fine]), Err(FilterRefusal::Slack));
    assert!(filter.admits(&[coarse]));

    let mut filter = PrivacyFilter::resume(&budget, Spent { draws: DRAWS - 1, ..Spent::default() }).unwrap();
    assert!(filter.try_charge(&[coarse]).is_ok());
    assert_eq!(filter.try_charge(&[coarse]), Err(FilterRefusal::Draws));

    let mut filter = PrivacyFilter::resume(&budget, Spent { units: u64::MAX, ..Spent::default() }).unwrap();
    assert_eq!(filter.try_charge(&[coarse]), Err(FilterRefusal::Overflow));
    assert_eq!(filter.remaining().units, 0);
    let huge = (Sensitivity::from_units(1 << 50).unwrap(), NoiseScale::from_units(1 << 20).unwrap());
    assert_eq!(filter.try_charge(&[huge]), Err(FilterRefusal::Overflow));
    assert!(matches!(charge_units(huge.0, huge.1), Err(AccountingError::ChargeOverflow { .. })));

    // A budget lowered below the amount spent refuses everything.
    let filter = PrivacyFilter::resume(&Budget::new(0.1, 1e-6).unwrap(), Spent { units: 1 << 47, ..Spent::default() }).unwrap();
    assert!(!filter.admits(&[coarse]) && filter.remaining().units == 0);
}

#[test]
fn a_charge_in_figures() {
    // K = s / 2 is mu = 1; a third of that is rounded up.
    let s = NoiseScale::from_sd(3.0).unwrap();
    let charge = |k: u64| charge_units(Sensitivity::from_units(k).unwrap(), s).unwrap();
    assert_eq!(charge(s.units() / 2), 1 << UNIT_LOG2);
    assert_eq!(charge(s.units() / 6), (1_u64 << UNIT_LOG2).div_ceil(9));
    // The minimal price of a draw: 2^-24 of mu^2.
    assert_eq!((charge(1), mu_squared(charge(1))), (LEAST_CHARGE_UNITS, 1.0 / f64::from(1 << 24)));
    // With little noise the share of the slack costs more: eight units for each of its 6 / s^2 2^80.
    let quiet = NoiseScale::from_units(1 << 20).unwrap();
    assert_eq!(charge_units(Sensitivity::from_units(1).unwrap(), quiet).unwrap(), 8 * (6 << 40));
    assert_eq!(mu_squared(1 << UNIT_LOG2), 1.0);
}

#[test]
fn the_minimal_price_does_not_affect_ordinary_queries() {
    // 4,195 queries at mu_t = 0.01 for (3, 1e-6): K = s / 200, far above the minimal price.
    let s = NoiseScale::from_sd(1.0).unwrap();
    let k = Sensitivity::from_units(s.units() / 200).unwrap();
    let exact = ((4 * u128::from(k.units()).pow(2)) << UNIT_LOG2).div_ceil(u128::from(s.units()).pow(2));
    assert_eq!(u128::from(charge_units(k, s).unwrap()), exact);
    let mut filter = PrivacyFilter::new(&Budget::new(3.0, 1e-6).unwrap()).unwrap();
    assert_eq!((0..5000).take_while(|_| filter.try_charge(&[(k, s)]).is_ok()).count(), 4195);
    // A million queries in that budget cost more than the minimal price each.
    assert!(filter.limit_units() / 1_000_000 > 6 * LEAST_CHARGE_UNITS);
}

/// Draws and slack last as long as the budget: even with the cheapest queries, at any noise, the budget ends first.
#[test]
fn neither_draws_nor_slack_end_before_the_budget() {
    for (epsilon, delta) in
        [(1e-3, 1e-9), (0.1, 1e-6), (3.0, 1e-6), (8.0, 1e-5), (30.0, 1e-6), (50.0, 1e-2), (300.0, 1e-6), (1000.0, 0.5)]
    {
        let filter = PrivacyFilter::new(&Budget::new(epsilon, delta).unwrap()).unwrap();
        let limit = filter.limit();
        for j in [16, 17, 1 << 10, 655, 1 << 16, 1 << 20, 1 << 33] {
            let s = NoiseScale::from_units(j << 16).unwrap();
            let charge = charge_units(Sensitivity::from_units(1).unwrap(), s).unwrap();
            let most = limit.units / charge;
            assert!(most <= limit.draws, "{epsilon} {delta} {j}: {most} draws of {}", limit.draws);
            let slack = u128::from(most) * u128::from(slack::units_of_draw(s, Honest::ALONE));
            assert!(slack <= u128::from(limit.slack_units), "{epsilon} {delta} {j}: {slack} of {}", limit.slack_units);
        }
    }
}

/// The attack: messages of 256 queries with theta = theta' and K_t = 1 from a job with a small cap. It must reach its own cap
/// with no larger share of the ledger's draws used than its cap is of the budget.
#[test]
fn a_small_job_cannot_exhaust_the_ledger() {
    let data = PrivacyFilter::new(&Budget::new(8.0, 1e-6).unwrap()).unwrap();
    let mut job = PrivacyFilter::new(&Budget::new(0.05, 1e-6).unwrap()).unwrap();
    let message = vec![(Sensitivity::from_units(1).unwrap(), NoiseScale::from_sd(1.0).unwrap()); 256];
    let refusal = loop {
        if let Err(refusal) = job.try_charge(&message) {
            break refusal;
        }
    };
    assert_eq!(refusal, FilterRefusal::Budget);
    let share = |a: u64, b: u64| a as f64 / b as f64;
    let cap = share(job.limit_units(), data.limit_units());
    assert!(
        share(job.spent().draws, data.limit().draws) <= cap && share(job.spent().slack_units, data.limit().slack_units) <= cap
    );
}

fn release() -> impl Strategy<Value = (Sensitivity, NoiseScale)> {
    // Magnitudes spread evenly over powers of two.
    let spread = |low: u32, high: u32| (low..=high, any::<u64>()).prop_map(|(bits, x)| (1_u64 << bits) | (x & ((1 << bits) - 1)));
    (spread(0, 49), spread(4, 33))
        .prop_map(|(k, j)| (Sensitivity::from_units(k).unwrap(), NoiseScale::from_units(j << 16).unwrap()))
}

/// Returns releases of ordinary cost, so that a filter grants several.
fn cheap() -> impl Strategy<Value = (Sensitivity, NoiseScale)> {
    (1_u64..1 << 30, 1_u64 << 14..1 << 17)
        .prop_map(|(k, j)| (Sensitivity::from_units(k).unwrap(), NoiseScale::from_units(j << 16).unwrap()))
}

proptest! {
    #[test]
    fn charges_are_exact((k_t, s) in release()) {
        let exact = BigUint::from(2 * k_t.units()).pow(2) << UNIT_LOG2;
        let noise = BigUint::from(s.units()).pow(2);
        let ceiling = (exact + &noise - 1_u32) / &noise;
        let least = LEAST_CHARGE_UNITS.max(8 * slack::units_of_draw(s, Honest::ALONE));
        match charge_units(k_t, s) {
            Ok(charge) => prop_assert_eq!(BigUint::from(charge), ceiling.max(BigUint::from(least))),
            Err(_) => prop_assert!(ceiling > BigUint::from(u64::MAX)),
        }
        let slack = ((BigUint::from(6_u32) << 80) + &noise - 1_u32) / &noise;
        prop_assert_eq!(BigUint::from(slack::units_of_draw(s, Honest::ALONE)), slack);
    }

    #[test]
    fn a_filter_never_exceeds_and_grants_all_or_none(
        messages in prop::collection::vec(prop::collection::vec(prop_oneof![9 => cheap(), 1 => release()], 1..5), 1..60),
        epsilon in 0.1..20.0f64,
        delta_log10 in -12.0..-2.0f64,
    ) {
        let budget = Budget::new(epsilon, 10_f64.powf(delta_log10)).unwrap();
        let mut filter = PrivacyFilter::new(&budget).unwrap();
        let mut charged: Vec<(Sensitivity, NoiseScale)> = Vec::new();
        for message in &messages {
            let (before, admits) = (filter.spent(), filter.admits(message));
            let outcome = filter.try_charge(message);
            prop_assert_eq!(admits, outcome.is_ok());
            match outcome {
                Ok(charges) => {
                    prop_assert_eq!(charges.len(), message.len());
                    let expected: Vec<u64> = message.iter().map(|(k, s)| charge_units(*k, *s).unwrap()).collect();
                    prop_assert_eq!(&charges, &expected);
                    charged.extend(message);
                }
                Err(_) => prop_assert_eq!(filter.spent(), before),
            }
            prop_assert!(filter.spent().units <= filter.limit_units());

            // A restart continues as if nothing had happened.
            let resumed = PrivacyFilter::resume(&budget, filter.spent()).unwrap();
            prop_assert_eq!(resumed.spent(), filter.spent());
            prop_assert_eq!(resumed.limit_units(), filter.limit_units());
            filter = resumed;
        }
        // The order of charges does not matter, one by one or together.
        let mut reversed = PrivacyFilter::new(&budget).unwrap();
        for release in charged.iter().rev() {
            prop_assert!(reversed.try_charge(&[*release]).is_ok());
        }
        prop_assert_eq!(reversed.spent(), filter.spent());
        let mut together = PrivacyFilter::new(&budget).unwrap();
        prop_assert!(together.try_charge(&charged).is_ok());
        prop_assert_eq!(together.spent(), filter.spent());
        // The granted total also stays within the budget by the conversion without slack.
        prop_assert!(filter.spent().epsilon(budget.delta) <= budget.epsilon);
    }

    #[test]
    fn conversions_are_monotone_and_safe(mu in 1e-4..30.0f64, delta_log10 in -200.0..-0.5f64) {
        let delta = 10_f64.powf(delta_log10);
        let epsilon = gaussian_dp::epsilon(mu, delta);
        prop_assert!(gaussian_dp::delta(epsilon, mu) <= delta);
        prop_assert!(gaussian_dp::epsilon(mu * 1.01, delta) >= epsilon);
        prop_assert!(gaussian_dp::epsilon(mu, delta * 1.1) <= epsilon);
        if epsilon > 1e-3 {
            let back = gaussian_dp::mu(epsilon, delta);
            prop_assert!(gaussian_dp::delta(epsilon, back) <= delta);
            prop_assert!((back / mu - 1.0).abs() < 1e-8);
        }
    }
}
