#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use super::{Bound, LogSum, SampledTests, corollary_1};

/// The paper's experiment: 5,000 tests on 1,000 of 1e6 records.
const PAPER: SampledTests = SampledTests { size: 1000.0, records: 1e6, steps: 5000.0 };

/// The figure was computed by an independent program in Python, whose binomials come from the gamma function.
#[test]
fn the_papers_setting_costs_what_the_paper_says() {
    let Bound { epsilon, order } = PAPER.corollary_2(1e-6).unwrap();
    assert!((epsilon - 0.4994).abs() < 5e-5, "{epsilon}");
    assert_eq!(order, 56.0);
}

/// At order 2 Corollary 2 has one term, `q² min(4 (e^eps - 1), 2 e^eps)`.
#[test]
fn one_term_is_left_at_order_2() {
    let one = PAPER.theorem_2(2.0).unwrap();
    let by_hand = 2.5 / 1000.0 + (2000.0_f64 / 990.0).ln() / 2.0 + 4.0 / 990.0;
    assert!((one - by_hand).abs() < 1e-15);
    let term = 1e-6 * (4.0 * one.exp_m1()).min(2.0 * one.exp());
    assert!((PAPER.amplified(2).unwrap() / term.ln_1p() - 1.0).abs() < 1e-12);
}

#[test]
fn theorem_2_needs_a_fifth_of_the_sample_above_the_order() {
    assert_eq!(PAPER.theorem_2(200.0), None);
    assert!(PAPER.theorem_2(199.0).is_some());
    let tiny = SampledTests { size: 10.0, ..PAPER };
    assert_eq!(tiny.corollary_2(1e-6), None);
}

/// Corollary 1 at its best order is no larger than at any other.
#[test]
fn corollary_1_is_the_least_over_orders() {
    let Bound { epsilon, order } = corollary_1(0.01, 2.0, 5000.0, 1e-6);
    let at = |order: f64| 5000.0 * 2.0 * order * 1e-4 / 2.0 + 1e6_f64.ln() / (order - 1.0);
    assert!((at(order) - epsilon).abs() < 1e-12);
    assert!(at(order * 1.01) > epsilon && at(order * 0.99) > epsilon);
}

#[test]
fn sums_hold_numbers_beyond_floating_point() {
    let mut sum = LogSum::ZERO;
    [-1000.0, 2000.0, 2000.0].iter().for_each(|ln| sum.add(*ln));
    assert!((sum.ln_one_plus() - 2000.0 - std::f64::consts::LN_2).abs() < 1e-12);
    let mut small = LogSum::ZERO;
    small.add(-40.0);
    assert!((small.ln_one_plus() / (-40.0_f64).exp() - 1.0).abs() < 1e-12);
}
