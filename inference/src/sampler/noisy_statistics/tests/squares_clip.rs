//! Tests of the clips of the sums of squares.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::sampler::noisy_statistics::weighted::progress::tests::facts;

/// 10,000 records: a sum at clip `c` with everything has noise of `.007 unit c²` posterior sds.
fn search(unit: f64) -> (Facts, Progress) {
    let facts = Facts { unit, ..facts() };
    let progress = Progress::new(&facts, 0.0);
    (facts, progress)
}

/// A sum without a clip is the only one if its noise is small: it withholds nothing, and its noise does not depend on the tails.
#[test]
fn one_sum_without_a_clip_where_its_noise_is_small() {
    let (facts, progress) = search(1.0);
    assert_eq!(progress.next_squares(&facts, &[], (9.0, 1.0)), (9.0, 1.0));
    let (noise, withheld) = progress.error_of_squares(&facts, 9.0, 1.0);
    assert!((noise - 81.0 / 20_000.0_f64.sqrt()).abs() < 1e-12 && withheld == 0.0);
    let whole = Squares { clip: 9.0, mean: 1.0, sd: 0.01, whole: true };
    assert_eq!(Squares::bounds(&[whole]), Some([whole; 2]));
}

/// Elsewhere two sums see the tails, and choose the clip of the third: the least one for light tails, none for heavy ones.
#[test]
fn the_tails_choose_the_last_clip() {
    let (facts, progress) = search(15.0);
    let (near, far) = (2.0, 4.0);
    assert_eq!(progress.next_squares(&facts, &[], (9.0, 1.0)), (near, 0.06));
    let sum = |clip: f64, mean: f64| Squares { clip, mean, sd: 0.001, whole: false };
    let first = sum(near, 0.92);
    let (clip, part) = progress.next_squares(&facts, &[first], (9.0, 0.94));
    assert!(clip == far && (part * 0.94 - 0.14).abs() < 1e-12);
    let last = |mean: f64| progress.next_squares(&facts, &[first, sum(far, mean)], (9.0, 0.8));
    assert_eq!(last(1.0), (far, 1.0), "normal tails");
    assert_eq!(last(1.5), (9.0, 1.0), "a third of the squares lies beyond");
    // Between them lies a clip that withholds less.
    let far_out = |mean: f64| progress.next_squares(&facts, &[first, sum(far, mean)], (40.0, 0.8)).0;
    assert!(far_out(1.0) == far && far_out(1.5) == 2.0 * far);
}

/// A second sum at the same clip is as good as more budget; one at another clip shows what lies beyond it.
#[test]
fn sums_at_one_clip_are_pooled() {
    let sum = |clip: f64, mean: f64, sd: f64| Squares { clip, mean, sd, whole: false };
    let (near, middle) = (sum(2.0, 0.9, 0.02), sum(4.0, 1.0, 0.04));
    assert_eq!(Squares::bounds(&[near, middle]), None);
    let [lower, upper] = Squares::bounds(&[near, middle, sum(4.0, 1.1, 0.02)]).unwrap();
    assert!(lower == near && (upper.mean - 1.08).abs() < 1e-12 && (upper.sd - 0.04 / 5.0_f64.sqrt()).abs() < 1e-12);
    assert_eq!(Squares::bounds(&[near, middle, sum(8.0, 1.1, 0.02)]), Some([middle, sum(8.0, 1.1, 0.02)]));
    let whole = Squares { whole: true, ..sum(9.0, 1.2, 0.1) };
    assert_eq!(Squares::bounds(&[near, middle, whole]), Some([whole; 2]));
}
