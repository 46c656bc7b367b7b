//! An owner's own answer from the job file to the rows in one process: the real kernels, lattice, noise and prices.
//!
//! All figures are over synthetic records, fresh for each seed, and fixed seeds. *own*, *joint* and *alone* are the sds of the own
//! answer, of the job's answer and of the first owner's records alone, over the sd without privacy of all records. *z* is the root
//! mean square of the own answer's error against the truth, in its sds.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod refusals;
mod setting;

use conclave_common::job::JobSpec;
use conclave_inference::rehearsal::{Answer, Rehearsal};
use conclave_inference::sampler::{self, Next, OwnAnswer, OwnRecords, OwnReleases, OwnRow, Totals};
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::pass::ModelData;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, Exp1};
use setting::Setting;

/// Runs a job over these shards, and returns its releases as the first owner sees them.
fn releases(spec: &JobSpec, shards: &[ModelData], seed: u64) -> OwnReleases {
    let units = shards.iter().map(|data| (data.clone(), PrivacyUnit::default())).collect();
    let mut parties = Rehearsal::new(spec, units, ChaCha20Rng::seed_from_u64(seed)).unwrap();
    let mut joint = sampler::build(spec, &parties.metadata()).unwrap();
    let mut own = OwnReleases::new(spec, &parties.metadata(), 0).unwrap();
    while let Next::Ask(round) = joint.next_round().unwrap() {
        let Answer::Released(answers) = parties.answer(&round).unwrap() else { panic!("beyond the budget") };
        assert_eq!(own.awaited(), round.logged_length());
        joint.absorb(&Totals::of(&round, &answers).unwrap()).unwrap();
        own.replay(round.iteration, &answers).unwrap();
    }
    own
}

fn answer(spec: &JobSpec, shards: &[ModelData], seed: u64) -> OwnAnswer {
    releases(spec, shards, seed).answer(OwnRecords { data: &shards[0], summed: &shards[0] }).unwrap()
}

/// Returns the posterior of all records without privacy: that of one owner who holds all of them beside another with hardly any.
fn pooled(setting: Setting, shards: &[ModelData]) -> Vec<OwnRow> {
    let mut all = ModelData { predictors: vec![Vec::new(); 3], ..ModelData::default() };
    for shard in shards {
        all.outcome.extend(&shard.outcome);
        all.predictors.iter_mut().zip(&shard.predictors).for_each(|(column, more)| column.extend(more));
    }
    answer(&setting.spec(2, 1.0, ""), &[all, shards[0].clone()], 1).rows
}

fn shards(setting: Setting, (owners, records): (usize, usize), seed: u64) -> Vec<ModelData> {
    let mut rng = ChaCha20Rng::seed_from_u64(9000 + seed);
    (0..owners).map(|_| setting.records(records, &mut rng)).collect()
}

/// Without noise the own answer is the posterior of all records, whatever is opened.
#[test]
fn at_vanishing_noise_it_is_the_posterior_of_all_records() {
    for setting in [Setting::Logistic, Setting::NegativeBinomial, Setting::StudentT] {
        let shards = shards(setting, (3, 2_000), 1);
        let expected = pooled(setting, &shards);
        for secure in [false, true] {
            let more = if secure { "aggregation = { mode = \"secure\" }\n" } else { "" };
            let found = answer(&setting.spec(3, 400.0, more), &shards, 3);
            assert!(found.inference.is_adequate(), "{:?}", found.inference.reasons);
            for (row, expected) in found.rows.iter().zip(&expected) {
                let (off, ratio) = ((row.own.mean - expected.alone.mean) / expected.alone.sd, row.own.sd / expected.alone.sd);
                println!("{setting:?} secure {secure} {}: off {off:.3}, ratio {ratio:.3}", row.name);
                // Of 4,000 draws the mean has an error of .016 sds, and the sd one of 1.1 %; both sides have them. Of counts' information
                // a part is left out, in the joint answer too, for which the likelihood allows.
                let most = if setting == Setting::Logistic { 0.1 } else { 0.35 };
                assert!(off.abs() < most && (ratio - 1.0).abs() < 0.06, "{setting:?} {secure} {row:?} {expected:?}");
            }
        }
    }
}

/// Times: the posterior of the first owner's records alone and of all of them, with rows of which nothing is known. The
/// likelihood is skewed.
#[test]
fn times_and_inert_rows_have_an_own_answer() {
    let spec = JobSpec::parse(
        "name = \"r\"\nalgorithm = \"noisy-statistics\"\nparties = [\"a\", \"b\"]\n[model]\nincomplete_rows = true\nkind = \"weibull\"\n\
         outcome = \"y\"\nevent = \"d\"\n[columns]\ny = { min = 0.001, max = 1 }\nd = { binary = true }\n[prior]\n\
         scale = \"lognormal(0, 2.5)\"\n[sampler]\nforce = true\n[privacy]\nepsilon = 400.0\ndelta = 1e-6\n",
    )
    .unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    let mut shard = |rows: usize, inert: usize| {
        let mut data = ModelData { auxiliary: vec![Vec::new()], ..ModelData::default() };
        for _ in 0..rows {
            let exponential: f64 = Exp1.sample(&mut rng);
            let event = 0.4 * exponential.powf(1.0 / 1.4);
            let last = rng.random_range(0.2..1.0_f64);
            data.outcome.push((2.0 * event.min(last).max(0.001) - 1.001) / 0.999);
            data.auxiliary[0].push(f64::from(u8::from(event <= last)));
        }
        for _ in 0..inert {
            data.outcome.push(f64::NAN);
            data.auxiliary[0].push(f64::NAN);
        }
        data
    };
    let shards = [shard(1_000, 20), shard(3_000, 0)];
    let found = answer(&spec, &shards, 2);
    assert!(found.inference.is_adequate(), "{:?}", found.inference);
    for (row, truth) in found.rows.iter().zip([1.4, 0.4]) {
        println!("{row:?}");
        // The sds of 1,000 and of 4,000 records.
        assert!((row.own.mean - truth).abs() < 3.5 * row.own.sd && (0.4..0.6).contains(&(row.own.sd / row.alone.sd)), "{row:?}");
        assert!(
            (row.own.sd / row.joint.sd - 1.0).abs() < 0.08 && (row.own.mean - row.joint.mean).abs() < 0.3 * row.own.sd,
            "{row:?}"
        );
    }
}

/// Figures over many data sets.
#[derive(Default)]
struct Figures {
    z: Vec<f64>,
    /// Of the sets that pass the checks.
    z_adequate: Vec<f64>,
    held: Vec<bool>,
    /// Over the sd without privacy: own, joint, alone.
    ratios: [Vec<f64>; 3],
    /// Own over alone.
    beside_alone: Vec<f64>,
    adequate: usize,
    sets: usize,
}

fn rms(values: &[f64]) -> f64 {
    (values.iter().map(|x| x * x).sum::<f64>() / values.len().max(1) as f64).sqrt()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

impl Figures {
    fn of(setting: Setting, size: (usize, usize), epsilon: f64, sets: u64) -> Self {
        let mut figures = Self { sets: sets as usize, ..Self::default() };
        let spec = setting.spec(size.0, epsilon, "");
        for seed in 0..sets {
            let shards = shards(setting, size, seed);
            let found = answer(&spec, &shards, seed);
            let exact = pooled(setting, &shards);
            let adequate = found.inference.is_adequate();
            if std::env::var_os("CONCLAVE_RUNS").is_some() {
                println!("{seed}: {:?} {:?} {:?}", found.inference.checks, found.rows, found.efficiency);
            }
            figures.adequate += usize::from(adequate);
            for (j, ((row, exact), truth)) in found.rows.iter().zip(&exact).zip(setting.truth()).enumerate() {
                // The sd of a logarithm, nearly.
                let sd = if j < 4 { row.own.sd } else { row.own.sd / row.own.mean };
                let z = (setting.scaled(j, row.own.q50) - setting.scaled(j, truth)) / sd;
                figures.z.push(z);
                figures.z_adequate.extend(adequate.then_some(z));
                figures.held.push((row.own.q5..=row.own.q95).contains(&truth));
                let sds = [row.own.sd, row.joint.sd, row.alone.sd];
                figures.ratios.iter_mut().zip(sds).for_each(|(ratios, sd)| ratios.push(sd / exact.alone.sd));
                figures.beside_alone.push(row.own.sd / row.alone.sd);
            }
        }
        figures
    }

    fn show(&self, what: &str) {
        let held = self.held.iter().filter(|held| **held).count() as f64 / self.held.len() as f64;
        let [own, joint, alone] = [0, 1, 2].map(|k| median(&self.ratios[k]));
        println!(
            "{what}: z {:.2} (adequate {:.2}) c90 {held:.2} own {own:.2} joint {joint:.2} alone {alone:.2}; own/alone median {:.2} most {:.3}; \
             adequate {}/{}",
            rms(&self.z),
            rms(&self.z_adequate),
            median(&self.beside_alone),
            self.beside_alone.iter().copied().fold(0.0, f64::max),
            self.adequate,
            self.sets
        );
    }
}

/// At epsilon 1 the joint answer of eight owners of 1,000 records is wider than the records of one of them: the own answer is narrower
/// than both.
#[test]
fn eight_small_owners_each_learn_more_than_alone() {
    let figures = Figures::of(Setting::Logistic, (8, 1_000), 1.0, 6);
    figures.show("logistic 8 x 1,000, epsilon 1");
    // Of 4,000 draws the ratio of two sds has an error of 1.6 %.
    assert!(figures.beside_alone.iter().all(|ratio| *ratio < 1.06));
    let [own, joint, alone] = [0, 1, 2].map(|k| median(&figures.ratios[k]));
    assert!(own < 0.92 * alone && own < 0.92 * joint, "{own} {joint} {alone}");
    // 24 values of z: with this law their rms is outside once in 500 times.
    assert!((0.6..1.45).contains(&rms(&figures.z)), "{:?}", figures.z);
}

/// In 40 sets of four parameters the rms of z with law N(0, 1) lies in [.85, 1.15] except once in 100 times, and the seeds are fixed.
#[test]
#[ignore = "minutes"]
fn own_answers_are_calibrated_in_every_setting() {
    for (setting, size, epsilon) in [(Setting::Logistic, (8, 1_000), 1.0), (Setting::Logistic, (3, 1_000), 1.0)] {
        let what = format!("{setting:?} {size:?} epsilon {epsilon}");
        if !std::env::var("ONLY").is_ok_and(|only| !what.contains(&only)) {
            let figures = Figures::of(setting, size, epsilon, 40);
            figures.show(&what);
            assert!((0.85..1.15).contains(&rms(&figures.z)), "{what}");
            assert!(figures.beside_alone.iter().all(|ratio| *ratio < 1.06), "{what}");
        }
    }
}
