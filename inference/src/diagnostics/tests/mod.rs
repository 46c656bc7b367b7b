#![allow(clippy::unwrap_used)]

use serde_json::Value;

use super::chains::slices;
use super::*;

/// Chains of `tests/vectors/diagnostics.py`.
fn chains(case: &Value) -> Vec<Vec<f64>> {
    let number = |key: &str| case[key].as_f64().unwrap();
    let mut state = case["seed"].as_u64().unwrap();
    let count = |key: &str| case[key].as_u64().unwrap();
    (0..count("chains"))
        .map(|chain| {
            let mut x = 0.0;
            let mut draws = Vec::new();
            for draw in 0..count("draws") {
                let mut total = 0.0;
                for _ in 0..4 {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    total += (state >> 11) as f64 / 9_007_199_254_740_992.0;
                }
                x = number("rho") * x + (total - 2.0);
                let mut value = x * (1.0 + chain as f64 * number("spread")) + chain as f64 * number("shift");
                value += draw as f64 * number("trend");
                if number("tail") > 0.0 {
                    value *= 1.0 + number("tail") * value * value;
                }
                if count("stuck") > 0 && chain + 1 == count("chains") && draw >= count("stuck") {
                    value = draws[count("stuck") as usize - 1];
                }
                let grid = number("grid");
                draws.push(if grid > 0.0 { (value / grid).floor() * grid } else { value });
            }
            draws
        })
        .collect()
}

#[test]
fn agrees_with_arviz() {
    let vectors: Value = serde_json::from_str(include_str!("../../../../tests/vectors/diagnostics.json")).unwrap();
    for case in vectors["cases"].as_array().unwrap() {
        let chains = chains(case);
        let chains = slices(&chains);
        let s = summarise(&chains);
        let figures = [
            ("mean", s.mean),
            ("sd", s.sd),
            ("q5", s.q5),
            ("median", s.median),
            ("q95", s.q95),
            ("ess_bulk", s.ess_bulk),
            ("ess_tail", s.ess_tail),
            ("rhat", s.rhat),
            ("mcse_mean", s.mcse_mean),
            ("ess_mean", ess(&chains)),
            ("mcse_sd", s.mcse_sd),
            ("mcse_q5", s.mcse_q5),
            ("mcse_median", s.mcse_median),
            ("mcse_q95", s.mcse_q95),
            ("ess_q5", s.ess_q5),
            ("ess_median", s.ess_median),
            ("ess_q95", s.ess_q95),
        ];
        for (key, got) in figures {
            let Some(expected) = case[key].as_f64() else {
                assert!(got.is_nan(), "{}: {key} is {got}", case["kind"]);
                continue;
            };
            let tolerance = 1e-9 * expected.abs().max(1e-3);
            assert!((got - expected).abs() <= tolerance, "{}: {key} is {got}, expected {expected}", case["kind"]);
        }
    }
}

#[test]
fn degenerate_chains() {
    assert!(summarise(&[]).mean.is_nan());
    assert!(summarise(&[&[], &[]]).mean.is_nan());
    assert!(summarise(&[&[1.0, f64::NAN, 2.0, 3.0]]).sd.is_nan());

    let short = summarise(&[&[1.0, 2.0, 3.0], &[2.0, 3.0, 4.0]]);
    assert_eq!((short.mean, short.median), (2.5, 2.5));
    assert!(short.rhat.is_nan() && short.ess_bulk.is_nan() && short.ess_tail.is_nan() && short.mcse_mean.is_nan());

    let constant = summarise(&[&[2.0; 10], &[2.0; 10]]);
    assert_eq!((constant.mean, constant.sd), (2.0, 0.0));
    let undefined =
        [constant.rhat, constant.ess_bulk, constant.ess_tail, constant.ess_median, constant.mcse_mean, constant.mcse_sd];
    assert!(undefined.iter().all(|figure| figure.is_nan()), "{constant:?}");
    // The mean of these differs from each by rounding.
    assert_eq!(summarise(&[&[0.1 + 0.2; 50]]).sd, 0.0);
    let rounding = summarise(&[&[1.0, 1.0 + f64::EPSILON, 1.0, 1.0, 1.0, 1.0 + f64::EPSILON]]);
    assert!(rounding.ess_bulk.is_nan() && rounding.ess_tail.is_nan());
    // A small spread around a large value is a spread.
    assert!(summarise(&[&[1e9, 1e9 + 1e-3, 1e9 - 1e-3, 1e9, 1e9 + 2e-3, 1e9]]).ess_bulk > 0.0);

    let stuck = summarise(&[&[1.0; 10], &[2.0; 10]]);
    assert!(stuck.rhat > 1e3, "chains stuck at different values must not look converged");

    let unequal = summarise(&[&[1.0, 2.0, 3.0, 4.0, 100.0], &[1.0, 2.0, 3.0, 4.0]]);
    assert_eq!(unequal.mean, 2.5);
}

/// The benchmark `cargo bench -p conclave-inference --bench sampler` measures the time.
#[test]
fn long_chains_that_do_not_mix_are_summarised() {
    let case = serde_json::json!({"seed": 3, "chains": 4, "draws": 20_000, "rho": 0.9999, "spread": 0.0, "shift": 0.0, "grid": 0.0,
        "trend": 0.0, "tail": 0.0, "stuck": 0});
    let chains = chains(&case);
    let summary = summarise(&slices(&chains));
    assert!(summary.ess_bulk < 100.0);
}
