//! A parameter's value at a party that is not in the job.

use conclave_common::job::JobSpec;
use serde::Serialize;

/// Normal quantiles at the middles of eleven equal shares: the values at a new party that stand for one draw of mean and sd.
const QUANTILES: [f64; 11] = [-1.6906, -1.0968, -0.7479, -0.4728, -0.2299, 0.0, 0.2299, 0.4728, 0.7479, 1.0968, 1.6906];

/// The predicted value of a parameter that varies by party, at a new party: from the draws of its mean and its sd over the parties. On the
/// scale of the priors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NewParty {
    /// The parameter.
    pub parameter: String,
    /// 5% quantile.
    pub q5: f64,
    /// Median.
    pub median: f64,
    /// 95% quantile.
    pub q95: f64,
}

/// Predicts each parameter that varies by party, from the draws of [`JobSpec::draw_names`], `[value][chain][draw]`.
pub(crate) fn new_party(spec: &JobSpec, samples: &[Vec<&[f64]>]) -> Vec<NewParty> {
    let names = spec.model.parameter_names();
    let (order, step) = (spec.dimension(), spec.parties.len() + 1);
    let predicted = |(at, index): (usize, usize)| {
        let (means, sds) = (samples.get(index)?, samples.get(order + (at + 1) * step - 1)?);
        let draws = means.iter().zip(sds).flat_map(|(means, sds)| means.iter().zip(*sds));
        let mut values: Vec<f64> = draws.flat_map(|(mean, sd)| QUANTILES.map(|z| mean + sd * z)).collect();
        values.sort_unstable_by(f64::total_cmp);
        let quantile = |part: f64| values.get((part * values.len() as f64) as usize).copied();
        let (q5, median, q95) = (quantile(0.05)?, quantile(0.5)?, quantile(0.95)?);
        Some(NewParty { parameter: names[index].clone(), q5, median, q95 })
    };
    spec.varying().iter().map(|site| site.index).enumerate().filter_map(predicted).collect()
}

/// Returns both ends of the predicted interval of each parameter that varies by party, in the order of [`RunResult::new_party`]: the
/// quantiles at these probabilities of the normal laws of all draws together, to a billionth of their range.
///
/// [`RunResult::new_party`]: crate::result::RunResult::new_party
#[must_use]
pub fn new_party_intervals(spec: &JobSpec, samples: &[Vec<&[f64]>], probabilities: [f64; 2]) -> Vec<[f64; 2]> {
    let (order, step) = (spec.dimension(), spec.parties.len() + 1);
    let predicted = |(at, index): (usize, usize)| {
        let (means, sds) = (samples.get(index)?, samples.get(order + (at + 1) * step - 1)?);
        let draws = means.iter().zip(sds).flat_map(|(means, sds)| means.iter().copied().zip(sds.iter().copied()));
        let laws: Vec<(f64, f64)> = draws.collect();
        Some(probabilities.map(|probability| quantile(&laws, probability)))
    };
    spec.varying().iter().map(|site| site.index).enumerate().filter_map(predicted).collect()
}

/// Returns a quantile of an equal mixture of normal laws, each with mean and sd, by bisection.
fn quantile(laws: &[(f64, f64)], probability: f64) -> f64 {
    /// Beyond this many sds a law has no share of any probability in use.
    const FAR: f64 = 10.0;
    let below = |x: f64| {
        let of = |(mean, sd): &(f64, f64)| 0.5 * libm::erfc((mean - x) / (sd.max(f64::MIN_POSITIVE) * std::f64::consts::SQRT_2));
        laws.iter().map(of).sum::<f64>() / laws.len() as f64
    };
    let ends = laws.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (mean, sd)| {
        (low.min(mean - FAR * sd), high.max(mean + FAR * sd))
    });
    if !(ends.0.is_finite() && ends.1.is_finite()) {
        return f64::NAN;
    }
    let (mut low, mut high) = ends;
    for _ in 0..30 {
        let middle = 0.5 * (low + high);
        if below(middle) < probability { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_new_party_differs_as_the_others_do() {
        let spec = JobSpec::parse(
            "name = \"n\"\nparties = [\"a\", \"b\"]\nalgorithm = \"noisy-statistics\"\n[model]\nkind = \"logistic\"\noutcome = \"y\"\n\
             predictors = [\"x\"]\n[columns]\ny = { binary = true }\nx = { min = 0, max = 1 }\n[parameters]\nx = { by = \"party\" }\n[privacy]\n\
             epsilon = 1.0\ndelta = 1e-6\n",
        )
        .unwrap();
        assert_eq!(spec.draw_names(), ["intercept", "x", "x[a]", "x[b]", "x.sd"]);
        let (zeros, mean, sd) = ([0.0; 50], [1.0; 50], [0.5; 50]);
        let samples: Vec<Vec<&[f64]>> = [&zeros, &mean, &zeros, &zeros, &sd].map(|of| vec![&of[..]]).to_vec();
        let found = new_party(&spec, &samples);
        assert!(found.len() == 1 && found[0].parameter == "x" && found[0].median == 1.0);
        assert!((found[0].q5 - (1.0 - 0.5 * 1.6906)).abs() < 1e-9 && (found[0].q95 - (1.0 + 0.5 * 1.6906)).abs() < 1e-9);
        assert_eq!(new_party(&spec, &[]), []);
        // One normal law: its own quantiles, further out than the eleven values reach.
        let ends = new_party_intervals(&spec, &samples, [0.005, 0.995]);
        assert!(
            (ends[0][0] - (1.0 - 0.5 * 2.575_829_303_5)).abs() < 1e-7
                && (ends[0][1] - (1.0 + 0.5 * 2.575_829_303_5)).abs() < 1e-7
        );
        assert!(new_party_intervals(&spec, &[], [0.05, 0.95]).is_empty());
    }
}
