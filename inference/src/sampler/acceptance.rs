//! The acceptance of the penalty method: a noisy log ratio minus half of its noise's variance (Ceperley & Dewing 1999).

/// Returns the log acceptance ratio of one proposal (Algorithm 2, step 2): accept when `log u` is below it.
///
/// `log_ratio` is the noisy log likelihood ratio over all parties, `total_variance` the sum of their noise variances in squared
/// log-likelihood units, `log_prior_ratio` the log prior (and proposal) ratio.
#[must_use]
pub fn log_alpha(log_ratio: f64, total_variance: f64, log_prior_ratio: f64) -> f64 {
    log_ratio - 0.5 * total_variance + log_prior_ratio
}

/// Returns the probability that a proposal of true log ratio `log_ratio` is accepted under noise of standard deviation `sigma`
/// (Yıldırım, Proposition 1): `Phi(r/sigma - sigma/2) + e^r Phi(-r/sigma - sigma/2)`. Without noise it is `min(1, e^r)`.
// Settings of chains follow from it: stored jobs keep the bits with which they were planned.
#[allow(clippy::disallowed_methods)]
#[must_use]
pub fn expected_acceptance(log_ratio: f64, sigma: f64) -> f64 {
    if sigma <= 0.0 {
        return log_ratio.min(0.0).exp();
    }
    let standard = log_ratio / sigma;
    let uphill = normal_cdf(standard - 0.5 * sigma);
    // Computed in log space, because e^r may overflow where Phi underflows; the product never exceeds 1.
    let lower = normal_cdf(-standard - 0.5 * sigma);
    let downhill = if lower > 0.0 { (log_ratio + lower.ln()).exp() } else { 0.0 };
    (uphill + downhill).min(1.0)
}

fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}
