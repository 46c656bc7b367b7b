//! Results of runs that infer from few releases.

use conclave_common::job::JobSpec;
use conclave_inference::sampler::{Inference, RunReport};

/// The share of the variance below which the noise widens no interval noticeably.
const SMALL: f64 = 0.01;

/// Describes the share of noise in the reported spread, for the parameter with the largest share.
pub(crate) fn budget_error(inference: &Inference) -> String {
    let Some(most) = inference.noise_share.iter().copied().flatten().max_by(f64::total_cmp) else {
        return "The share of noise in the spread is unknown: the releases do not bound it.".to_owned();
    };
    let unknown = match inference.noise_share.iter().filter(|share| share.is_none()).count() {
        0 => String::new(),
        1 => " One parameter’s share is unknown: the releases do not bound it.".to_owned(),
        several => format!(" The shares of {several} parameters are unknown: the releases do not bound them."),
    };
    if most < SMALL {
        let which = if unknown.is_empty() { "every parameter" } else { "every parameter whose share is known" };
        return format!("Privacy’s noise accounts for less than 1% of the variance of {which}.{unknown}");
    }
    let times = (1.0 - most).max(f64::MIN_POSITIVE).sqrt().recip();
    // Three digits, where there are more than one before the point.
    let decimals = if times < 9.995 { 2 } else { 1 };
    format!(
        "The widest interval is {times:.decimals$} times as wide as without privacy: the noise accounts for {:.0}% of its variance. More draws \
         cannot narrow it; only a larger budget or more records can.{unknown}",
        100.0 * most
    )
}

/// Returns the word for the fit whose parameters the run estimates; `None` for chains that weight no record.
pub(crate) fn estimand(spec: &JobSpec, report: &RunReport) -> Option<&'static str> {
    let (names, weighted) = match &report.inference {
        Some(inference) => (true, inference.weighted.is_some()),
        None => (spec.weighs_chains(), report.weighted.is_some()),
    };
    names.then_some(if weighted { "weighted" } else { "plain" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inference(noise_share: Vec<Option<f64>>) -> Inference {
        Inference {
            stages: Vec::new(),
            noise_share,
            checks: Vec::new(),
            reasons: Vec::new(),
            warnings: Vec::new(),
            weighted: None,
        }
    }

    #[test]
    fn the_share_of_noise_is_stated() {
        let words = budget_error(&inference(vec![Some(0.1), Some(0.2439)]));
        assert!(
            words.starts_with("The widest interval is 1.15 times as wide") && words.contains("24% of its variance"),
            "{words}"
        );
        let wide = budget_error(&inference(vec![Some(1.0 - 1.0 / (68.89 * 68.89))]));
        assert!(wide.starts_with("The widest interval is 68.9 times"), "{wide}");
        // The share of an sd over parties is not known.
        assert!(budget_error(&inference(vec![Some(0.1), None])).starts_with("The widest interval is 1.05"));
        assert!(budget_error(&inference(vec![None, None])).contains("is unknown"));
        let small = budget_error(&inference(vec![Some(0.002), Some(0.009)]));
        assert!(small.ends_with("less than 1% of the variance of every parameter."), "{small}");
        // A share that is not known is not said to be small.
        let some = budget_error(&inference(vec![Some(0.002), None]));
        assert!(some.contains("of every parameter whose share is known. One parameter’s share is unknown"), "{some}");
        assert!(budget_error(&inference(vec![Some(0.3), None, None])).contains("The shares of 2 parameters are unknown"));
    }
}
