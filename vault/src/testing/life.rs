//! The requests of a party's whole life, for tests that nothing but the released integers depends on a record.
#![allow(clippy::unwrap_used)]

use conclave_privacy::mechanism::NoiseScale;
use conclave_proto::v1;

use super::{MEAN_TOML, query};

/// Returns a logistic regression of `sick` on `height`.
pub fn logistic_toml() -> String {
    MEAN_TOML
        .replace("kind = \"gaussian_mean\"", "kind = \"logistic\"\npredictors = [\"height\"]")
        .replace("outcome = \"height\"\nsd = 10.0", "outcome = \"sick\"")
        .replace("[prior]", "sick = { binary = true }\n[prior]")
}

/// Returns every kind of request to a job with that number of parameters, and then enough to spend its budget.
pub fn requests(dimension: usize) -> Vec<v1::Query> {
    let wide = |mut request: v1::Query| {
        for proposal in &mut request.proposals {
            let (from, to) = (proposal.from[0], proposal.to[0]);
            (proposal.from, proposal.to) = (vec![from; dimension], vec![to; dimension]);
        }
        request
    };
    let mut cheap = query(6, &[(0, 0.0, 1e-4)]);
    cheap.proposals[0].noise_scale = NoiseScale::from_sd(0.25).unwrap().units();
    let mut all = vec![
        query(0, &[(0, 0.0, 1e-4), (1, 0.0, -1e-4)]),
        query(0, &[(0, 0.0, 1e-4), (1, 0.0, -1e-4)]),
        query(0, &[(0, 0.0, 2e-4), (1, 0.0, -1e-4)]),
        query(1, &[(0, 0.3, 0.3)]),
        query(2, &[(0, 5.0, 5.001)]),
        query(3, &[(0, 0.0, 1e9)]),
        query(4, &[(0, f64::NAN, 0.0)]),
        query(5, &[(0, 0.0, 900.0)]),
        cheap,
        query(7, &[(0, -900.0, -899.999)]),
    ];
    // Until the budget is spent, and beyond.
    let step = if dimension == 1 { 0.002 } else { 0.05 };
    all.extend((10..120).map(|i| query(i, &[(0, 0.0, step)])));
    all.into_iter().map(wide).collect()
}
