//! Tests of the residuals' sd.

use super::*;

fn squares(clip: f64, mean: f64, sd: f64) -> Squares {
    Squares { clip, mean, sd, whole: false }
}

#[test]
fn the_clipped_square_of_a_normal_law() {
    assert!((clipped_square(40.0) - 1.0).abs() < 1e-12 && clipped_square(0.0).abs() < 1e-12);
    // 1 - 2 (c phi(c) - (c² - 1)(1 - Phi(c))) at 2.
    assert!((clipped_square(2.0) - 0.920_537).abs() < 1e-5, "{}", clipped_square(2.0));
}

#[test]
fn normal_residuals_have_their_sd_and_its_width() {
    let of = |variance: f64, sds: [f64; 2], added: f64| {
        let mean = |c: f64| variance * clipped_square(c / variance.sqrt());
        let [near, far] = [(2.0, sds[0]), (4.0, sds[1])].map(|(clip, sd)| squares(clip, mean(clip), sd));
        LogSigma::new([&near, &far], (added, 1000.0, 4.0), f64::INFINITY)
    };
    let found = of(1.0, [0.0; 2], 0.0);
    assert!(found.mean.abs() < 1e-3 && (found.variance - 0.0005).abs() < 1e-6, "{found:?}");
    // Where the located sd is 10 % off.
    assert!((libm::exp(of(1.21, [0.0; 2], 0.0).mean) - 1.1).abs() < 0.02);
    assert!(of(1.0, [0.01, 0.1], 0.0).variance > 0.0005 + 0.05 * 0.05);
    let less = of(1.0, [0.0; 2], 0.19);
    assert!((libm::exp(less.mean) - 0.9).abs() < 2e-3 && less.variance > found.variance);
    assert_eq!(found.moved(1.5).mean, found.mean + 1.5);
}

/// The box of sigma may keep the clip at one and a half sds.
#[test]
fn a_small_clip_is_seen_through() {
    assert!((unclipped(&squares(1.65, 1.21 * clipped_square(1.5), 0.0)) - 1.21).abs() < 1e-6);
}

/// What a heavy tail withholds lies within two sds of the allowance.
#[test]
fn what_the_clip_withholds_is_allowed_for() {
    // A t law with 3 degrees of freedom: variance 3, of which a clip c leaves 3 - 6 * 3^1.5 / pi * ... ; by numeric integration.
    let density = |x: f64| 2.0 * 3.0_f64.sqrt() / (std::f64::consts::PI * (1.0 + x * x / 3.0) * (1.0 + x * x / 3.0)) / 3.0;
    let mean =
        |c: f64| (0..200_000).map(|k| (k as f64 + 0.5) * 0.01).map(|x| 0.02 * density(x) * (x * x).min(c * c)).sum::<f64>();
    let found = LogSigma::new([&squares(4.0, mean(4.0), 0.0), &squares(8.0, mean(8.0), 0.0)], (0.0, 1e5, 4.0), f64::INFINITY);
    let truth = 0.5 * libm::log(mean(2000.0));
    assert!((found.mean - truth).abs() < 2.0 * found.variance.sqrt(), "{} {truth} {}", found.mean, found.variance.sqrt());
    assert!(found.variance.sqrt() > 0.03);
    // Where a table shows that nothing lies beyond, nothing is allowed for.
    let bounded = LogSigma::new([&squares(4.0, mean(4.0), 0.0), &squares(8.0, mean(8.0), 0.0)], (0.0, 1e5, 4.0), 1e-3);
    assert!(bounded.variance < 6e-6 && bounded.mean < found.mean, "{bounded:?}");
}

/// If no residual is clipped, the mean square is exact under any law, and no allowance is added.
#[test]
fn nothing_is_allowed_for_where_no_residual_is_clipped() {
    let far = Squares { whole: true, ..squares(3.0, 1.7, 0.01) };
    let found = LogSigma::new([&squares(1.5, 1.2, 0.01), &far], (0.0, 1000.0, 4.0), f64::INFINITY);
    assert!((found.mean - 0.5 * libm::log(1.7)).abs() < 1e-12, "{found:?}");
    assert!((found.variance - 0.0005 - (0.005_f64 / 1.7).powi(2)).abs() < 1e-12, "{found:?}");
}
