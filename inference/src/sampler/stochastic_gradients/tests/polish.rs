//! Chains without a test that end in penalty sweeps.

use rand::SeedableRng;

use super::runs::{data, exact, job, moments, run};
use crate::planner::{Guess, plan};
use crate::sampler::{SamplerError, build};
use conclave_common::query::Phase;
use conclave_privacy::accounting::PrivacyFilter;
use conclave_privacy::mechanism::QueryKind;

/// Gradients come first, then ratios of one coordinate each, and the draws come from the latter only. The reserved budget holds
/// them, and is not much larger than their cost.
#[test]
fn sweeps_begin_where_the_steps_end() {
    let sampler = "chains = 3\nseed = 3\ndraws = 200\nwarmup = 10\npolish = 40";
    let spec = job("sghmc", sampler, "epsilon = 40.0\ndelta = 1e-6");
    let ran = run(&spec, 20_000);
    let steps: Vec<_> = ran.draws.iter().filter(|draw| draw.warmup).collect();
    let swept: Vec<_> = ran.draws.iter().filter(|draw| !draw.warmup).collect();
    assert_eq!((steps.len(), swept.len() as u64), (3 * 210, 3 * spec.draws_asked()));
    assert_eq!(spec.draws_asked(), 80);
    let mut last: Vec<Vec<f64>> =
        (0..3).map(|chain| steps.iter().rfind(|draw| draw.chain == chain).unwrap().theta.clone()).collect();
    let (mut spent, mut messages) = (0.0, 0);
    let unit = conclave_privacy::accounting::PrivacyUnit::default();
    let model = spec.build_model();
    for (round, before) in ran.rounds.iter().zip(0..) {
        assert_eq!(round.iteration, before);
        let ratios = round.phase == Phase::Sampling;
        messages += u64::from(ratios);
        for query in round.queries.iter().filter(|_| round.phase != Phase::Locate) {
            assert_eq!(query.kind == QueryKind::Ratio, ratios, "{query:?}");
            assert!(ratios || matches!(query.kind, QueryKind::Gradient { parameters: 2 }));
        }
        for query in round.queries.iter().filter(|_| ratios) {
            let from = &mut last[query.chain as usize];
            assert_eq!(&query.from, from, "a chain continues at its last place");
            let moved = query.from.iter().zip(&query.to).filter(|(a, b)| a != b).count();
            assert_eq!(moved, 1);
            if let Some(draw) = swept.iter().find(|draw| draw.chain == query.chain && draw.iteration == round.iteration) {
                from.clone_from(&draw.theta);
            }
            let terms =
                conclave_common::query::QueryTerms::new(model.as_ref(), &spec, unit, query.kind, (&query.from, &query.to))
                    .unwrap();
            spent += unit.charge_of_kind(query.kind, terms.sensitivity(), spec.protected(query.noise)).unwrap() as f64;
        }
    }
    assert_eq!(messages, spec.draws_asked());
    let polish = ran.diagnostics.polish.unwrap();
    assert_eq!((polish.sweeps, polish.steps), (40, 210));
    assert!((polish.planned_ess * 31.0 / 120.0 - 0.134).abs() < 0.02, "{polish:?}");
    assert!(polish.acceptance_rate > 0.2 && polish.acceptance_rate < 0.6, "{polish:?}");
    let limit = PrivacyFilter::new(&spec.privacy.budget).unwrap().limit_units() as f64;
    let used = spent / limit / polish.budget_share;
    println!("{used:.3} of the budget reserved for sweeps, {:.4} of the budget", polish.budget_share);
    // Moves are shorter than the longest, by (1 + jitter²/3)/(1 + jitter)² = .83 on average, and residual bounds are below the
    // greatest.
    assert!(used > 0.6 && used <= 1.0, "{used}");
    assert!(ran.warnings[0].contains("40 penalty sweeps") && ran.warnings[1].contains("1 effective draws"), "{:?}", ran.warnings);
}

/// Long steps make draws 1.6 times as wide; the sweeps after them give the posterior's own width. Intercept and slope have
/// correlation -.87, so that 247 sweeps of single coordinates are one effective draw of a mean. In a simulation of 1,200 such
/// chains on a normal law, means have an error of .088 sd and variances one of 8%; the bounds are five times that. Without the
/// sweeps the variance is off by 7.5 such errors.
#[test]
fn sweeps_take_the_bias_of_steps_off() {
    let spec = job("sgld", "chains = 4\nseed = 5\nstep = 1.5\ndraws = 300\npolish = 8000", "epsilon = 1000.0\ndelta = 1e-6");
    let records = 1_000;
    let ran = run(&spec, records);
    assert!((ran.diagnostics.planned_variance - 1.6).abs() < 1e-9);
    let ((mean, covariance), (exact_mean, exact_covariance)) = (moments(&ran.draws), exact(&spec, &data(records, 1.0)));
    for j in 0..2 {
        let sd = exact_covariance[(j, j)].sqrt();
        let (off, ratio) = ((mean[j] - exact_mean[j]) / sd, covariance[(j, j)] / exact_covariance[(j, j)]);
        println!("{j}: mean off by {off:.3} sd, variance {ratio:.3}");
        assert!(off.abs() < 0.44, "{j}: {off}");
        assert!((ratio - 1.0).abs() < 0.4, "{j}: {ratio}");
    }
}

#[test]
fn sweeps_that_the_budget_does_not_hold_are_refused_before_a_step() {
    let spec = job("sgld", "seed = 3\ndraws = 100\npolish = 100000", "epsilon = 1.0\ndelta = 1e-6");
    let shards = spec.parties.iter().map(|_| (data(2_000, 1.0), conclave_privacy::accounting::PrivacyUnit::default())).collect();
    let mut rehearsal = crate::rehearsal::Rehearsal::new(&spec, shards, rand_chacha::ChaCha20Rng::seed_from_u64(3)).unwrap();
    let mut sampler = build(&spec, &rehearsal.metadata()).unwrap();
    let error = loop {
        let round = sampler.next_round().unwrap().round().unwrap();
        assert_eq!(round.phase, Phase::Locate);
        let crate::rehearsal::Answer::Released(releases) = rehearsal.answer(&round).unwrap() else { panic!("refused") };
        if let Err(error) = sampler.absorb(&crate::sampler::Totals::of(&round, &releases).unwrap()) {
            break error;
        }
    };
    assert!(matches!(error, SamplerError::TooMuchPolish { sweeps: 100_000, .. }), "{error}");
    assert!(error.to_string().contains("sampler.polish = 100000"), "{error}");
}

/// A plan states the draws of the sweeps, their cost and their effective draws.
#[test]
fn a_plan_counts_the_sweeps() {
    let spec = job("sghmc", "chains = 4\nseed = 3\ndraws = 200\nwarmup = 10\npolish = 310", "epsilon = 100.0\ndelta = 1e-6");
    let guess = Guess::independent(vec![20_000, 20_000], vec![0.0, 0.0], &[0.004, 0.007]);
    let planned = plan(&spec, &guess).unwrap();
    assert_eq!((planned.draws, planned.stopped_by), (620, "draws"));
    assert!(planned.warmup_share < planned.budget_share && planned.acceptance_rate < 0.5, "{planned:?}");
    assert!(planned.ess.iter().all(|row| (row.ess - 40.0).abs() < 1e-9), "{:?}", planned.ess);
    let steps =
        plan(&job("sghmc", "chains = 4\nseed = 3\ndraws = 200\nwarmup = 10", "epsilon = 100.0\ndelta = 1e-6"), &guess).unwrap();
    assert_eq!(planned.iterations, steps.iterations + 620);
    assert!(planned.budget_share > steps.budget_share);
}
