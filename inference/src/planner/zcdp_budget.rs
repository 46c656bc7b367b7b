//! Equivalent of a budget under zero-concentrated differential privacy (Bun & Steinke 2016).

use crate::figures::zcdp;
use conclave_privacy::accounting::{Budget, mu_squared};

/// Returns the mu^2 that zCDP allows, in units of 2^-48: the largest whose epsilon at the budget's delta stays within the budget.
pub(super) fn zcdp_units(budget: &Budget) -> u64 {
    let fits = |units: u64| zcdp::epsilon(0.5 * mu_squared(units), budget.delta) <= budget.epsilon;
    let (mut under, mut over) = (0_u64, 1_u64 << 62);
    while over - under > 1 {
        let middle = under + (over - under) / 2;
        if fits(middle) { under = middle } else { over = middle }
    }
    under
}
