//! Decreasing steps.

use super::runs::{data, exact, job, moments, run};
use crate::sampler::stochastic_gradients::laws::{law, longest_step};
use crate::sampler::stochastic_gradients::{Kept, Pace, Schedule, State};
use conclave_common::job::Algorithm;

/// Steps follow `a (b + t)^(-gamma)`, have decreased to the job's step at the end of the warm-up, and none is too long.
#[test]
fn steps_decrease_by_the_papers_formula() {
    for (step, gamma, warmup, longest) in
        [(0.1, 0.33, 100, 1.0), (0.1, 1.0, 100, 1.0), (0.05, 0.5, 7, 0.5), (1.5, 0.33, 40, 1.0), (0.3, 1.0, 1, 0.5)]
    {
        let schedule = Schedule::decreasing(step, gamma, warmup, longest);
        let (a, b) = schedule.coefficients().unwrap();
        for number in [1, 2, warmup, 10 * warmup, 1000 * warmup] {
            let wanted = a * libm::pow(b + number as f64, -gamma);
            assert!((schedule.step(number) / wanted - 1.0).abs() < 1e-12 && wanted > 0.0, "{step} {number}");
        }
        assert!((schedule.step(warmup) / step - 1.0).abs() < 1e-12 && b >= 0.0);
        assert!(schedule.step(1) <= longest.max(1.25 * step) * (1.0 + 1e-12), "{}", schedule.step(1));
        assert!(schedule.step(warmup + 1) < step);
    }
    assert_eq!(Schedule::of(Algorithm::Sgld, Pace { step: 0.1, friction: 1.0 }, None, 5).step(7), 0.1);
    assert_eq!(Schedule::of(Algorithm::Sgld, Pace { step: 0.1, friction: 1.0 }, None, 5).time(70), 70.0);
}

/// Decreasing steps keep one draw for each stretch of time: the plain mean over the kept draws is the mean over all steps, each
/// weighted by its length (Welling & Teh 2011), and their number is as planned.
#[test]
fn kept_draws_weight_the_steps_by_their_length() {
    let (gamma, warmup, steps) = (0.4, 50, 20_000);
    let schedule = Schedule::decreasing(0.2, gamma, warmup, 1.0);
    let (mut kept, mut of_kept, mut weighted, mut time) = (Kept::default(), Vec::new(), 0.0, 0.0);
    for number in warmup + 1..=warmup + steps {
        let relative = schedule.step(number) / 0.2;
        let value = libm::log(number as f64);
        (weighted, time) = (weighted + relative * value, time + relative);
        if kept.keeps(relative) {
            of_kept.push(value);
        }
    }
    let mean = of_kept.iter().sum::<f64>() / of_kept.len() as f64;
    assert!((mean / (weighted / time) - 1.0).abs() < 1e-3, "{mean} {}", weighted / time);
    assert_eq!(of_kept.len(), time.floor() as usize);
    assert!((schedule.time(steps) / time - 1.0).abs() < 1e-4, "{} {time}", schedule.time(steps));
    // All constant steps are kept.
    let mut all = Kept::default();
    assert!((0..1000).all(|_| all.keeps(1.0)));
}

/// The variance of a chain of `sgld` on a standard normal posterior, exactly: before the transition the noise of the gradients makes it
/// several times too wide, after it the chain cools, and over the kept time it is the planned one, up to the rest of the warm-up's
/// width.
#[test]
fn the_first_phase_is_hot_and_the_second_has_the_stated_bias() {
    let (step, gamma, warmup, steps) = (0.1, 0.33, 200, 20_000);
    let schedule = Schedule::decreasing(step, gamma, warmup, longest_step(Algorithm::Sgld, 1.0));
    let of_parties = 4.0 / step;
    let (mut variance, mut at_transition, mut sum, mut time, mut hottest) = (1.0_f64, 0.0, 0.0, 0.0, 0.0_f64);
    for number in 1..=warmup + steps {
        let pace = Pace { step: schedule.step(number), friction: 1.0 };
        let law = law(Algorithm::Sgld, pace).unwrap();
        let needed = law.variance(&[of_parties], &crate::sampler::Matrix::zeros(1))[0];
        let state = |u: f64| State { u: vec![u], momentum: vec![0.0], thermostat: 0.0 };
        let along = law.step(&state(1.0), &[-1.0], &[needed]).u[0];
        let kick = law.step(&state(0.0), &[1.0], &[needed]).u[0];
        variance = along * along * variance + kick * kick * needed.max(of_parties);
        hottest = hottest.max(variance);
        if number == warmup {
            at_transition = variance;
        }
        if number > warmup {
            (sum, time) = (sum + pace.step * variance, time + pace.step);
        }
    }
    let planned = schedule.mean(steps, true, |step| (1.0 - 0.25 * step).recip());
    println!("hottest {hottest:.2}, at the transition {at_transition:.3}, kept {:.4}, planned {planned:.4}", sum / time);
    assert!(hottest > 2.0 && at_transition < 1.5 && at_transition > 1.0);
    assert!((sum / time - planned).abs() < 0.001, "{} {planned}", sum / time);
    assert!(planned < (1.0 - 0.25 * step).recip(), "shorter steps have less bias than constant ones");
}

/// Draws are those of the exact posterior: steps from .6 on, whose constant length would make variances 1.176 times as large. 4 chains of 12,000 steps have
/// about 1,500 effective draws: means have a standard error of .026 sd and variances one of 3.6%; bounds of five.
#[test]
fn decreasing_steps_draw_from_the_posterior() {
    let sampler = "chains = 4\nseed = 3\ndraws = 12000\nstep = 0.6\nwarmup = 30\ndecay = 0.33";
    let (spec, records) = (job("sgld", sampler, "epsilon = 1000.0\ndelta = 1e-6"), 5_000);
    let ran = run(&spec, records);
    let kept = ran.draws.iter().filter(|draw| !draw.warmup).count();
    let planned = ran.diagnostics.planned_ess * 4.0 / 0.6;
    println!("{kept} draws, {:?}", ran.diagnostics);
    assert!((kept as f64 - planned).abs() <= 8.0, "{kept} of {planned}");
    let decay = ran.diagnostics.decay.unwrap();
    assert!(
        (decay.a * libm::pow(decay.b + 30.0, -0.33) - 0.6).abs() < 1e-12 && decay.last < 0.1 && decay.first > 0.7,
        "{decay:?}"
    );
    assert!(ran.diagnostics.planned_variance < 1.06 && ran.diagnostics.exceeded == 0.0);
    assert!(ran.warnings[0].contains("0.6 that decrease to"), "{:?}", ran.warnings);
    let ((mean, covariance), (exact_mean, exact_covariance)) = (moments(&ran.draws), exact(&spec, &data(records, 1.0)));
    for j in 0..2 {
        let sd = exact_covariance[(j, j)].sqrt();
        let (off, ratio) = ((mean[j] - exact_mean[j]) / sd, covariance[(j, j)] / exact_covariance[(j, j)]);
        println!("{j}: mean off by {off:.3} sd, variance {ratio:.3}");
        assert!(off.abs() < 0.13, "{j}: {off}");
        assert!((ratio / ran.diagnostics.planned_variance - 1.0).abs() < 0.18, "{j}: {ratio}");
    }
}

/// All laws whose steps may decrease keep fewer draws than steps, spend what was planned, and have no more noise than a step takes after
/// the transition.
#[test]
fn the_budget_holds_for_decreasing_steps() {
    for algorithm in ["sgld", "sghmc", "sgnht"] {
        let spec = job(algorithm, "seed = 3\nchains = 2\ndraws = 400\nwarmup = 60\ndecay = 0.6", "epsilon = 60.0\ndelta = 1e-6");
        let ran = run(&spec, 4_000);
        let kept = ran.draws.iter().filter(|draw| !draw.warmup).count();
        let warmup = ran.draws.iter().filter(|draw| draw.warmup).count();
        println!("{algorithm}: {kept} draws, {:?}", ran.diagnostics);
        assert!((100..700).contains(&kept) && warmup == 120, "{algorithm}: {kept} {warmup}");
        assert!(ran.diagnostics.exceeded < 0.02, "{algorithm}: {:?}", ran.diagnostics);
    }
}
