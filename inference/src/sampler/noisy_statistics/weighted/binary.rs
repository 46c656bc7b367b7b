//! The typical record of a binary outcome, and the limits of its slope and kappa.

/// Bounds of the typical probability of the rarer outcome.
const LEAST: f64 = 0.002;
const EVEN: f64 = 0.5;

/// Returns kappa of a record whose rarer outcome has this probability: `min(1, c sqrt(p / (1 - p)))`.
pub(super) fn kappa(clip: f64, probability: f64) -> f64 {
    (clip * (probability / (1.0 - probability)).sqrt()).min(1.0)
}

/// Returns the root of the Fisher information of a record with this probability.
pub(super) fn root(probability: f64) -> f64 {
    (probability * (1.0 - probability)).sqrt()
}

/// Returns the largest magnitude over the clip that a record's residual times the root of its information may have: the maximum of
/// `min(1 / c, s) / (1 + s²)` over `s = exp(-|eta| / 2)`.
pub(super) fn most_slope(clip: f64) -> f64 {
    let clip = clip.max(1.0);
    clip / (1.0 + clip * clip)
}

/// Returns the probability of the rarer outcome of a typical record, from the records' mean kappa times their information.
pub(super) fn typical_probability(mean: f64, clip: f64) -> f64 {
    let of = |p: f64| kappa(clip, p) * p * (1.0 - p);
    let (mut low, mut high) = (LEAST, EVEN);
    // Of a mean that is not a number, the least.
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if of(middle) < mean { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
#[path = "../tests/weighted_binary.rs"]
mod tests;
