//! Records of weighted regressions, runs of their jobs in one process, and the posteriors computed directly.

use conclave_common::job::JobSpec;
use conclave_common::model::{Influence, Leverage};
use conclave_common::query::{Phase, Query};
use conclave_inference::rehearsal::{Answer, Rehearsal};
use conclave_inference::sampler::{self, GradientDiagnostics, Inference, Next, Totals, Weighted};
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::{Frame, ModelData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal, StudentT};

pub(super) const PRIOR_SD: f64 = 2.5;

/// Records, with the intercept's 1 first.
pub(super) struct Records {
    pub(super) x: Vec<Vec<f64>>,
    pub(super) y: Vec<f64>,
}

pub(super) struct Run {
    pub(super) draws: Vec<Vec<f64>>,
    /// The numbers of the chains' gradients or ratios, if records have weights: the same in all.
    pub(super) numbers: Option<Vec<f64>>,
    pub(super) weighted: Option<Weighted>,
    pub(super) gradients: Option<GradientDiagnostics>,
    pub(super) inference: Option<Inference>,
    pub(super) futile: Option<String>,
    pub(super) rounds: usize,
    pub(super) queries: Vec<Query>,
    pub(super) words: Vec<String>,
}

pub(super) fn parties(records: &Records, unit: PrivacyUnit) -> Vec<(ModelData, PrivacyUnit)> {
    let third = records.y.len() / 3;
    let shard = |i: usize| {
        let rows = i * third..(i + 1) * third;
        let column = |j: usize| records.x[rows.clone()].iter().map(|x| x[j]).collect();
        ModelData {
            outcome: records.y[rows.clone()].to_vec(),
            predictors: (1..records.x[0].len()).map(column).collect(),
            ..ModelData::default()
        }
    };
    (0..3).map(|i| (shard(i), unit)).collect()
}

pub(super) fn run(spec: &JobSpec, records: &Records, seed: u64) -> Run {
    let shards = parties(records, PrivacyUnit::default());
    let mut rehearsal = Rehearsal::new(spec, shards, ChaCha20Rng::seed_from_u64(seed)).unwrap();
    let mut sampler = sampler::build(spec, &rehearsal.metadata()).unwrap();
    let mut replica = sampler::build(spec, &rehearsal.metadata()).unwrap();
    let (mut draws, mut numbers, mut queries, mut rounds) = (Vec::new(), None, Vec::new(), 0);
    while let Next::Ask(round) = sampler.next_round().unwrap() {
        if let Some(forecast) = sampler.futility() {
            assert_eq!(round.phase, Phase::Warmup, "{forecast:?}");
            break;
        }
        for query in round.queries.iter().filter(|_| round.phase != Phase::Locate) {
            let d = spec.dimension();
            match query.kind {
                QueryKind::Gradient { .. } if query.to.len() == Leverage::length(d) => {
                    // Fixed before the first query of any chain.
                    assert_eq!(numbers.get_or_insert(query.to.clone()), &query.to);
                }
                // The weights follow theta'.
                QueryKind::Ratio if query.to.len() == d + Leverage::length(d) => {
                    assert_eq!(numbers.get_or_insert(query.to[d..].to_vec()), &query.to[d..]);
                }
                QueryKind::Remainder { .. } if numbers.is_some() => assert_eq!(query.to.last(), Some(&1.5)),
                _ => assert!(numbers.is_none()),
            }
        }
        let Answer::Released(releases) = rehearsal.answer(&round).unwrap() else {
            // A refusal ends chains of ratios.
            assert!(spec.algorithm.walks_on_ratios(), "beyond the budget");
            break;
        };
        sampler.absorb(&Totals::of(&round, &releases).unwrap()).unwrap();
        // A restart asks the same queries, in the same frame.
        assert_eq!(replica.replay(round.iteration, &releases).unwrap(), round);
        draws.extend(sampler.take_draws());
        rounds += 1;
        queries.extend(round.queries);
    }
    let futile = sampler.futility().map(|forecast| format!("{forecast:?}"));
    sampler.conclude().unwrap();
    draws.extend(sampler.take_draws());
    let draws = draws.into_iter().filter(|draw| !draw.warmup).map(|draw| draw.theta).collect();
    let report = sampler.report();
    let (weighted, gradients, inference) = (report.weighted, report.gradients, report.inference);
    Run { draws, numbers, weighted, gradients, inference, futile, rounds, queries, words: sampler.warnings() }
}

/// The weights of the records in the frame of these numbers.
pub(super) fn weights(numbers: &[f64], records: &Records) -> Vec<f64> {
    let d = records.x[0].len();
    let frame = Frame::new(&numbers[..Frame::length(d)], d).unwrap();
    let m = Leverage::widening(frame);
    let square = |x: &[f64]| (0..d).map(|k| (m * dot(frame.row(k), x)).powi(2)).sum::<f64>();
    records.x.iter().map(|x| Influence::weight(numbers[numbers.len() - 1], square(x))).collect()
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The mode and the sds of the posterior of weighted records, by Newton's method.
pub(super) fn posterior(records: &Records, weights: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let d = records.x[0].len();
    let mut theta = vec![0.0; d];
    let mut covariance = Vec::new();
    for _ in 0..40 {
        let mut gradient: Vec<f64> = theta.iter().map(|t| -t / (PRIOR_SD * PRIOR_SD)).collect();
        let mut information = vec![vec![0.0; d]; d];
        (0..d).for_each(|j| information[j][j] = (PRIOR_SD * PRIOR_SD).recip());
        for ((x, y), w) in records.x.iter().zip(&records.y).zip(weights) {
            let p = (1.0 + (-dot(x, &theta)).exp()).recip();
            for i in 0..d {
                gradient[i] += w * (y - p) * x[i];
                (0..d).for_each(|j| information[i][j] += w * p * (1.0 - p) * x[i] * x[j]);
            }
        }
        covariance = inverted(information);
        let step: Vec<f64> = covariance.iter().map(|row| dot(row, &gradient)).collect();
        theta.iter_mut().zip(&step).for_each(|(t, s)| *t += s);
    }
    (theta, (0..d).map(|j| covariance[j][j].sqrt()).collect())
}

pub(super) fn inverted(mut a: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let d = a.len();
    let mut b: Vec<Vec<f64>> = (0..d).map(|i| (0..d).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for c in 0..d {
        let pivot = a[c][c];
        a[c].iter_mut().for_each(|x| *x /= pivot);
        b[c].iter_mut().for_each(|x| *x /= pivot);
        let (of_a, of_b) = (a[c].clone(), b[c].clone());
        for r in (0..d).filter(|r| *r != c) {
            let factor = a[r][c];
            a[r].iter_mut().zip(&of_a).for_each(|(x, above)| *x -= factor * above);
            b[r].iter_mut().zip(&of_b).for_each(|(x, above)| *x -= factor * above);
        }
    }
    b
}

pub(super) fn moments(draws: &[Vec<f64>]) -> (Vec<f64>, Vec<f64>) {
    let (d, n) = (draws[0].len(), draws.len() as f64);
    let mean: Vec<f64> = (0..d).map(|j| draws.iter().map(|draw| draw[j]).sum::<f64>() / n).collect();
    let sd = (0..d).map(|j| (draws.iter().map(|draw| (draw[j] - mean[j]).powi(2)).sum::<f64>() / n).sqrt()).collect();
    (mean, sd)
}

/// The root mean square of the distance of means in posterior sds.
pub(super) fn error(mean: &[f64], (truth, sd): &(Vec<f64>, Vec<f64>)) -> f64 {
    let all: Vec<f64> = mean.iter().zip(truth).zip(sd).map(|((m, t), sd)| (m - t) / sd).collect();
    (dot(&all, &all) / all.len() as f64).sqrt()
}

/// Records with heavy tails of the predictors, whose effects level off there: the weighted posterior is many sds from the plain one.
pub(super) fn misfit(d: usize, n: usize, seed: u64) -> Records {
    let (mut rng, t3) = (ChaCha20Rng::seed_from_u64(seed), StudentT::new(3.0).unwrap());
    let mut records = Records { x: Vec::new(), y: Vec::new() };
    for _ in 0..n {
        let mut scale: f64 = t3.sample(&mut rng);
        scale = 0.1 * (1.0 + scale.abs());
        let x: Vec<f64> = std::iter::once(1.0)
            .chain((1..d).map(|_| (scale * Distribution::<f64>::sample(&StandardNormal, &mut rng)).clamp(-1.0, 1.0)))
            .collect();
        let eta: f64 = -0.3 + x[1..].iter().enumerate().map(|(j, x)| [1.0, -0.8, 0.6][j % 3] * (6.0 * x).tanh()).sum::<f64>();
        records.y.push(f64::from(u8::from(rng.random_bool((1.0 + (-eta).exp()).recip()))));
        records.x.push(x);
    }
    records
}
