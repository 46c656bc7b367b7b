//! Computes a lower bound on the actual privacy loss from two samples of a test statistic.
//!
//! A threshold is chosen on one half of the replicates and its errors are counted on the other, so that the choice costs no
//! confidence. Under mu-Gaussian differential privacy no test of any kind has a mean error below `Phi(-mu/2)`
//! (Dong, Roth & Su 2022), and under (epsilon, delta) none has `beta < 1 - delta - e^epsilon alpha` (Kairouz, Oh &
//! Viswanath 2015). An upper bound on the errors is therefore a lower bound on mu, or on epsilon.

use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::beta::beta_reg;

/// Confidence of the reported bounds.
pub(crate) const CONFIDENCE: f64 = 0.95;
/// Confidence at which a bound above the claim is a finding.
pub(crate) const VERDICT: f64 = 0.999;

/// The statistic in many replicates of two neighbouring worlds.
pub(crate) struct Samples {
    pub(crate) without: Vec<f64>,
    pub(crate) with: Vec<f64>,
}

impl std::fmt::Debug for Samples {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Samples({}, {})", self.without.len(), self.with.len())
    }
}

/// Errors of a threshold test on replicates that were not used to choose the threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Errors {
    /// The test classifies values above the threshold as "with"; values below it if false.
    pub(crate) above: bool,
    pub(crate) threshold: f64,
    /// Replicates without the record classified as with it, and their total.
    pub(crate) false_positives: (u64, u64),
    /// Replicates with the record classified as without it, and their total.
    pub(crate) false_negatives: (u64, u64),
}

/// Bounds found by the audit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) errors: Errors,
    pub(crate) mu_lower: f64,
    /// At the confidence of the verdict.
    pub(crate) mu_lower_verdict: f64,
    pub(crate) mu_estimate: f64,
    pub(crate) epsilon_lower: f64,
    /// At the confidence of the verdict.
    pub(crate) epsilon_lower_verdict: f64,
}

/// Returns the smallest rate refuted by `count` errors in `of` trials: the upper end of the one-sided Clopper–Pearson (1934)
/// interval at `confidence`.
pub(crate) fn clopper_pearson_upper(count: u64, of: u64, confidence: f64) -> f64 {
    if count >= of {
        return 1.0;
    }
    let (a, b) = (count as f64 + 1.0, (of - count) as f64);
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if beta_reg(a, b, middle) < confidence { low = middle } else { high = middle }
    }
    high
}

impl Samples {
    /// Chooses thresholds on the first halves and bounds mu and epsilon on the second ones.
    pub(crate) fn bounds(&self, delta: f64) -> Bounds {
        let (train, test) = self.halves();
        let errors = train.best(&test, 500, |e| -e.mean_rate());
        let epsilon = |e: &Errors| e.epsilon_lower(delta, CONFIDENCE);
        let for_epsilon = train.best(&test, 50, epsilon);
        Bounds {
            errors,
            mu_lower: errors.mu_lower(CONFIDENCE),
            mu_lower_verdict: errors.mu_lower(VERDICT),
            mu_estimate: mu_of(errors.mean_rate()),
            epsilon_lower: epsilon(&for_epsilon),
            epsilon_lower_verdict: for_epsilon.epsilon_lower(delta, VERDICT),
        }
    }

    fn halves(&self) -> (Sorted, Sorted) {
        let split = |v: &[f64]| (v[..v.len() / 2].to_vec(), v[v.len() / 2..].to_vec());
        let (without, with) = (split(&self.without), split(&self.with));
        (Sorted::new(without.0, with.0), Sorted::new(without.1, with.1))
    }
}

struct Sorted {
    without: Vec<f64>,
    with: Vec<f64>,
}

impl Sorted {
    fn new(mut without: Vec<f64>, mut with: Vec<f64>) -> Self {
        without.sort_by(f64::total_cmp);
        with.sort_by(f64::total_cmp);
        Self { without, with }
    }

    fn errors(&self, above: bool, threshold: f64) -> Errors {
        let below = |v: &[f64]| v.partition_point(|x| *x < threshold) as u64;
        let (w, v) = (below(&self.without), below(&self.with));
        let (n, m) = (self.without.len() as u64, self.with.len() as u64);
        let (positives, negatives) = if above { (n - w, v) } else { (w, m - v) };
        Errors { above, threshold, false_positives: (positives, n), false_negatives: (negatives, m) }
    }

    /// Returns the errors on `test` of the threshold with the highest score here, among `count` quantiles of each world and both
    /// directions.
    fn best(&self, test: &Sorted, count: usize, score: impl Fn(&Errors) -> f64) -> Errors {
        let quantiles = |v: &[f64]| -> Vec<f64> { (1..count).map(|q| v[q * v.len() / count]).collect() };
        let thresholds = [quantiles(&self.without), quantiles(&self.with)].concat();
        let candidates = thresholds.iter().flat_map(|t| [self.errors(true, *t), self.errors(false, *t)]);
        let best = candidates.map(|e| (score(&e), e)).max_by(|a, b| a.0.total_cmp(&b.0));
        // The samples are not empty, so neither are the candidates.
        best.map_or_else(|| test.errors(true, 0.0), |(_, e)| test.errors(e.above, e.threshold))
    }
}

impl Errors {
    fn mean_rate(&self) -> f64 {
        0.5 * (rate(self.false_positives) + rate(self.false_negatives))
    }

    /// Uses one Clopper–Pearson interval for the mean of both error rates: with equally many trials in each world the total of
    /// errors varies no more than a binomial at the mean rate (Hoeffding 1956), so the interval keeps its level.
    pub(crate) fn mu_lower(&self, confidence: f64) -> f64 {
        let (positives, negatives) = (self.false_positives, self.false_negatives);
        debug_assert_eq!(positives.1, negatives.1);
        mu_of(clopper_pearson_upper(positives.0 + negatives.0, positives.1 + negatives.1, confidence))
    }

    /// Bounds each rate at half the error probability, so that both bounds hold jointly.
    fn epsilon_lower(&self, delta: f64, confidence: f64) -> f64 {
        let upper = |(count, of)| clopper_pearson_upper(count, of, 1.0 - (1.0 - confidence) / 2.0);
        let (alpha, beta) = (upper(self.false_positives), upper(self.false_negatives));
        let one = |alpha: f64, beta: f64| libm::log((1.0 - delta - beta) / alpha);
        let epsilon = one(alpha, beta).max(one(beta, alpha));
        // Not a number if the sum of the errors exceeds one.
        if epsilon > 0.0 { epsilon } else { 0.0 }
    }
}

fn rate((count, of): (u64, u64)) -> f64 {
    count as f64 / of as f64
}

/// Returns the mu at which the best test has this mean error; 0 for one half or more.
fn mu_of(mean_error: f64) -> f64 {
    if mean_error >= 0.5 {
        return 0.0;
    }
    -2.0 * Normal::standard().inverse_cdf(mean_error.max(1e-300))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rand::SeedableRng;
    use rand::distr::Distribution;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn clopper_pearson_against_published_values() {
        // R: binom.test(k, n, conf.level)$conf.int[2] with alternative = "less".
        for (count, of, confidence, upper) in
            [(0, 10, 0.95, 0.258_866), (3, 20, 0.95, 0.343_664), (50, 1000, 0.975, 0.065_389), (10, 10, 0.95, 1.0)]
        {
            let found = clopper_pearson_upper(count, of, confidence);
            assert!((found - upper).abs() < 2e-4, "{count}/{of}: {found}");
        }
        // By definition, at most this number of errors has the complementary probability at that rate.
        let upper = clopper_pearson_upper(0, 50, 0.999);
        assert!(((1.0_f64 - upper).powi(50) - 0.001).abs() < 1e-12);
    }

    fn shifted(mu: f64, n: usize, rng: &mut ChaCha8Rng) -> Samples {
        let normal = statrs::distribution::Normal::standard();
        let uniform = |rng: &mut ChaCha8Rng| {
            let u: f64 = rand::distr::StandardUniform.sample(rng);
            normal.inverse_cdf(u.max(1e-18))
        };
        let without = (0..n).map(|_| uniform(rng)).collect();
        Samples { without, with: (0..n).map(|_| mu + uniform(rng)).collect() }
    }

    #[test]
    fn the_bound_keeps_its_level_and_is_close() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let (mut above, runs) = (0, 100);
        for _ in 0..runs {
            let bounds = shifted(1.0, 2000, &mut rng).bounds(1e-6);
            above += u32::from(bounds.mu_lower > 1.0);
            assert!(bounds.mu_lower > 0.65 && bounds.mu_lower_verdict < bounds.mu_lower);
            assert!(bounds.epsilon_lower < 5.0);
        }
        // 5% of 100 is 5; the 99.9% quantile of that binomial is 13.
        assert!(above <= 13, "{above}");
    }

    #[test]
    fn either_direction_is_found_and_no_difference_gives_nothing() {
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        assert!(shifted(-2.0, 2000, &mut rng).bounds(1e-6).mu_lower > 1.7);
        let nothing = shifted(0.0, 2000, &mut rng).bounds(1e-6);
        assert!(nothing.mu_lower < 0.1 && nothing.epsilon_lower < 0.2, "{nothing:?}");
        // Worlds that don't overlap at all.
        let apart = shifted(1e9, 2000, &mut rng).bounds(1e-6);
        assert!(apart.mu_lower > 5.0 && apart.epsilon_lower > 5.0, "{apart:?}");
    }
}
