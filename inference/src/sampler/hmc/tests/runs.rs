//! Runs on real kernels, lattice and noise, in one process.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::rehearsal::{Answer, Rehearsal};
use crate::sampler::{Next, Totals, build};
use conclave_common::job::JobSpec;
use conclave_common::query::QueryTerms;
use conclave_common::query::{Draw, Phase, Round};
use conclave_privacy::accounting::{Adjacency, PrivacyUnit, units_under_noise};
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::ModelData;

fn job(more: &str) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"h\"\nalgorithm = \"hmc\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\n\
         predictors = [\"x\"]\n[columns]\ny = {{ binary = true }}\nx = {{ min = -1, max = 1 }}\n[sampler]\n{more}\n\
         [privacy]\nepsilon = 3.0\ndelta = 1e-6\n"
    ))
    .unwrap()
}

pub(in crate::sampler::hmc) fn data(records: usize) -> ModelData {
    let x = |i: usize| 2.0 * ((i * 7919) % 1009) as f64 / 1008.0 - 1.0;
    let p = |i: usize| 1.0 / (1.0 + (-0.3 - 0.8 * x(i)).exp());
    let y = |i: usize| f64::from(u8::from((((i * 104_729) % 10_007) as f64 / 10_007.0) < p(i)));
    ModelData { outcome: (0..records).map(y).collect(), predictors: vec![(0..records).map(x).collect()], ..ModelData::default() }
}

struct Ran {
    rounds: Vec<Round>,
    draws: Vec<Draw>,
    spent: Vec<u64>,
    acceptance: f64,
}

fn run(spec: &JobSpec, records: usize, unit: PrivacyUnit) -> Ran {
    let shards = spec.parties.iter().map(|_| (data(records), unit)).collect();
    let mut rehearsal = Rehearsal::new(spec, shards, ChaCha20Rng::seed_from_u64(5)).unwrap();
    let mut sampler = build(spec, &rehearsal.metadata()).unwrap();
    let mut ran = Ran { rounds: Vec::new(), draws: Vec::new(), spent: Vec::new(), acceptance: 0.0 };
    let mut replica = build(spec, &rehearsal.metadata()).unwrap();
    loop {
        let round = match sampler.next_round().unwrap() {
            Next::Ask(round) => round,
            Next::Done => break,
            Next::Stopped(why) => panic!("{why}"),
        };
        let Answer::Released(releases) = rehearsal.answer(&round).unwrap() else { panic!("refused") };
        sampler.absorb(&Totals::of(&round, &releases).unwrap()).unwrap();
        // A replay sends the same queries, bit for bit.
        assert_eq!(replica.replay(round.iteration, &releases).unwrap(), round);
        let draws = sampler.take_draws();
        assert_eq!(replica.take_draws(), draws);
        ran.draws.extend(draws);
        ran.rounds.push(round);
    }
    ran.acceptance = sampler.acceptance_rate().unwrap();
    ran.spent = rehearsal.spent().into_iter().map(|(_, units)| units).collect();
    ran
}

/// Two messages per step, each with its own number; nearly the whole planned budget is spent.
#[test]
fn a_run_asks_gradients_and_remainders_in_turn_within_its_budget() {
    let spec = job("chains = 2\nseed = 3");
    let ran = run(&spec, 20_000, PrivacyUnit::default());
    let walking: Vec<&Round> = ran.rounds.iter().filter(|round| round.phase != Phase::Locate).collect();
    for (pair, round) in walking.iter().enumerate() {
        let wanted = |kind: QueryKind| match pair % 2 {
            0 => matches!(kind, QueryKind::Gradient { parameters: 2 }),
            _ => matches!(kind, QueryKind::Remainder { parameters: 2 }),
        };
        assert!(round.queries.iter().all(|query| wanted(query.kind)), "{pair}");
    }
    let limit = conclave_privacy::accounting::PrivacyFilter::new(&spec.privacy.budget).unwrap().limit_units();
    let share = ran.spent[0] as f64 / limit as f64;
    assert!(share > 0.97 && share <= 1.0, "{share}");
    assert!(ran.acceptance > 0.9, "{}", ran.acceptance);
    assert!(ran.draws.iter().filter(|draw| !draw.warmup).count() > 100);
}

/// Units of privacy other than replaced rows have no centre or no public count.
#[test]
fn every_unit_of_privacy_is_served() {
    let spec = job("chains = 1\nseed = 3\ndraws = 30\nrecords_guess = 20000");
    for unit in [PrivacyUnit::row(Adjacency::AddRemove), PrivacyUnit::person(Adjacency::Replace, 2).unwrap()] {
        let mut shard = data(20_000);
        if let Some(limit) = unit.records_per_person() {
            shard.persons = conclave_privacy::pass::Persons::new((1..=10_000).map(|p| 2 * p).collect(), limit);
        }
        let shards = vec![(shard.clone(), unit), (shard, unit)];
        let mut rehearsal = Rehearsal::new(&spec, shards, ChaCha20Rng::seed_from_u64(5)).unwrap();
        let mut sampler = build(&spec, &rehearsal.metadata()).unwrap();
        let mut draws = 0;
        while let Next::Ask(round) = sampler.next_round().unwrap() {
            let Answer::Released(releases) = rehearsal.answer(&round).unwrap() else { panic!("refused") };
            sampler.absorb(&Totals::of(&round, &releases).unwrap()).unwrap();
            draws += sampler.take_draws().iter().filter(|draw| !draw.warmup).count();
        }
        assert_eq!(draws, 30, "{unit}");
    }
}

/// Returns the highest price of a run's vectors and remainders, in units of 2^-48 of mu², and the mean noise of a gradient.
fn highest_price(spec: &JobSpec, ran: &Ran) -> (u64, f64) {
    let model = spec.build_model();
    let unit = PrivacyUnit::default();
    let (mut most, mut noise, mut gradients) = (0, 0.0, 0.0);
    for query in ran.rounds.iter().flat_map(|round| &round.queries).filter(|query| !query.kind.has_minimum_noise()) {
        let terms = QueryTerms::new(model.as_ref(), spec, unit, query.kind, (&query.from, &query.to)).unwrap();
        most = most.max(unit.charge_of_kind(query.kind, terms.sensitivity(), spec.protected(query.noise)).unwrap());
        if matches!(query.kind, QueryKind::Gradient { .. }) {
            (noise, gradients) = (noise + query.kind.noise_sd(query.noise), gradients + 1.0);
        }
    }
    (most, noise / gradients)
}

/// A job with a `noise_multiplier` above its chains' needs takes shorter steps, which need more noise. No release exceeds the
/// limit, and the budget buys about as many effective draws, apart from the search's smaller share.
#[test]
fn more_noise_is_met_by_shorter_steps() {
    let plain = job("chains = 1\nseed = 3\ndraws = 1000000");
    let before = run(&plain, 20_000, PrivacyUnit::default());
    let multiplier = 100.0;
    let mut spec = plain.clone();
    spec.privacy.noise_multiplier = multiplier;
    let after = run(&spec, 20_000, PrivacyUnit::default());
    let limit = units_under_noise(multiplier);
    let ((highest, quiet), (cheap, loud)) = (highest_price(&plain, &before), highest_price(&spec, &after));
    assert!(highest > 2 * limit, "{highest} without the multiplier does not exceed the limit {limit}: the test shows nothing");
    assert!(cheap <= limit && loud > 1.3 * quiet, "{cheap} of {limit}; noise {quiet} and {loud}");
    // Effective draws depend on the total noise of all gradients: noisier gradients need more of them, in proportion to the
    // variance.
    let kept = |ran: &Ran| ran.draws.iter().filter(|draw| !draw.warmup).count() as f64;
    let ratio = kept(&after) / kept(&before) * (quiet / loud).powi(2);
    assert!((0.7..1.3).contains(&ratio), "{} and {} draws, {ratio}", kept(&before), kept(&after));
    assert!(after.acceptance > 0.9, "{}", after.acceptance);
}

/// Refuses noise that no chain can use, with the keys to change.
#[test]
fn too_much_noise_is_refused_by_name() {
    for more in ["chains = 1", "chains = 1\nstep = 0.5"] {
        let mut spec = job(more);
        spec.privacy.noise_multiplier = if more.contains("step") { 200.0 } else { 2000.0 };
        let shards = spec.parties.iter().map(|_| (data(20_000), PrivacyUnit::default())).collect();
        let mut rehearsal = Rehearsal::new(&spec, shards, ChaCha20Rng::seed_from_u64(5)).unwrap();
        let mut sampler = build(&spec, &rehearsal.metadata()).unwrap();
        let message = loop {
            match sampler.next_round() {
                Ok(Next::Ask(round)) => {
                    let Answer::Released(releases) = rehearsal.answer(&round).unwrap() else { panic!("refused") };
                    if let Err(e) = sampler.absorb(&Totals::of(&round, &releases).unwrap()) {
                        break e.to_string();
                    }
                }
                Ok(_) => panic!("a run with more noise than it can use"),
                Err(e) => break e.to_string(),
            }
        };
        assert!(message.contains("privacy.noise_multiplier") && message.contains("sampler.step"), "{message}");
    }
}
