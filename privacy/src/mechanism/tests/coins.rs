use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::*;

const THROWS: u32 = 1_000_000;

/// Returns true if the relative frequency in `THROWS` throws is within 5 standard errors of its probability.
fn near(p: f64, mut throw: impl FnMut() -> bool) -> bool {
    let share = f64::from((0..THROWS).map(|_| u32::from(throw())).sum::<u32>()) / f64::from(THROWS);
    (share - p).abs() <= 5.0 * (p * (1.0 - p) / f64::from(THROWS)).sqrt()
}

/// Exponents of every size, over denominators of one word and of two. A correct coin exceeds its bounds once in 1.7 million such
/// tests. One whose exponent is off by a hundredth exceeds them at exponents near 1 with probability 0.99 (the standard error is
/// 0.0005).
#[test]
fn coins_have_the_probability_of_their_exponent() {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    for one in [1, 7, 1 << 32, (1 << 50) - 27, 3 << 98, 1 << 101] {
        for (whole, part) in [(0, 0.0), (0, 1.0), (0, 0.37), (1, 0.5), (2, 0.99)] {
            let rest = (part * one as f64) as u128;
            let p = (-(whole as f64 + rest as f64 / one as f64)).exp();
            assert!(near(p, || bernoulli_exp(whole, (rest, one), &mut rng)), "{whole} + {rest} / {one}");
        }
        assert!(!bernoulli_exp(10_000, (0, one), &mut rng));
    }
    // The smallest possible fraction.
    assert!((0..1_000).all(|_| bernoulli_exp(0, (1, 1 << 101), &mut rng)));
}

/// A coin of `1 - x` instead of `exp(-x)`, and one that stops at the third round: the faults that the bounds above exclude.
#[test]
fn wrong_coins_are_detected() {
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    let (x, one): (u128, u128) = (1 << 31, 1 << 32);
    let p = (-0.5_f64).exp();
    assert!(!near(p, || uniform_below(one, &mut rng) >= x));
    let three = |rng: &mut ChaCha20Rng| (1..=3).find(|k| uniform_below(k * one, rng) >= x).unwrap_or(3) % 2 == 1;
    assert!(!near(p, || three(&mut rng)));
}

#[test]
fn numbers_below_are_even() {
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    for n in [1, 2, 3, 4096, (1 << 33) + 1, u64::MAX.into(), 1 << 64, (1 << 64) + 1, 5 << 98] {
        assert!((0..1_000).all(|_| uniform_below(n, &mut rng) < n));
    }
    for third in 0..3 {
        assert!(near(1.0 / 3.0, || uniform_below(3, &mut rng) == third));
    }
    // Here 2^64 exceeds `n` by a third of `n`. Scaling without rejection would make every second number a multiple of 3. At the
    // last `n` below, a remainder of 2^128 would be below `n / 3` half of the time.
    let n = 3 << 62;
    assert!(near(1.0 / 3.0, || uniform_below(n, &mut rng) % 3 == 0));
    for n in [3 << 62, 3 << 64, 3 << 126] {
        assert!(near(1.0 / 3.0, || uniform_below(n, &mut rng) < n / 3), "{n}");
    }
    // Every bit of a long number is 0 as often as 1.
    let mut ones = [0_u32; 101];
    for _ in 0..THROWS {
        let number = uniform_below(1 << 101, &mut rng);
        ones.iter_mut().enumerate().for_each(|(bit, ones)| *ones += u32::from(number >> bit & 1 == 1));
    }
    let error = 0.5 * f64::from(THROWS).sqrt();
    assert!(ones.iter().all(|ones| (f64::from(*ones) - 0.5 * f64::from(THROWS)).abs() < 5.5 * error), "{ones:?}");
}
