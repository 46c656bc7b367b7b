//! Coins of exact probability: integers are compared, and no float is in it (Canonne, Kamath & Steinke, *The Discrete Gaussian for
//! Differential Privacy*, 2020, Algorithm 1).

use rand::Rng;

/// True with probability `exp(-(whole + rest / one))`, where `rest` is at most `one`, and `one` at least 1 and below 2^120.
pub(super) fn falls<R: Rng + ?Sized>(whole: u128, (rest, one): (u128, u128), rng: &mut R) -> bool {
    // The coin of probability exp(-1) needs no finer numbers than 1.
    (0..whole).all(|_| falls_within_one(1, 1, rng)) && falls_within_one(rest, one, rng)
}

/// True with probability `exp(-x / one)`, of `x` and `one` as above.
pub(super) fn falls_within_one<R: Rng + ?Sized>(x: u128, one: u128, rng: &mut R) -> bool {
    // The number of coins of probability x / (one k), k = 1, 2, 3, ..., until the first that fails is odd with probability exp(-x / one). They come
    // to 2^8 in no run: the chance of k is below 1/k!.
    let mut k = 1;
    while below(k * one, rng) < x {
        k += 1;
    }
    k % 2 == 1
}

/// A number below `n`, each with the same probability. `n` is at least 1.
pub(super) fn below<R: Rng + ?Sized>(n: u128, rng: &mut R) -> u128 {
    match u64::try_from(n) {
        Ok(n) => below_short(n, rng).into(),
        Err(_) => below_long(n, rng),
    }
}

/// Lemire, *Fast Random Integer Generation in an Interval* (2019).
fn below_short<R: Rng + ?Sized>(n: u64, rng: &mut R) -> u64 {
    loop {
        let wide = u128::from(rng.next_u64()) * u128::from(n);
        let low = wide as u64;
        // 2^64 mod n numbers at the low end are one too many.
        if low >= n || low >= n.wrapping_neg() % n {
            return (wide >> 64) as u64;
        }
    }
}

/// As many bits as `n` has, again until they make a number below it: every other time at most.
fn below_long<R: Rng + ?Sized>(n: u128, rng: &mut R) -> u128 {
    loop {
        let bits = (u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())) >> n.leading_zeros();
        if bits < n {
            return bits;
        }
    }
}

#[cfg(test)]
#[path = "tests/coins.rs"]
mod tests;
