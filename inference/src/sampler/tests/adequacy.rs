//! The verdict on runs of every kind.

use super::*;
use crate::diagnostics::summarise;
use crate::sampler::Inference;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

/// Draws of chains of this autocorrelation.
fn chains(count: u64, draws: usize, correlation: f64) -> Vec<Vec<f64>> {
    let chain = |seed| {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut x = 0.0;
        let step = |_| {
            let z: f64 = StandardNormal.sample(&mut rng);
            x = correlation * x + (1.0 - correlation * correlation).sqrt() * z;
            x
        };
        (0..draws).map(step).collect()
    };
    (0..count).map(chain).collect()
}

fn verdict(report: &RunReport, chains: &[Vec<f64>]) -> Adequacy {
    let chains: Vec<&[f64]> = chains.iter().map(Vec::as_slice).collect();
    Adequacy::of(report, &[("dose", summarise(&chains))])
}

/// A lone chain is judged as several are. An autocorrelation of .999 leaves less than one effective draw of 400.
#[test]
fn one_chain_gets_the_verdict_of_four() {
    for count in [1, 4] {
        let good = verdict(&RunReport::default(), &chains(count, 400, 0.0));
        assert!(good.adequate && good.reasons.is_empty() && good.figures["mcse_to_sd"].value < 0.1, "{good:?}");
        let poor = verdict(&RunReport::default(), &chains(count, 400, 0.999));
        assert!(!poor.adequate && poor.figures["mcse_to_sd"].value > MOST_MCSE, "{poor:?}");
        assert!(poor.reasons[0].contains("Monte Carlo error of dose"), "{poor:?}");
    }
}

/// Neither a chain that stands still nor one of three draws has a Monte Carlo error: the answer is not adequate, and its JSON has a
/// null.
#[test]
fn an_undefined_error_is_not_adequate() {
    let still = verdict(&RunReport::default(), &[vec![0.5; 400], vec![0.5; 400]]);
    let short = verdict(&RunReport::default(), &chains(4, 3, 0.0));
    for (verdict, why) in [(still, "never moved"), (short, "too few draws")] {
        assert!(!verdict.adequate && verdict.reasons.len() == 1 && verdict.reasons[0].contains(why), "{verdict:?}");
        let json = serde_json::to_value(&verdict).unwrap_or_default();
        assert!(
            json["mcse_to_sd"]["value"].is_null() && json["mcse_to_sd"]["limit"] == 0.4 && json["adequate"] == false,
            "{json}"
        );
    }
    // One parameter that stands still is not hidden by another that moves.
    let moving = chains(4, 400, 0.0);
    let moving: Vec<&[f64]> = moving.iter().map(Vec::as_slice).collect();
    let still = vec![0.5; 400];
    for order in [[0, 1], [1, 0]] {
        let rows = [("dose", summarise(&moving)), ("age", summarise(&[&still[..]; 4]))];
        let verdict = Adequacy::of(&RunReport::default(), &order.map(|row| rows[row]));
        assert!(!verdict.adequate && verdict.reasons[0].contains("age are equal"), "{verdict:?}");
    }
    assert!(!Adequacy::of(&RunReport::default(), &[]).adequate);
}

#[test]
fn few_planned_draws_are_not_adequate() {
    assert_eq!((planned_for_shape(400.0, true), planned_for_shape(400.0, false).round()), (400.0, 16.0));
    assert!(too_few_planned(12.3).contains("about 12 effective draws"));
}

/// The reasons of a release come first, and its checks stand beside the draws'.
#[test]
fn a_release_keeps_its_checks() {
    let inference = Inference {
        stages: Vec::new(),
        noise_share: Vec::new(),
        checks: vec![Check { name: "rho_h", value: 3.0, limit: 2.0 }],
        reasons: vec!["too noisy".to_owned()],
        warnings: Vec::new(),
        weighted: None,
    };
    let released = RunReport { inference: Some(inference), ..RunReport::default() };
    let verdict = verdict(&released, &chains(4, 400, 0.0));
    assert_eq!((verdict.adequate, verdict.reasons.as_slice()), (false, ["too noisy".to_owned()].as_slice()));
    assert_eq!(verdict.figures.keys().copied().collect::<Vec<_>>(), ["mcse_to_sd", "rho_h"]);
}
