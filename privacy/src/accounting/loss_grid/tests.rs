//! Grids against enumeration: cells of the line with masses from Simpson's rule, in every combination.

#![allow(clippy::unwrap_used)]

use super::super::connect_the_dots::connect_the_dots;
use super::super::dominating_pair::{DominatingPair, Order};
use super::*;

const ORDERS: [Order; 3] = [Order::Replacement, Order::Removal, Order::Addition];
const TAIL: f64 = 1e-13;

/// Returns epsilons of both signs, as multiples of the standard deviation of the composition's loss.
fn epsilons(pair: DominatingPair, count: u64) -> Vec<f64> {
    let sd = pair.loss_sd() * (count as f64).sqrt();
    (-24..=24).map(|i| f64::from(i) / 4.0 * sd).collect()
}

/// Returns the log of the density of `(1 - q) N(0) + q N(centre)` over that of `N(0)`.
fn ratio(q: f64, centre: f64, x: f64) -> f64 {
    (1.0 - q + q * (centre * x - centre * centre / 2.0).exp()).ln()
}

/// Returns the masses of `P` and `Q` in narrow cells, and the greatest loss in each, by Simpson's rule from densities written
/// independently.
fn cells(order: Order, q: f64, k: f64) -> Vec<(f64, f64, f64)> {
    const PER_UNIT: i32 = 24;
    let log_ratios = move |x: f64| match order {
        Order::Replacement => (ratio(q, k, x), ratio(q, -k, x)),
        Order::Removal => (ratio(q, k, x), 0.0),
        Order::Addition => (0.0, ratio(q, -k, x)),
    };
    let at = |x: f64| {
        let normal = (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
        let (p, q) = log_ratios(x);
        (normal * p.exp(), normal * q.exp())
    };
    let width = 1.0 / f64::from(PER_UNIT);
    (-8 * PER_UNIT..9 * PER_UNIT)
        .map(|i| {
            let (low, high) = (f64::from(i) * width, f64::from(i + 1) * width);
            let mut sums = (0.0, 0.0);
            for (share, weight) in [(0.0, 1.0), (0.25, 4.0), (0.5, 2.0), (0.75, 4.0), (1.0, 1.0)] {
                let (p, q) = at(low + share * width);
                sums = (sums.0 + weight * p, sums.1 + weight * q);
            }
            let (p, q) = log_ratios(high);
            (sums.0 * width / 12.0, sums.1 * width / 12.0, p - q)
        })
        .collect()
}

/// Bounds the curve of two releases on both sides. Events of whole cells are a subset of all events and give a lower bound.
/// Replacing each cell's loss by its maximum gives an upper bound.
fn two_releases(cells: &[(f64, f64, f64)], epsilon: f64) -> (f64, f64) {
    let (mut below, mut above) = (0.0, 0.0);
    for (p, q, loss) in cells {
        for (p2, q2, loss2) in cells {
            below += (p * p2 - epsilon.exp() * q * q2).max(0.0);
            above += p * p2 * -(epsilon - loss - loss2).min(0.0).exp_m1();
        }
    }
    (below, above)
}

/// Returns whether a grid bounds two releases from above at every epsilon.
fn bounds_two(grid: &LossGrid, order: Order, q: f64, k: f64) -> bool {
    let cells = cells(order, q, k);
    let pair = DominatingPair::new(order, q, k);
    // The errors of Simpson's rule and of the range outside the cells are smaller.
    epsilons(pair, 2).iter().all(|epsilon| grid.delta(*epsilon) >= two_releases(&cells, *epsilon).0 - 1e-13)
}

#[test]
fn one_release_matches_high_precision() {
    // 40-digit quadrature.
    let rows = [
        (Order::Replacement, 0.01, 0.5, 0.0, 3.829_249_225_480_262e-3),
        (Order::Replacement, 0.01, 0.5, 0.01, 8.396_443_123_467_511e-4),
        (Order::Replacement, 0.01, 0.5, 0.1, 4.021_691_464_996_862e-9),
        (Order::Replacement, 0.001, 0.1, 0.0, 7.965_567_455_405_796e-5),
        (Order::Replacement, 0.001, 0.1, 0.001, 2.872_565_234_703_390_7e-11),
        (Order::Replacement, 0.1, 1.5, 1.0, 6.361_687_718_379_9e-3),
        (Order::Replacement, 0.1, 1.5, -0.5, 0.404_181_202_277_192_7),
        (Order::Removal, 0.01, 1.0, 0.0, 3.829_249_225_480_262e-3),
        (Order::Removal, 0.01, 1.0, 0.1, 7.290_037_695_761_227e-5),
        (Order::Removal, 0.01, 1.0, -0.005, 5.945_861_440_210_206e-3),
        (Order::Removal, 0.5, 1.25, 1.0, 6.590_701_400_356_663e-2),
        (Order::Addition, 0.01, 1.0, 0.005, 9.631_443_353_053_048e-4),
        (Order::Addition, 0.01, 1.0, -0.1, 9.522_854_495_290_06e-2),
        (Order::Addition, 0.5, 1.25, 0.5, 2.166_609_266_422_94e-2),
        (Order::Addition, 0.5, 1.25, -1.0, 0.656_366_394_309_468_2),
    ];
    for (order, q, k, epsilon, expected) in rows {
        let got = DominatingPair::new(order, q, k).delta(epsilon);
        assert!((got / expected - 1.0).abs() < 1e-9, "{order:?} {q} {k} {epsilon}: {got:e} {expected:e}");
    }
}

#[test]
fn a_grid_of_one_release_is_above_its_closed_form_and_near_it() {
    for order in ORDERS {
        for (q, k) in [(0.01, 0.5), (0.001, 0.1), (0.25, 1.0), (1.0 / 1024.0, 1.5), (1.0 / 1_048_576.0, 1.5), (1e-3, 1e-4)] {
            let pair = DominatingPair::new(order, q, k);
            let grid = connect_the_dots(pair, 1, TAIL);
            for epsilon in epsilons(pair, 1) {
                let (above, exact) = (grid.delta(epsilon), pair.delta(epsilon));
                assert!(above >= exact, "{order:?} {q} {k} {epsilon}: {above:e} {exact:e}");
                // A chord is at most a sixty-fourth of an sd long; where losses are large the grid is coarser.
                let coarse = if k > 1.0 { 0.25 } else { 2e-4 };
                assert!(above - exact <= coarse * pair.delta(0.0), "{order:?} {q} {k} {epsilon}: {above:e} {exact:e}");
            }
        }
    }
}

#[test]
fn an_edge_never_reaches_beyond_its_loss() {
    for order in ORDERS {
        for (q, k) in [(0.01, 0.5), (0.9, 1.5), (1.0 / 1_048_576.0, 1.5), (0.5, 1e-3)] {
            let pair = DominatingPair::new(order, q, k);
            for i in -400..=400 {
                let loss = f64::from(i) * pair.loss_sd() / 50.0;
                let edge = pair.edge(loss);
                if edge.x.is_finite() && edge.x.abs() < 12.0 {
                    // The computed loss has an error of its own, within the margin.
                    let reached = pair.loss(edge.x);
                    let rounding = 1e-15 * (1.0 + k * edge.x.abs());
                    assert!(
                        reached <= loss + rounding && reached >= loss - edge.shortfall - rounding,
                        "{order:?} {q} {k} {loss:e}"
                    );
                }
            }
        }
    }
}

#[test]
fn two_releases_are_bounded_as_by_enumeration() {
    for order in ORDERS {
        for (q, k) in [(0.0625, 0.5), (0.25, 1.0), (0.01, 1.25)] {
            let pair = DominatingPair::new(order, q, k);
            let grid = connect_the_dots(pair, 2, TAIL).composed(2, TAIL);
            let cells = cells(order, q, k);
            for epsilon in epsilons(pair, 2) {
                let ((below, above), got) = (two_releases(&cells, epsilon), grid.delta(epsilon));
                assert!(below <= above && got >= below - 1e-13, "{order:?} {q} {k} {epsilon}: {below:e} {got:e} {above:e}");
                // It is not above by more than the gap between the two bounds, or the effect of chords.
                assert!(
                    got <= above.max(below + 1e-3 * grid.delta(0.0)),
                    "{order:?} {q} {k} {epsilon}: {below:e} {got:e} {above:e}"
                );
            }
        }
    }
}

#[test]
fn compositions_of_any_number_agree_however_they_are_made() {
    let pair = DominatingPair::new(Order::Removal, 0.125, 0.75);
    let one = connect_the_dots(pair, 7, TAIL);
    let mut plain = one.clone();
    for count in 2..=7 {
        plain = plain.convolved(&one);
        let grid = one.composed(count, TAIL);
        for epsilon in epsilons(pair, count) {
            let (by_doubling, by_one) = (grid.delta(epsilon), plain.delta(epsilon));
            assert!(
                by_doubling >= by_one * (1.0 - 1e-10) && by_doubling <= by_one + 1e-3 * plain.delta(0.0),
                "{count} {epsilon}"
            );
        }
    }
    assert_eq!(one.composed(1, TAIL), one);
}

#[test]
fn epsilon_and_delta_invert_each_other_on_the_safe_side() {
    let pair = DominatingPair::new(Order::Replacement, 0.0625, 0.5);
    let grid = connect_the_dots(pair, 64, TAIL).composed(64, TAIL);
    for delta in [0.1, 1e-2, 1e-4, 1e-6, 1e-9] {
        let epsilon = grid.epsilon(delta).unwrap();
        assert!(
            grid.delta(epsilon) <= delta * (1.0 + 1e-9) && grid.delta(epsilon * (1.0 - 1e-9)) >= delta * (1.0 - 1e-7),
            "{delta}"
        );
    }
    assert_eq!(grid.epsilon(0.999), Some(0.0));
    assert_eq!(grid.epsilon(1e-30), None);
}

#[test]
fn rounding_and_narrowing_only_raise_a_curve() {
    let pair = DominatingPair::new(Order::Removal, 0.0625, 1.0);
    let grid = connect_the_dots(pair, 4, TAIL).composed(4, TAIL);
    for (what, changed) in [
        ("merged", grid.merged(8)),
        ("narrowed", grid.clone().narrowed(1e-3)),
        ("coarsened", LossGrid { step: grid.step, ..grid.clone() }.coarsened()),
    ] {
        for epsilon in epsilons(pair, 4) {
            assert!(changed.delta(epsilon) >= grid.delta(epsilon) * (1.0 - 1e-11), "{what} {epsilon}");
        }
        assert!(changed.total() + changed.infinite >= grid.total() + grid.infinite - 1e-11, "{what}");
    }
}

#[test]
fn rounding_to_lower_losses_is_detected() {
    let (q, k) = (0.25, 1.0);
    let pair = DominatingPair::new(Order::Replacement, q, k);
    let one = connect_the_dots(pair, 2, TAIL);
    assert!(bounds_two(&one.composed(2, TAIL), Order::Replacement, q, k));
    // All of a cell's mass at its lower end.
    let mut low = one.clone();
    for (i, mass) in low.masses.iter_mut().enumerate() {
        let loss = |i: i64| pair.edge(i as f64 * one.step).x;
        *mass = pair.first_mass(loss(one.first + i as i64), loss(one.first + i as i64 + 1)).value;
    }
    assert!(!bounds_two(&low.composed(2, TAIL), Order::Replacement, q, k));
}

#[test]
fn a_dropped_tail_is_detected() {
    let (q, k) = (0.25, 1.0);
    let one = connect_the_dots(DominatingPair::new(Order::Removal, q, k), 2, TAIL).narrowed(1e-6);
    assert!(bounds_two(&one.composed(2, TAIL), Order::Removal, q, k));
    let dropped = LossGrid { infinite: 0.0, ..one };
    assert!(!bounds_two(&dropped.composed(2, TAIL), Order::Removal, q, k));
}

#[test]
fn one_order_for_both_is_detected() {
    let (q, k) = (0.25, 1.0);
    let two = |order| connect_the_dots(DominatingPair::new(order, q, k), 2, TAIL).composed(2, TAIL);
    assert!(!bounds_two(&two(Order::Addition), Order::Removal, q, k));
    assert!(!bounds_two(&two(Order::Removal), Order::Addition, q, k));
    // The pair of add-remove at k is not replacement's.
    assert!(!bounds_two(&two(Order::Removal), Order::Replacement, q, k));
}
