//! The run of a job: one round, then draws; the same whoever counts the threads and slices.

#![allow(clippy::unwrap_used)]

use rayon::ThreadPoolBuilder;

use super::fixtures::{job, noised, seeded};
use crate::accounting::{PrivacyFilter, PrivacyUnit};
use crate::job::JobSpec;
use crate::mechanism::QueryKind;
use crate::query::QueryTerms;
use crate::sampler::{Draw, Next, PartyMetadata, Phase, Round, Sampler, SamplerError, Totals, build};

const TABLE: &str = "kind = \"naive_bayes\"\noutcome = \"c\"\npredictors = [\"u\", \"v\"]";
const COLUMNS: &str = "c = { levels = [\"a\", \"b\"] }\nu = { levels = [\"l\", \"m\", \"n\"] }\nv = { binary = true }";

fn spec(sampler: &str) -> JobSpec {
    job(2, TABLE, COLUMNS, "", sampler, 3.0)
}

fn start(spec: &JobSpec, records: [u64; 2]) -> Box<dyn Sampler> {
    build(spec, &PartyMetadata::of_rows(&records)).unwrap()
}

fn asked(sampler: &mut dyn Sampler) -> Round {
    sampler.next_round().unwrap().round().unwrap()
}

/// Counts of 60 and 90 records in the ten cells, with noise.
fn release(spec: &JobSpec) -> Vec<Vec<i64>> {
    let mut rng = seeded(9);
    let counts = |n: i64| [20, 5, 5, 5, 15, 10, 12, 18, 25, 5].map(|k| (k * n / 60) << 32);
    [60, 90].map(|n| noised(&counts(n), spec, &mut rng)).to_vec()
}

fn answered(spec: &JobSpec) -> Box<dyn Sampler> {
    let mut sampler = start(spec, [60, 90]);
    let round = asked(sampler.as_mut());
    sampler.absorb(&Totals::of(&round, &release(spec)).unwrap()).unwrap();
    sampler
}

#[test]
fn one_round_takes_the_budget_and_no_more() {
    for (model, columns, components) in [
        (TABLE, COLUMNS, 10),
        ("kind = \"bernoulli\"\noutcome = \"y\"", "y = { binary = true }", 1),
        ("kind = \"poisson_mean\"\noutcome = \"y\"", "y = { min = 0, max = 7 }", 1),
        ("kind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 2.0", "y = { min = 10, max = 20 }", 1),
        ("kind = \"multinomial\"\noutcome = \"y\"", "y = { levels = [\"a\", \"b\", \"c\"] }", 3),
    ] {
        let spec = job(2, model, columns, "", "", 1.0);
        let mut sampler = start(&spec, [60, 90]);
        let round = asked(sampler.as_mut());
        assert_eq!(asked(sampler.as_mut()), round, "asking again gives the same round");
        assert_eq!((round.queries.len(), round.iteration), (components, 0));
        let (model, unit) = (spec.build_model(), PrivacyUnit::default());
        let charge = |kind: QueryKind| {
            let terms = QueryTerms::new(model.as_ref(), &spec, unit, kind, (&[], &[])).unwrap();
            unit.charge_of_kind(kind, terms.sensitivity(), spec.privacy.noise).unwrap()
        };
        let spent: u64 = round.queries.iter().map(|query| charge(query.kind)).sum();
        let limit = PrivacyFilter::new(&spec.privacy.budget).unwrap().limit_units();
        assert!(spent <= limit && spent as f64 > 0.999_99 * limit as f64, "{spent} of {limit}");
        assert!(round.queries.iter().enumerate().all(|(j, query)| query.kind == QueryKind::Statistic { component: j as u32 }));
    }
}

#[test]
fn all_draws_follow_the_one_answer() {
    let spec = spec("chains = 3\ndraws = 40\nwarmup = 7");
    let mut sampler = answered(&spec);
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

/// By slices or at once, on one thread or on three, replayed or not.
#[test]
fn the_same_release_gives_the_same_draws() {
    let spec = spec("chains = 2\ndraws = 9000\nwarmup = { until_rhat = 1.2, max = 4000 }");
    let run = |threads: usize, sliced: bool| -> Vec<Draw> {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let (mut sampler, mut draws) = (answered(&spec), Vec::new());
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

#[test]
fn chains_begin_where_the_job_says() {
    let mean = |sampler: &str| job(1, "kind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 0.5", "y = { min = -1, max = 1 }", "", sampler, 3.0);
    for sampler in ["start = { mean = 0.25 }", "chains = 2\nstarts = [{ mean = 0.25 }, { mean = -0.5 }]", ""] {
        let spec = mean(&format!("draws = 50\nwarmup = 0\n{sampler}"));
        let mut sampler = build(&spec, &PartyMetadata::of_rows(&[1000])).unwrap();
        sampler.replay(0, &[vec![100 << 31]]).unwrap();
        sampler.next_round().unwrap();
        let last = sampler.take_draws().pop().unwrap().theta[0];
        assert!((last - 0.1).abs() < 0.3, "{last}");
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
    let persons = crate::accounting::PrivacyUnit { adjacency: crate::accounting::Adjacency::AddRemove, ..PrivacyUnit::default() };
    let error = build(&bounded, &[PartyMetadata::rows(5), PartyMetadata::new(persons, 5)]).err().unwrap();
    assert!(matches!(&error, SamplerError::Protects { party, .. } if party == "p1"), "{error}");
    assert!(error.to_string().contains("augmentation"));
    // Nothing was moved on by totals that do not fit.
    let mut sampler = start(&bounded, [60, 90]);
    let round = asked(sampler.as_mut());
    let short = Totals::of(&round, &release(&bounded)[..1]).unwrap();
    assert!(matches!(sampler.absorb(&short), Err(SamplerError::Shape(_))));
    assert_eq!((asked(sampler.as_mut()), sampler.work()), (round, Ok(false)));
}
