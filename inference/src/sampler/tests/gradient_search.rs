//! A chain of ratios that finds the mode by gradients, on real kernels, lattice and noise, in one process.

#![allow(clippy::unwrap_used)]

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::rehearsal::{Answer, Rehearsal};
use crate::sampler::{Next, Totals, build};
use conclave_common::job::JobSpec;
use conclave_common::query::{Draw, Phase, Round};
use conclave_privacy::accounting::{PrivacyFilter, PrivacyUnit};
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::{ModelData, Persons};

/// Coefficients of the records, per predictor in [-1, 1].
const TRUE: [f64; 3] = [-0.6, 1.1, -0.8];

fn job(chains: u32, more: &str) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"g\"\nalgorithm = \"penalty\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\n\
         predictors = [\"u\", \"v\"]\n[columns]\ny = {{ binary = true }}\nu = {{ min = -1, max = 1 }}\nv = {{ min = -1, max = 1 }}\n\
         [sampler]\nchains = {chains}\nwarmup = 1\n{more}\n[privacy]\nepsilon = 3.0\ndelta = 1e-6\n"
    ))
    .unwrap()
}

/// Returns records whose two predictors have a correlation of .9.
fn data(records: usize, party: usize) -> ModelData {
    let hashed = |i: usize, by: usize, of: usize| ((i * by + 7 * party + 1) % of) as f64 / of as f64;
    let u = |i: usize| 2.0 * hashed(i, 7919, 1009) - 1.0;
    let v = |i: usize| (0.9 * u(i) + 0.44 * (2.0 * hashed(i, 5407, 2003) - 1.0)).clamp(-1.0, 1.0);
    let p = |i: usize| 1.0 / (1.0 + (-(TRUE[0] + TRUE[1] * u(i) + TRUE[2] * v(i))).exp());
    let y = |i: usize| f64::from(u8::from(hashed(i, 104_729, 10_007) < p(i)));
    ModelData {
        outcome: (0..records).map(y).collect(),
        predictors: vec![(0..records).map(u).collect(), (0..records).map(v).collect()],
        ..ModelData::default()
    }
}

/// The search's rounds, its share of the budget, and the chains' first draws.
struct Searched {
    rounds: Vec<Round>,
    share: f64,
    starts: Vec<Draw>,
}

fn search(spec: &JobSpec, shards: Vec<(ModelData, PrivacyUnit)>, seed: u64) -> Searched {
    let mut parties = Rehearsal::new(spec, shards, ChaCha20Rng::seed_from_u64(seed)).unwrap();
    let mut sampler = build(spec, &parties.metadata()).unwrap();
    let mut replica = build(spec, &parties.metadata()).unwrap();
    let limit = PrivacyFilter::new(&spec.privacy.budget).unwrap().limit_units() as f64;
    let mut found = Searched { rounds: Vec::new(), share: 0.0, starts: Vec::new() };
    while found.starts.is_empty() {
        let Next::Ask(round) = sampler.next_round().unwrap() else { panic!("the run has ended") };
        if round.phase == Phase::Locate {
            found.rounds.push(round.clone());
        }
        let Answer::Released(releases) = parties.answer(&round).unwrap() else { panic!("refused") };
        if round.phase == Phase::Locate {
            found.share = parties.spent()[0].1 as f64 / limit;
        }
        sampler.absorb(&Totals::of(&round, &releases).unwrap()).unwrap();
        assert_eq!(replica.replay(round.iteration, &releases).unwrap(), round, "a replay sends the same queries, bit for bit");
        found.starts = sampler.take_draws();
        assert_eq!(replica.take_draws(), found.starts);
    }
    found
}

fn rows(records: usize) -> Vec<(ModelData, PrivacyUnit)> {
    [0, 1].map(|party| (data(records, party), PrivacyUnit::default())).into()
}

/// Returns the posterior's mode, and its sds, by Newton's method on the records themselves.
fn mode(shards: &[(ModelData, PrivacyUnit)]) -> ([f64; 3], [f64; 3]) {
    let mut at = [0.0; 3];
    let mut sd = [0.0; 3];
    for _ in 0..30 {
        let (mut gradient, mut h) = (at.map(|b| -b / 6.25), [[0.0; 3]; 3]);
        (0..3).for_each(|j| h[j][j] = 1.0 / 6.25);
        for (shard, _) in shards {
            for (i, y) in shard.outcome.iter().enumerate() {
                let x = [1.0, shard.predictors[0][i], shard.predictors[1][i]];
                let p = 1.0 / (1.0 + (-x.iter().zip(at).map(|(x, b)| x * b).sum::<f64>()).exp());
                for j in 0..3 {
                    gradient[j] += (y - p) * x[j];
                    (0..3).for_each(|k| h[j][k] += p * (1.0 - p) * x[j] * x[k]);
                }
            }
        }
        let minor = |r: [usize; 2], c: [usize; 2]| h[r[0]][c[0]] * h[r[1]][c[1]] - h[r[0]][c[1]] * h[r[1]][c[0]];
        let others = |j: usize| [[1, 2], [0, 2], [0, 1]][j];
        let cofactor = |j: usize, k: usize| if (j + k).is_multiple_of(2) { 1.0 } else { -1.0 } * minor(others(j), others(k));
        let determinant: f64 = (0..3).map(|k| h[0][k] * cofactor(0, k)).sum();
        for j in 0..3 {
            at[j] += (0..3).map(|k| cofactor(k, j) * gradient[k]).sum::<f64>() / determinant;
            sd[j] = (cofactor(j, j) / determinant).sqrt();
        }
    }
    (at, sd)
}

/// The mean of 64 chains that start around the search's result is off by the search's own error, whose largest component is about
/// one sd and rarely two, and by the spread of starts over 64, .2 sds: over 64 seeds the root mean square is .97. A search by
/// ratios ended more than two sds away for 12 of them and nine for one; its root mean square is 3.2.
#[test]
fn correlated_predictors_are_found_in_a_few_rounds() {
    let shards = rows(40_000);
    let (mode, sd) = mode(&shards);
    let spec = job(64, "locate = \"gradients\"");
    let off = |found: &Searched| -> f64 {
        let mean = |j: usize| found.starts.iter().map(|draw| draw.theta[j]).sum::<f64>() / found.starts.len() as f64;
        (0..3).map(|j| ((mean(j) - mode[j]) / sd[j]).abs()).fold(0.0, f64::max)
    };
    let (mut squares, mut by_ratios) = (0.0, 0.0);
    for seed in 0..64 {
        let found = search(&spec, shards.clone(), seed);
        assert!(found.rounds.len() <= 12 && found.share <= 0.05, "{} rounds, {}", found.rounds.len(), found.share);
        let of_a_stage =
            |kind: QueryKind| matches!(kind, QueryKind::Gradient { parameters: 3 } | QueryKind::Curvature { parameters: 3 });
        assert!(found.rounds.iter().flat_map(|round| &round.queries).all(|query| of_a_stage(query.kind)));
        squares += off(&found).powi(2) / 64.0;
        let ratios = search(&job(64, ""), shards.clone(), seed);
        by_ratios += off(&ratios).powi(2) / 64.0;
        println!(
            "gradients: {} rounds, {:.3} of the budget, {:.2} sds off; ratios: {} rounds, {:.3}, {:.2}",
            found.rounds.len(),
            found.share,
            off(&found),
            ratios.rounds.len(),
            ratios.share,
            off(&ratios)
        );
    }
    assert!(squares.sqrt() < 2.0, "{}", squares.sqrt());
    assert!(squares < by_ratios, "{squares} {by_ratios}");
}

/// Starts lie along the posterior, not across it: their correlation is the posterior's, below -.6 here, with an error of a sixth
/// for 64 of them.
#[test]
fn chains_start_along_the_posterior() {
    let found = search(&job(64, "locate = \"gradients\""), rows(40_000), 1);
    let values = |j: usize| found.starts.iter().map(|draw| draw.theta[j]).collect::<Vec<f64>>();
    let (u, v) = (values(1), values(2));
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let covariance = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(a, b)| (a - mean(x)) * (b - mean(y))).sum::<f64>();
    let correlation = covariance(&u, &v) / (covariance(&u, &u) * covariance(&v, &v)).sqrt();
    assert!(correlation < -0.6, "{correlation}");
}

#[test]
fn every_unit_of_privacy_is_served() {
    let spec = job(2, "locate = \"gradients\"\nrecords_guess = 20000");
    for unit in [
        PrivacyUnit::row(conclave_privacy::accounting::Adjacency::AddRemove),
        PrivacyUnit::person(conclave_privacy::accounting::Adjacency::Replace, 2).unwrap(),
    ] {
        let mut shard = data(20_000, 0);
        if let Some(limit) = unit.records_per_person() {
            shard.persons = Persons::new((1..=10_000).map(|p| 2 * p).collect(), limit);
        }
        let found = search(&spec, vec![(shard.clone(), unit), (shard, unit)], 3);
        assert_eq!(found.starts.len(), 2, "{unit}");
    }
}
