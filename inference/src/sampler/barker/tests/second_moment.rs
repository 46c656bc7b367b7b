//! The check of the sampling variance, on real kernels, lattice and noise.

#![allow(clippy::unwrap_used)]

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use crate::rehearsal::{Answer, Rehearsal};
use crate::sampler::{BarkerDiagnostics, Next, Totals, build};
use conclave_common::job::JobSpec;
use conclave_common::query::QueryTerms;
use conclave_privacy::accounting::{Adjacency, PrivacyFilter, PrivacyUnit};
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::{ModelData, Persons};

/// Runs records that scatter `scatter` times as far as the model says, `records` at each of two parties within bounds of half
/// width `width`. Returns the run's diagnostics, and the largest share of the budget that the looks cost.
fn run(scatter: f64, unit: PrivacyUnit, (width, records, draws, epsilon): (f64, usize, u64, f64)) -> (BarkerDiagnostics, f64) {
    let spec = JobSpec::parse(&format!(
        "name = \"b\"\nalgorithm = \"barker\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 1.0\n\
         [columns]\ny = {{ min = -{width:?}, max = {width:?} }}\n[sampler]\nchains = 2\nforce = true\nseed = 5\ndraws = {draws}\nwarmup = 2\nbatch = 0.5\nrecords_guess = 3000\n\
         [privacy]\nepsilon = {epsilon:?}\ndelta = 1e-6\nclip = 0.34\n"
    ))
    .unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(31);
    let each = unit.records_per_person().unwrap_or(1) as usize;
    // On the scale of the declared bounds. A person's records scatter independently, as in the model.
    let mut shard = |mean: f64| ModelData {
        outcome: (0..records).map(|_| (mean + scatter * 3.0_f64.sqrt() * (2.0 * rng.random::<f64>() - 1.0)) / width).collect(),
        persons: (each > 1).then(|| Persons::new((1..=records / each).map(|p| p * each).collect(), each as u32).unwrap()),
        ..ModelData::default()
    };
    let shards = vec![(shard(0.4), unit), (shard(0.4), unit)];
    let mut rehearsal = Rehearsal::new(&spec, shards, ChaCha20Rng::seed_from_u64(5)).unwrap();
    let mut sampler = build(&spec, &rehearsal.metadata()).unwrap();
    let model = spec.build_model();
    let (mut looks, limit) = (0, PrivacyFilter::new(&spec.privacy.budget.of(unit)).unwrap().limit_units());
    loop {
        let round = match sampler.next_round().unwrap() {
            Next::Ask(round) => round,
            Next::Done => break,
            Next::Stopped(why) => panic!("{why}"),
        };
        for query in round.queries.iter().filter(|query| query.kind == QueryKind::SecondMoment) {
            let terms = QueryTerms::new(model.as_ref(), &spec, unit, query.kind, (&query.from, &query.to)).unwrap();
            looks += unit.charge_of_kind(query.kind, terms.sensitivity(), spec.protected(query.noise)).unwrap();
        }
        let answer = rehearsal.answer(&round).unwrap();
        let Answer::Released(releases) = answer else { panic!("{answer:?} to {round:?}") };
        sampler.absorb(&Totals::of(&round, &releases).unwrap()).unwrap();
        sampler.take_draws();
    }
    (sampler.report().barker.unwrap(), looks as f64 / limit as f64)
}

/// If records scatter as the model says, the released squares match the assumption, for rows and for persons, under either kind
/// of neighbours, and all looks cost the reserved budget. The bound is four standard errors of the noise, plus 10% for the
/// scatter of a sample of records and the search's error.
#[test]
fn the_released_squares_are_what_the_curvature_says() {
    let persons = |adjacency| PrivacyUnit::person(adjacency, 2).unwrap();
    for unit in [PrivacyUnit::row(Adjacency::Replace), PrivacyUnit::row(Adjacency::AddRemove), persons(Adjacency::Replace)] {
        // A person's two records cost four times as much.
        let draws = if unit.records_per_person().is_some() { 100 } else { 500 };
        let (diagnostics, share) = run(1.0, unit, (6.0, 3_000, draws, 900.0));
        let checked = diagnostics.checked.unwrap();
        println!("{unit:?}: {checked:?}, {share:.4} of the budget");
        assert_eq!(checked.looks, draws / 10);
        assert!((checked.ratio - 1.0).abs() < 4.0 * checked.standard_error + 0.1, "{checked:?}");
        assert!(checked.standard_error < 0.15 && !diagnostics.disagrees(), "{checked:?}");
        assert!(share <= 0.0401 && share > 0.039, "{share}");
        assert!(!diagnostics.words()[0].contains("do not scatter"), "{:?}", diagnostics.words());
    }
}

/// If they scatter 1.5 times as far, sampling adds 2.25 times the assumed variance, and the run warns.
#[test]
fn records_that_the_model_does_not_fit_are_seen() {
    let (diagnostics, _) = run(1.5, PrivacyUnit::default(), (6.0, 3_000, 500, 900.0));
    let checked = diagnostics.checked.unwrap();
    println!("{checked:?}");
    assert!((checked.ratio - 2.25).abs() < 4.0 * checked.standard_error + 0.25 && diagnostics.disagrees(), "{checked:?}");
    assert!(diagnostics.words()[0].contains("do not scatter as the model says"), "{:?}", diagnostics.words());
}

/// With bounds far wider than the records, and one look, the noise is as large as the result, and the run says so.
#[test]
fn a_check_that_cannot_tell_says_so() {
    let (diagnostics, _) = run(1.0, PrivacyUnit::default(), (20.0, 1_000, 10, 60.0));
    let checked = diagnostics.checked.unwrap();
    println!("{checked:?}");
    assert!(
        3.0 * checked.standard_error > 0.25 && diagnostics.words()[0].contains("too uncertain to decide"),
        "{checked:?} {:?}",
        diagnostics.words()
    );
}
