//! Coins of exact probability, thrown by comparing integers without floats (Canonne, Kamath & Steinke, *The Discrete Gaussian for
//! Differential Privacy*, 2020, Algorithm 1).

use rand::Rng;

/// Returns true with probability `exp(-(whole + rest / one))`. `rest` is at most `one`; `one` is at least 1 and below 2^120.
pub(super) fn bernoulli_exp<R: Rng + ?Sized>(whole: u128, (rest, one): (u128, u128), rng: &mut R) -> bool {
    // The probability exp(-1) needs no denominator above 1.
    (0..whole).all(|_| bernoulli_exp_unit(1, 1, rng)) && bernoulli_exp_unit(rest, one, rng)
}

/// Returns true with probability `exp(-x / one)`. `x` is at most `one`; `one` is at least 1 and below 2^120.
pub(super) fn bernoulli_exp_unit<R: Rng + ?Sized>(x: u128, one: u128, rng: &mut R) -> bool {
    // Throw coins of probability x / (one k) for k = 1, 2, 3, ... until the first failure. The number of throws is odd with
    // probability exp(-x / one). It stays below 2^8 in practice: the probability of reaching k is below 1/k!.
    let mut k = 1;
    while uniform_below(k * one, rng) < x {
        k += 1;
    }
    k % 2 == 1
}

/// Returns a uniform integer below `n`. `n` is at least 1.
pub(super) fn uniform_below<R: Rng + ?Sized>(n: u128, rng: &mut R) -> u128 {
    match u64::try_from(n) {
        Ok(n) => below_short(n, rng).into(),
        Err(_) => below_long(n, rng),
    }
}

/// Returns a uniform integer below `n` (Lemire, *Fast Random Integer Generation in an Interval*, 2019).
fn below_short<R: Rng + ?Sized>(n: u64, rng: &mut R) -> u64 {
    loop {
        let wide = u128::from(rng.next_u64()) * u128::from(n);
        let low = wide as u64;
        // Rejects 2^64 mod n low values, which would make the result uneven.
        if low >= n || low >= n.wrapping_neg() % n {
            return (wide >> 64) as u64;
        }
    }
}

/// Returns a uniform integer below `n`: draws as many bits as `n` has until they form a smaller number, at most twice on average.
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
