//! Tests of the settings of the last stage.

use super::*;

#[test]
fn the_wider_setting_serves_while_its_noise_is_small() {
    assert_eq!(Setting::choose(0.01, 5, None), WIDE);
    assert_eq!(Setting::choose(1.0, 5, None), NARROW);
    assert_eq!([0.01, 1.0].map(|unit| Setting::choose(unit, 5, Some(0.3))), [WIDE, NARROW_BINARY]);
    // A rare outcome has little information within the clip.
    assert!(WIDE.noise(0.3, 5, Some(0.01)) > 2.0 * WIDE.noise(0.3, 5, Some(0.3)));
    assert!(WIDE.noise(0.3, 5, None) > NARROW.noise(0.3, 5, None));
}

/// With every record at the mean length and no clip, the noise is `unit sqrt(radius) / sqrt(.78)` times the clip; the law of lengths
/// lowers it by less than a fifth.
#[test]
fn the_noise_follows_from_the_law_of_lengths() {
    let many = NARROW.noise(1.0, 400, None);
    let whole = (1.5_f64 / OF_SCORE).sqrt() * 2.0 / libm::erf(2.0_f64.sqrt());
    assert!((many / whole - 1.0).abs() < 0.01, "{many} {whole}");
    let few = NARROW.noise(1.0, 2, None);
    assert!(few > whole && few < 1.3 * whole, "{few} {whole}");
    assert!((mean_over_lengths(3, |q| q) - 1.0).abs() < 2e-3);
}

#[test]
fn lengths_are_summarised() {
    // Half of the records below the mean length, the others between 5 and 8 times that: their weight is sqrt(3 / 6.2).
    let mut counts = vec![0.0; 9];
    (counts[0], counts[5]) = (500.0, 500.0);
    let lengths = Lengths::new(&counts, 10.0, 1000.0);
    let (share, mean, shift) = lengths.summary(WIDE, 1000.0, None);
    let weight = (3.0_f64 / 6.2).sqrt();
    assert_eq!(share, 0.5);
    assert!((mean - 0.5 * (1.0 + weight)).abs() < 1e-12);
    // Relative to the mean length of 3.4.
    assert!((shift - 0.035 * (1000.0 * 0.5 * (1.0 - weight) * (1.0 - weight) * 6.2_f64 / 3.4).sqrt()).abs() < 1e-12);
    assert_eq!(Lengths::edges(WIDE)[3], 1.0);
}

/// Half of the records with a kappa of 1, half with one of .5: the squared coefficient of variation is 1/9.
#[test]
fn a_clip_that_weights_records_unequally_shifts_an_answer() {
    let mut counts = vec![0.0; 9];
    counts[0] = 1000.0;
    let lengths = Lengths::new(&counts, 10.0, 1000.0);
    let whole = 1000.0 * 0.6 / 3.0;
    let shift = |once: f64, twice: f64| lengths.summary(WIDE, 1000.0, Some((once * whole, twice * whole))).2;
    assert!((shift(0.75, 0.5 * (1.0 + 0.25)) - 0.035 * (1000.0_f64 / 9.0).sqrt()).abs() < 1e-12);
    // Of equal kappas, and of noise.
    assert_eq!((shift(0.5, 0.25), shift(0.5, 0.1)), (0.0, 0.0));
}

#[test]
fn a_shift_is_guessed_from_the_number_of_records() {
    assert!((WIDE.guessed_shift(30_000.0, false) - 0.5).abs() < 1e-12);
    let (numeric, binary) = (NARROW_BINARY.guessed_shift(9000.0, false), NARROW_BINARY.guessed_shift(9000.0, true));
    assert!((binary * binary - numeric * numeric - 0.000_025 * 9000.0 / (2.0 * 2.56)).abs() < 1e-12);
}

/// A count whose predictors are unusual is further from a plain fit where its law has a dispersion.
#[test]
fn a_shift_of_counts_is_guessed_from_the_number_of_records() {
    let guess = |has_dispersion| NARROW_COUNTS.guessed_shift_of_count(6000.0, has_dispersion);
    assert!((guess(false) - 0.632_456).abs() < 1e-6 && (guess(true) - 2.0 * guess(false)).abs() < 1e-12);
}

/// The narrow clip has the least sum of squared noise and bias, but its answer would not be adequate.
#[test]
fn a_clip_that_moves_a_count_too_far_is_the_last_choice() {
    let chosen = |biases: [f64; 4]| {
        let bias = |clip: f64| biases[[3.0, 6.0, 12.0, 24.0].iter().position(|of| *of == clip).unwrap_or(0)];
        Setting::choose_of_count(0.5, 4, bias).clip
    };
    assert_eq!(chosen([0.0; 4]), 3.0);
    assert_eq!(chosen([1.1, 0.9, 0.0, 0.0]), 6.0);
    assert_eq!(chosen([1.1, 1.05, 0.5, 0.0]), 12.0);
    // None is within the limit.
    assert_eq!(chosen([1.3, 1.2, 1.1, 1.05]), 3.0);
}
