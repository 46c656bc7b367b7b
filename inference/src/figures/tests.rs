#![allow(clippy::unwrap_used)]
use conclave_privacy::accounting::gaussian_dp;
use serde_json::Value;

use super::*;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../tests/vectors/accounting.json")).unwrap()
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
        close(zcdp::epsilon(mu_squared / 2.0, delta), number(row, "cks"));
        let [(mu0, count)] = rounds[..] else {
            assert!(row["adv"].is_null());
            continue;
        };
        match advanced_composition::epsilon(mu0, count, delta) {
            Some(epsilon) => close(epsilon, number(row, "adv")),
            None => assert!(row["adv"].is_null(), "{row}"),
        }
    }
}

#[test]
fn queries_allowed_match_the_vectors() {
    for row in vectors()["queries_allowed_at_mu0_0.01"].as_array().unwrap() {
        let (epsilon, delta) = (number(row, "epsilon"), number(row, "delta"));
        let mu = gaussian_dp::mu(epsilon, delta);
        assert_eq!(largest_count(|count| count as f64 * 0.01 * 0.01 <= mu * mu), row["gdp"].as_u64().unwrap());
        let by_zcdp = largest_count(|count| zcdp::epsilon(0.5 * 0.01 * 0.01 * count as f64, delta) <= epsilon);
        assert_eq!(by_zcdp, row["cks"].as_u64().unwrap());
        assert_eq!(advanced_composition::queries_allowed(0.01, epsilon, delta), row["adv"].as_u64().unwrap());
    }
}

#[test]
fn zcdp_conversion_is_no_better_than_gaussian_dp() {
    for mu in [1e-6, 1e-3, 0.1, 1.0, 5.0, 30.0] {
        for delta in [1e-12, 1e-6, 1e-2] {
            let (gdp, cks) = (gaussian_dp::epsilon(mu, delta), zcdp::epsilon(mu * mu / 2.0, delta));
            assert!(gdp <= cks * (1.0 + 1e-9), "{mu} {delta}: {gdp} {cks}");
        }
    }
    assert_eq!(zcdp::epsilon(0.0, 1e-6), 0.0);
    assert_eq!(advanced_composition::epsilon(0.0, 5, 1e-6), Some(0.0));
}
