//! Monte Carlo standard errors of the sd and of quantiles.

use statrs::function::beta::beta_reg;

use super::chains::is_usable;
use super::ess::ess;
use super::moments::mean;

/// Monte Carlo standard error of the standard deviation, by the delta method from the variance of squared deviations.
/// `pooled_mean` is the mean of all draws.
///
/// Kenney & Keeping (1951), p. 141, as implemented in ArviZ 0.23: `Var(sd) = Var(sd^2) / (4 sd^2)`, with the effective sample
/// size of the squared deviations.
pub(super) fn sd_error(chains: &[&[f64]], pooled_mean: f64) -> f64 {
    if !is_usable(chains) {
        return f64::NAN;
    }
    let squared: Vec<Vec<f64>> = chains.iter().map(|c| c.iter().map(|x| (x - pooled_mean).powi(2)).collect()).collect();
    let slices: Vec<&[f64]> = squared.iter().map(Vec::as_slice).collect();
    let all: Vec<f64> = squared.concat();
    let variance = mean(&all);
    let fourth = mean(&all.iter().map(|x| x * x).collect::<Vec<_>>());
    let variance_of_variance = (fourth - variance * variance) / ess(&slices);
    (variance_of_variance / variance / 4.0).sqrt()
}

/// Monte Carlo standard error of a quantile of `sorted` draws whose indicator has effective sample size `ess`.
///
/// It is half the distance between two order statistics: those at the 16% and 84% quantiles of the Beta distribution of the
/// quantile's probability (Vehtari et al. 2021, section 4.4).
pub(super) fn quantile_error(sorted: &[f64], probability: f64, ess: f64) -> f64 {
    if !ess.is_finite() || sorted.is_empty() {
        return f64::NAN;
    }
    let (a, b) = (ess * probability + 1.0, ess * (1.0 - probability) + 1.0);
    let count = sorted.len() as f64;
    let position = |p: f64| beta_quantile(p, a, b) * count - 1.0;
    // Normal probabilities at one standard deviation on either side, to the digits that ArviZ uses.
    let below = position(0.158_655_3).max(0.0).floor() as usize;
    let above = position(0.841_344_7).min(count - 1.0).ceil().max(0.0) as usize;
    (sorted[above] - sorted[below.min(above)]) / 2.0
}

/// Returns a quantile of a Beta distribution by bisection of the regularised incomplete beta function.
fn beta_quantile(probability: f64, a: f64, b: f64) -> f64 {
    let (mut under, mut over) = (0.0_f64, 1.0_f64);
    loop {
        let middle = 0.5 * (under + over);
        if middle <= under || middle >= over {
            return middle;
        }
        if beta_reg(a, b, middle) < probability { under = middle } else { over = middle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beta_quantiles() {
        // A uniform law, a symmetric law, and x^3 = p.
        assert!((beta_quantile(0.3, 1.0, 1.0) - 0.3).abs() < 1e-14);
        assert!((beta_quantile(0.5, 400.0, 400.0) - 0.5).abs() < 1e-12);
        assert!((beta_quantile(0.2, 3.0, 1.0) - 0.2_f64.cbrt()).abs() < 1e-12);
    }
}
