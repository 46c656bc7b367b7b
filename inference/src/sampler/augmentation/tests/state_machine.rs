//! The run of a job: one round, then draws; threads and slices do not change it.

#![allow(clippy::unwrap_used)]

use rayon::ThreadPoolBuilder;

use super::fixtures::{job, noise_of, noised, seeded};
use crate::sampler::{Next, Sampler, SamplerError, Totals, build};
use conclave_common::job::JobSpec;
use conclave_common::query::QueryTerms;
use conclave_common::query::{Draw, PartyMetadata, Phase, Query, Round};
use conclave_privacy::accounting::{Adjacency, PrivacyFilter, PrivacyUnit};

const TABLE: &str = "kind = \"naive_bayes\"\noutcome = \"c\"\npredictors = [\"u\", \"v\"]";
const COLUMNS: &str = "c = { levels = [\"a\", \"b\"] }\nu = { levels = [\"l\", \"m\", \"n\"] }\nv = { binary = true }";

fn spec(sampler: &str) -> JobSpec {
    job(2, TABLE, COLUMNS, "", sampler, 3.0)
}

fn start(spec: &JobSpec, records: [u64; 2]) -> Box<dyn Sampler> {
    build(spec, &PartyMetadata::of_rows(&records)).unwrap()
}

fn pending_round(sampler: &mut dyn Sampler) -> Round {
    sampler.next_round().unwrap().round().unwrap()
}

/// Returns noisy counts of 60 and 90 records in the ten cells, and of unusable ones.
fn release(spec: &JobSpec) -> Vec<Vec<i64>> {
    let mut rng = seeded(9);
    let counts = |n: i64| [20, 5, 5, 5, 15, 10, 12, 18, 25, 5, 0].map(|k| (k * n / 60) << 20);
    [60, 90].map(|n| noised(&counts(n), noise_of(spec), &mut rng)).to_vec()
}

fn with_release(spec: &JobSpec) -> Box<dyn Sampler> {
    let mut sampler = start(spec, [60, 90]);
    let round = pending_round(sampler.as_mut());
    sampler.absorb(&Totals::of(&round, &release(spec)).unwrap()).unwrap();
    sampler
}

#[test]
fn one_round_takes_the_budget_and_no_more() {
    let rows = PartyMetadata::rows(60);
    let added = PartyMetadata::new(PrivacyUnit::row(Adjacency::AddRemove), 60);
    let persons = PartyMetadata::new(PrivacyUnit::person(Adjacency::Replace, 3).unwrap(), 60);
    for (model, columns, queries, parties) in [
        (TABLE, COLUMNS, 1, [rows, rows]),
        (TABLE, COLUMNS, 1, [added, rows]),
        (TABLE, COLUMNS, 1, [persons, persons]),
        ("kind = \"bernoulli\"\noutcome = \"y\"", "y = { binary = true }", 1, [rows, rows]),
        ("kind = \"poisson_mean\"\noutcome = \"y\"", "y = { min = 0, max = 7 }", 1, [rows, rows]),
        ("kind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 2.0", "y = { min = 10, max = 20 }", 1, [rows, rows]),
        ("kind = \"multinomial\"\noutcome = \"y\"", "y = { levels = [\"a\", \"b\", \"c\"] }", 1, [added, rows]),
        (
            "kind = \"linear\"\noutcome = \"y\"\npredictors = [\"x\"]\nsd = 1.0",
            "y = { min = 0, max = 7 }\nx = { min = 0, max = 1 }",
            4,
            [rows, rows],
        ),
    ] {
        let spec = job(2, model, columns, "", "", 1.0);
        let mut sampler = build(&spec, &parties).unwrap();
        let round = pending_round(sampler.as_mut());
        assert_eq!(pending_round(sampler.as_mut()), round, "asking again gives the same round");
        assert_eq!((round.queries.len(), round.iteration), (queries, 0));
        let model = spec.build_model();
        let share = |party: &PartyMetadata| {
            let unit = party.unit();
            let charge = |query: &Query| {
                let terms = QueryTerms::new(model.as_ref(), &spec, unit, query.kind, (&[], &[])).unwrap();
                assert!(terms.sum_fits(1000) && terms.summand(&[], &[], terms.sensitivity()).is_ok());
                unit.charge_of_kind(query.kind, terms.sensitivity(), spec.protected(query.noise)).unwrap()
            };
            let spent: u64 = round.queries.iter().map(charge).sum();
            let limit = PrivacyFilter::new(&spec.privacy.budget.of(unit)).unwrap().limit_units();
            assert!(spent <= limit, "{spent} of {limit}");
            spent as f64 / limit as f64
        };
        // The party with the highest price spends its whole budget, up to the rounding of scales.
        let most = parties.iter().map(share).fold(0.0, f64::max);
        assert!(most > 0.9, "{most}");
    }
}

#[test]
fn all_draws_follow_the_one_answer() {
    let spec = spec("chains = 3\ndraws = 40\nwarmup = 7");
    let mut sampler = with_release(&spec);
    assert_eq!((sampler.take_draws().len(), sampler.phase()), (0, Phase::Warmup));
    assert_eq!(sampler.next_round().unwrap(), Next::Done);
    let draws = sampler.take_draws();
    for chain in 0..3 {
        let of = |warmup: bool| draws.iter().filter(|d| d.chain == chain && d.warmup == warmup).count();
        assert_eq!((of(true), of(false)), (7, 40));
    }
    assert!(draws.iter().all(|d| spec.in_support(&d.theta) && d.accepted && d.iteration == 0));
    assert!(draws.iter().all(|d| (d.theta[..2].iter().sum::<f64>() - 1.0).abs() < 1e-12));
    let rate = sampler.acceptance_rate().unwrap();
    assert!(rate > 0.2 && rate < 1.0, "{rate}");
    assert_eq!((sampler.phase(), sampler.next_round().unwrap(), sampler.take_draws().len()), (Phase::Sampling, Next::Done, 0));
}

/// Runs with and without slices, on one thread or on three, replayed or not.
#[test]
fn the_same_release_gives_the_same_draws() {
    let spec = spec("chains = 2\ndraws = 9000\nwarmup = { until_rhat = 1.2, max = 4000 }");
    let run = |threads: usize, sliced: bool| -> Vec<Draw> {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let (mut sampler, mut draws) = (with_release(&spec), Vec::new());
            let mut slices = 0;
            while sliced && sampler.work().unwrap() {
                draws.extend(sampler.take_draws());
                slices += 1;
            }
            assert!(slices > 1 || !sliced, "more than one slice");
            assert_eq!(sampler.next_round().unwrap(), Next::Done);
            draws.extend(sampler.take_draws());
            draws
        })
    };
    let draws = run(1, false);
    assert!(draws == run(3, false) && draws == run(2, true));
    assert_eq!(draws.iter().filter(|draw| !draw.warmup).count(), 18_000);
    let mut again = start(&spec, [60, 90]);
    again.replay(0, &release(&spec)).unwrap();
    assert_eq!(again.next_round().unwrap(), Next::Done);
    assert!(again.take_draws() == draws);
}

/// For 1,000 records of mean .1 and sd .5 the chains are near .1 after a few sweeps, wherever they start.
#[test]
fn chains_find_their_way() {
    let model = "kind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 0.5";
    for sampler in ["start = { mean = 2.0 }", ""] {
        let spec = job(1, model, "y = { min = -1, max = 1 }", "", &format!("draws = 50\nwarmup = 0\n{sampler}"), 3.0);
        let mut sampler = build(&spec, &PartyMetadata::of_rows(&[1000])).unwrap();
        sampler.replay(0, &[vec![100 << 31]]).unwrap();
        sampler.next_round().unwrap();
        let last = sampler.take_draws().pop().unwrap().theta[0];
        assert!((last - 0.1).abs() < 0.1, "{last}");
    }
}

#[test]
fn what_it_is_not_for_is_refused() {
    let bounded = spec("");
    let of = |records: &[u64]| PartyMetadata::of_rows(records);
    assert_eq!(
        build(&bounded, &of(&[60_000, 60_000])).err(),
        Some(SamplerError::ManyRecords { records: 120_000, most: 100_000 })
    );
    assert!(build(&spec("force = true"), &of(&[60_000, 60_000])).is_ok() && build(&bounded, &of(&[50_000, 50_000])).is_ok());
    // A statistic needs rows that are replaced; tables do not, and an unknown number is estimated from their release.
    let added = PrivacyUnit::row(Adjacency::AddRemove);
    let parties = [PartyMetadata::rows(5), PartyMetadata::new(added, 5)];
    let coin = job(2, "kind = \"bernoulli\"\noutcome = \"y\"", "y = { binary = true }", "", "", 1.0);
    let error = build(&coin, &parties).err().unwrap();
    assert!(matches!(&error, SamplerError::Protects { party, .. } if party == "p1"), "{error}");
    assert!(error.to_string().contains("augmentation"));
    let mut sampler = build(&bounded, &parties).unwrap();
    let (round, mut large) = (pending_round(sampler.as_mut()), release(&bounded));
    large[1][0] = 200_000 << 20;
    let refused = sampler.absorb(&Totals::of(&round, &large).unwrap()).unwrap_err();
    assert!(matches!(refused, SamplerError::ManyRecords { records: 200_000.., .. }), "{refused}");
    // Totals that do not fit leave the sampler unchanged.
    let mut sampler = start(&bounded, [60, 90]);
    let round = pending_round(sampler.as_mut());
    let short = Totals::of(&round, &release(&bounded)[..1]).unwrap();
    assert!(matches!(sampler.absorb(&short), Err(SamplerError::Shape(_))));
    assert_eq!((pending_round(sampler.as_mut()), sampler.work()), (round, Ok(false)));
}
