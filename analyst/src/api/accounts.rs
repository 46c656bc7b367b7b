//! Accounts of privacy.

use conclave_proto::error::Fault;
use serde_json::Value;

use crate::account::{of_budget, of_releases, of_subsampled};

/// Accounts for `count` releases of `mu` each, for each pair: an object with `mu`, `epsilon_gdp`, `epsilon_zcdp` and
/// `epsilon_advanced`, which is null where it does not apply.
///
/// # Errors
/// A delta, a mu or a count out of range.
pub fn account(releases: &[(f64, u64)], delta: f64) -> Result<Value, Fault> {
    Ok(of_releases(releases, delta)?.0)
}

/// Returns the mu that a budget buys.
///
/// # Errors
/// An epsilon or a delta out of range.
pub fn mu_of(epsilon: f64, delta: f64) -> Result<f64, Fault> {
    Ok(of_budget(epsilon, delta)?.0["mu_budget"].as_f64().unwrap_or(f64::NAN))
}

/// Accounts for blocks of subsampled releases; `options` has the names of the options of `account --subsampled`.
///
/// # Errors
/// Options that are unknown, missing or out of range.
pub fn account_subsampled(options: Value, delta: f64) -> Result<Value, Fault> {
    Ok(of_subsampled(options, delta)?.0)
}
