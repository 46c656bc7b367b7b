//! Monte Carlo standard errors of the sd and of quantiles.

use statrs::function::beta::beta_reg;

use super::chains::usable;
use super::ess::ess;
use super::moments::mean;

/// Of the standard deviation, by the delta method from the variance of squared deviations; `mean` is
/// that of all draws.
///
/// Kenney & Keeping (1951), p. 141, as ArviZ 0.23 has it: `Var(sd) = Var(sd^2) / (4 sd^2)`, with the
/// effective sample size of the squared deviations.
pub(super) fn of_sd(chains: &[&[f64]], mean_of_all: f64) -> f64 {
    if !usable(chains) {
        return f64::NAN;
    }
    let squared: Vec<Vec<f64>> = chains.iter().map(|c| c.iter().map(|x| (x - mean_of_all).powi(2)).collect()).collect();
    let slices: Vec<&[f64]> = squared.iter().map(Vec::as_slice).collect();
    let all: Vec<f64> = squared.concat();
    let variance = mean(&all);
    let fourth = mean(&all.iter().map(|x| x * x).collect::<Vec<_>>());
    let variance_of_variance = (fourth - variance * variance) / ess(&slices);
    (variance_of_variance / variance / 4.0).sqrt()
}

/// Of a quantile of `sorted` draws whose indicator has effective sample size `ess`: half the distance
/// between the order statistics at the 16% and 84% quantiles of the Beta distribution of the quantile's
/// probability (Vehtari et al. 2021, section 4.4).
pub(super) fn of_quantile(sorted: &[f64], probability: f64, ess: f64) -> f64 {
    if !ess.is_finite() || sorted.is_empty() {
        return f64::NAN;
    }
    let (a, b) = (ess * probability + 1.0, ess * (1.0 - probability) + 1.0);
    let count = sorted.len() as f64;
    let position = |p: f64| beta_quantile(p, a, b) * count - 1.0;
    // Normal probabilities of one standard deviation to either side, to the digits that ArviZ takes.
    let below = position(0.158_655_3).max(0.0).floor() as usize;
    let above = position(0.841_344_7).min(count - 1.0).ceil().max(0.0) as usize;
    (sorted[above] - sorted[below.min(above)]) / 2.0
}

/// The quantile of a Beta distribution, by bisection of the regularised incomplete beta function.
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
        // Uniform; symmetric; and x^3 = p.
        assert!((beta_quantile(0.3, 1.0, 1.0) - 0.3).abs() < 1e-14);
        assert!((beta_quantile(0.5, 400.0, 400.0) - 0.5).abs() < 1e-12);
        assert!((beta_quantile(0.2, 3.0, 1.0) - 0.2_f64.cbrt()).abs() < 1e-12);
    }
}
