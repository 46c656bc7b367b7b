//! What a result says of a run that infers from what was released once.

use std::collections::BTreeMap;

use conclave_inference::sampler::{Check, Inference};
use serde::Serialize;

/// Whether the release suffices for an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Adequacy {
    /// Whether every check holds; where one does not, no interval is an answer.
    pub adequate: bool,
    /// Each check's figure and the most that it may be, by its name.
    #[serde(flatten)]
    pub figures: BTreeMap<&'static str, Check>,
    /// Why it is not adequate, in words.
    pub reasons: Vec<String>,
}

impl Adequacy {
    pub(crate) fn of(inference: &Inference) -> Self {
        Self {
            adequate: inference.is_adequate(),
            figures: inference.checks.iter().map(|check| (check.name, *check)).collect(),
            reasons: inference.reasons.clone(),
        }
    }
}

/// One sentence on how much of the reported spread is the noise's, of the parameter where it is most.
pub(crate) fn budget_error(inference: &Inference) -> String {
    let shares = inference.noise_share.iter().copied().collect::<Option<Vec<f64>>>();
    let Some(most) = shares.and_then(|shares| shares.into_iter().max_by(f64::total_cmp)) else {
        return "How much of the spread is the noise's can't be told: what was released does not bound it.".to_owned();
    };
    format!(
        "The widest interval is {:.2} times as wide as without privacy: the noise makes {:.0}% of its variance. More draws cannot narrow it; only \
         budget or records can.",
        (1.0 - most).max(f64::MIN_POSITIVE).sqrt().recip(),
        100.0 * most
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inference(noise_share: Vec<Option<f64>>) -> Inference {
        Inference { stages: Vec::new(), noise_share, checks: Vec::new(), reasons: Vec::new(), warnings: Vec::new() }
    }

    #[test]
    fn the_noise_has_its_share_of_the_interval() {
        let told = budget_error(&inference(vec![Some(0.1), Some(0.2439)]));
        assert!(told.starts_with("The widest interval is 1.15 times as wide") && told.contains("24% of its variance"), "{told}");
        assert!(budget_error(&inference(vec![Some(0.1), None])).contains("can't be told"));
    }
}
