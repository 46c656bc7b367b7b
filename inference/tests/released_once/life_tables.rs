//! Life tables: are the curves of adequate runs right, and how much wider does the noise make them?
//!
//! Each run has fresh records of two arms with constant hazards, censored at random and at the end of follow-up, at three owners. *z* is the error
//! of the curves against the truth in claimed sds, *held* the coverage of their 90 % intervals, and *sdr* the ratio of the sds to Greenwood's without
//! privacy, over the intervals' ends and both arms.

use conclave_common::job::JobSpec;
use conclave_common::model::FollowUpEnd;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, Exp1};

use super::{Records, rms};

const LONGEST: f64 = 60.0;
const RATES: [f64; 2] = [0.020, 0.012];
const CUTS: [f64; 3] = [6.0, 12.0, 24.0];

/// Returns the records; the arm is the second column beside the outcome.
fn records(n: usize, rng: &mut ChaCha20Rng) -> (Records, Vec<f64>) {
    let mut records = Records { x: Vec::new(), y: Vec::new(), offset: Vec::new() };
    let mut arms = Vec::new();
    for _ in 0..n {
        let arm = usize::from(rng.random_bool(0.5));
        let at: f64 = Exp1.sample(rng);
        let at = at / RATES[arm];
        // Some leave at random; the others are followed to the end.
        let last = if rng.random_bool(0.3) { rng.random_range(1.0..LONGEST) } else { LONGEST };
        records.y.push(at.min(last));
        records.offset.push(f64::from(u8::from(at < last)));
        records.x.push(Vec::new());
        arms.push(arm as f64);
    }
    (records, arms)
}

fn spec(epsilon: f64) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"s\"\nalgorithm = \"auto\"\nparties = [\"a\", \"b\", \"c\"]\n[model]\nkind = \"life_table\"\noutcome = \"t\"\nevent = \"d\"\ncuts = {CUTS:?}\n\
         by = \"arm\"\n[columns]\nt = {{ min = 0, max = {LONGEST} }}\nd = {{ binary = true }}\narm = {{ levels = [\"old\", \"new\"] }}\n\
         [sampler]\ndraws = 1000\n[privacy]\nepsilon = {epsilon}\ndelta = 1e-6\n"
    ))
    .unwrap()
}

/// Returns the survival at the intervals' ends of both arms, from the probabilities of the intervals.
fn curves(theta: &[f64]) -> Vec<f64> {
    let arm = |h: &[f64]| {
        h.iter()
            .scan(1.0, |survival, h| {
                *survival *= 1.0 - h;
                Some(*survival)
            })
            .collect::<Vec<f64>>()
    };
    theta.chunks(CUTS.len() + 1).flat_map(arm).collect()
}

/// Returns the sds of the curves by Greenwood's formula, from exact counts.
fn greenwood(spec: &JobSpec, data: &Records, arms: &[f64]) -> Vec<f64> {
    let model = spec.build_model();
    let table = model.life_table().unwrap();
    let ends: Vec<f64> = CUTS.iter().copied().chain([LONGEST]).collect();
    let (mut events, mut leaving) = (vec![0.0; 2 * ends.len()], vec![0.0; 2 * ends.len()]);
    let mut within = leaving.clone();
    assert_eq!(table.cells(), 2 * ends.len() * FollowUpEnd::COUNT + 1);
    for ((time, event), arm) in data.y.iter().zip(&data.offset).zip(arms) {
        let at = *arm as usize * ends.len() + ends.iter().position(|end| time <= end).unwrap();
        leaving[at] += 1.0;
        events[at] += event;
        within[at] += f64::from(u8::from(*event == 0.0 && !ends.contains(time)));
    }
    let mut sds = Vec::new();
    for arm in 0..2 {
        let (mut survival, mut sum) = (1.0, 0.0);
        for k in 0..ends.len() {
            let at = arm * ends.len() + k;
            let at_risk: f64 = leaving[at..(arm + 1) * ends.len()].iter().sum::<f64>() - 0.5 * within[at];
            survival *= 1.0 - events[at] / at_risk;
            sum += events[at] / (at_risk * (at_risk - events[at]));
            sds.push(survival * sum.sqrt());
        }
    }
    sds
}

struct Figures {
    z: f64,
    held: f64,
    ratio: f64,
    adequate: f64,
}

fn figures(n: usize, epsilon: f64, runs: usize) -> Figures {
    let spec = spec(epsilon);
    let mut found = Figures { z: 0.0, held: 0.0, ratio: 0.0, adequate: 0.0 };
    let (mut z, mut ratios, mut held) = (Vec::new(), Vec::new(), 0);
    let ends = || CUTS.iter().copied().chain([LONGEST]);
    let truth: Vec<f64> = RATES.iter().flat_map(|rate| ends().map(move |end| (-rate * end).exp())).collect();
    for seed in 0..runs as u64 {
        let (data, arms) = records(n, &mut ChaCha20Rng::seed_from_u64(81_000 + seed));
        let sds = greenwood(&spec, &data, &arms);
        let run = run_with(&spec, &data, &arms, seed);
        if !run.inference.is_adequate() {
            continue;
        }
        found.adequate += 1.0 / runs as f64;
        let drawn: Vec<Vec<f64>> = run.draws.iter().map(|theta| curves(theta)).collect();
        for j in 0..truth.len() {
            let mut values: Vec<f64> = drawn.iter().map(|curve| curve[j]).collect();
            values.sort_unstable_by(f64::total_cmp);
            let quantile = |part: f64| values[(part * values.len() as f64) as usize];
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let sd = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt();
            z.push((mean - truth[j]) / sd);
            ratios.push(sd / sds[j]);
            held += usize::from(quantile(0.05) <= truth[j] && truth[j] <= quantile(0.95));
        }
    }
    ratios.sort_by(f64::total_cmp);
    found.z = rms(&z);
    found.held = held as f64 / z.len().max(1) as f64;
    found.ratio = ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN);
    println!(
        "{n} records, epsilon {epsilon}: adequate {:.2}, z {:.2}, held {:.2}, sdr {:.2}",
        found.adequate, found.z, found.held, found.ratio
    );
    found
}

/// Runs with the arm beside the event.
fn run_with(spec: &JobSpec, data: &Records, arms: &[f64], seed: u64) -> super::Run {
    super::run_beside(spec, data, &[arms], |t| 2.0 * t / LONGEST - 1.0, seed)
}

/// Twenty runs of two arms: the four ends of a curve are correlated, so the rms of z counts as that of 80 at least and has an sd of .08; [.75, 1.25] is
/// three of them, and the seeds are fixed. Without the noise in the intervals it is above 1.6 at epsilon 1.
#[test]
fn curves_of_a_life_table_are_within_their_intervals() {
    for epsilon in [1.0, 3.0] {
        let Figures { z, held, adequate, .. } = figures(1_500, epsilon, 20);
        assert!((0.75..1.25).contains(&z) && (0.82..0.97).contains(&held) && adequate > 0.9, "{z} {held} {adequate}");
    }
}

/// Forty runs at hospital sizes.
#[test]
#[ignore = "minutes"]
fn life_tables_are_calibrated() {
    for n in [300, 600, 1_500, 6_000] {
        for epsilon in [1.0, 3.0, 8.0] {
            let Figures { z, held, adequate, .. } = figures(n, epsilon, 40);
            assert!(adequate < 0.5 || ((0.8..1.2).contains(&z) && (0.84..0.96).contains(&held)), "{n} {epsilon}: {z} {held}");
        }
    }
}

/// A budget far too small gives no answer: 30 records an arm at epsilon 0.3.
#[test]
fn a_table_of_noise_is_not_adequate() {
    let spec = spec(0.3);
    let forced = JobSpec::parse(&format!(
        "name = \"s\"\nalgorithm = \"auto\"\nparties = [\"a\", \"b\", \"c\"]\n[model]\nkind = \"life_table\"\noutcome = \"t\"\nevent = \"d\"\ncuts = {CUTS:?}\n\
         by = \"arm\"\n[columns]\nt = {{ min = 0, max = {LONGEST} }}\nd = {{ binary = true }}\narm = {{ levels = [\"old\", \"new\"] }}\n\
         [sampler]\ndraws = 200\nforce = true\n[privacy]\nepsilon = 0.3\ndelta = 1e-6\n"
    ))
    .unwrap();
    assert_eq!(spec.model, forced.model);
    for seed in 0..5 {
        let (data, arms) = records(60, &mut ChaCha20Rng::seed_from_u64(seed));
        assert!(!run_with(&forced, &data, &arms, seed).inference.is_adequate(), "{seed}");
    }
}
